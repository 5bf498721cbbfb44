//! The SQLite adapter. One writer at a time, so the head of a key is decided where a row is written.
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Pool, Result, Row, Sqlite};

use crate::database::open::begin;
use crate::database::store::{ClaimBy, Fault, Store, statement, unknown_kinds};
use crate::outbox::{
    Claim, ClaimedRow, DeadKey, DeadRow, Failure, KINDS, NewRow, OutboxConfig, OutboxStats, StoredRow, Tables,
};

/// The statements of one outbox.
pub(crate) struct Sql {
    verify: Arc<str>,
    insert: Arc<str>,
    find: Arc<str>,
    claim: Arc<str>,
    sent: Arc<str>,
    failed: Arc<str>,
    release: Arc<str>,
    promote: Arc<str>,
    mend: Arc<str>,
    unknown_kinds: Arc<str>,
    stats: Arc<str>,
    dead: Arc<str>,
    redrive: Arc<str>,
    hold_others: Arc<str>,
    inbox_insert: Arc<str>,
    inbox_result: Arc<str>,
    inbox_store: Arc<str>,
}

/// The database's clock in milliseconds.
const NOW: &str = "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)";

impl Sql {
    fn new(tables: &Tables, config: &OutboxConfig) -> Self {
        let (t, inbox) = (tables.outbox(), tables.inbox());
        // A row that keeps later rows of its key waiting.
        let live = match config.dead_key {
            DeadKey::Block => "1",
            DeadKey::Skip => "h.state <> 'dead'",
        };
        let kinds = KINDS.map(|kind| format!("'{kind}'")).join(", ");
        let pending = |kind: &str| {
            format!("FROM {t} WHERE kind = '{kind}' AND state = 'pending' AND held = 0 ORDER BY seq")
        };
        // As many rows of average size as fit: a running sum would cost more than the claim itself.
        let limit = |rows: &str| {
            format!(
                "min(?2, 1 + (SELECT ?6 * count(*) / max(1, total(size)) FROM (SELECT length(body) AS size {rows} LIMIT ?2)))"
            )
        };
        let fresh = KINDS.map(|kind| {
            let pending = pending(kind);
            format!("SELECT seq FROM (SELECT seq {pending} LIMIT CAST({} AS INTEGER))", limit(&pending))
        });
        let due = |condition: &str| {
            let due = format!(
                "FROM {t} WHERE state IN ('leased', 'failed') AND {condition} AND kind IN ({kinds}) ORDER BY due_at"
            );
            format!("SELECT seq FROM (SELECT seq {due} LIMIT CAST(1 + {} / 4 AS INTEGER))", limit(&due))
        };
        let page = format!(
            "{} UNION ALL {} UNION ALL {}",
            fresh.join(" UNION ALL "),
            due(&format!("due_at <= {NOW} + ?5")),
            due(&format!("due_at > {NOW} + ?5 + ?4"))
        );
        let first = |key: &str| {
            format!("(SELECT h.seq FROM {t} h WHERE h.order_key = {key} AND {live} ORDER BY h.seq LIMIT 1)")
        };
        let text = |sql: String| Arc::from(sql);
        Self {
            verify: text(format!("SELECT 1 FROM {t}, {inbox} LIMIT 0")),
            insert: text(format!(
                "INSERT INTO {t} (id, kind, name, subject, headers, body, order_key, held, enqueued_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7 IS NOT NULL AND EXISTS (SELECT 1 FROM {t} h WHERE h.order_key = ?7 AND {live}), {NOW} + ?8) ON CONFLICT (id) DO NOTHING"
            )),
            find: text(format!("SELECT kind, name, subject, body, order_key FROM {t} WHERE id = ?1")),
            // Read as bytes: SQLite stores anything in any column, and one odd row must not spoil a page.
            claim: text(format!(
                "UPDATE {t} SET state = 'leased', token = ?1, due_at = {NOW} + ?5 + ?3 WHERE seq IN ({page}) RETURNING seq, id, CAST(name AS BLOB), CAST(subject AS BLOB), CAST(headers AS BLOB), CAST(body AS BLOB), order_key, attempts"
            )),
            sent: text(format!(
                "DELETE FROM {t} WHERE seq IN (SELECT value FROM json_each(?1)) AND token = ?2"
            )),
            failed: text(format!(
                "UPDATE {t} SET state = CASE WHEN f.delay IS NULL THEN 'dead' ELSE 'failed' END, due_at = {NOW} + ?3 + f.delay, attempts = attempts + 1, reason = f.reason, token = NULL FROM (SELECT value ->> 0 AS id, value ->> 1 AS delay, value ->> 2 AS reason FROM json_each(?1)) f WHERE {t}.id = f.id AND token = ?2"
            )),
            release: text(format!(
                "UPDATE {t} SET state = 'pending', token = NULL, due_at = NULL WHERE id IN (SELECT value FROM json_each(?1)) AND token = ?2"
            )),
            promote: text(format!(
                "UPDATE {t} SET held = 0 WHERE held = 1 AND seq IN (SELECT {} FROM json_each(?1) k)",
                first("k.value")
            )),
            mend: text(format!(
                "UPDATE {t} SET held = 0 WHERE held = 1 AND seq IN (SELECT {} FROM (SELECT DISTINCT order_key FROM {t} WHERE held = 1) k)",
                first("k.order_key")
            )),
            unknown_kinds: text(unknown_kinds(t, "state = 'pending' AND held = 0")),
            stats: text(format!(
                "SELECT kind, state, held, count(*), max({NOW} + ?1 - enqueued_at) FROM {t} GROUP BY kind, state, held"
            )),
            dead: text(format!(
                "SELECT id, kind, name, subject, order_key, attempts, coalesce(reason, '') FROM {t} WHERE state = 'dead' ORDER BY seq LIMIT ?1"
            )),
            redrive: text(format!(
                "UPDATE {t} SET state = 'pending', attempts = 0, reason = NULL, held = EXISTS (SELECT 1 FROM {t} o WHERE o.order_key = {t}.order_key AND o.state IN ('leased', 'failed')) WHERE id = ?1 AND state = 'dead'"
            )),
            hold_others: text(format!(
                "UPDATE {t} SET held = 1 WHERE order_key = (SELECT order_key FROM {t} WHERE id = ?1) AND state = 'pending' AND id <> ?1"
            )),
            inbox_insert: text(format!(
                "INSERT INTO {inbox} (consumer, root_id, handled_at) VALUES (?1, ?2, {NOW} + ?3) ON CONFLICT (consumer, root_id) DO NOTHING"
            )),
            inbox_result: text(format!("SELECT result FROM {inbox} WHERE consumer = ?1 AND root_id = ?2")),
            inbox_store: text(format!("UPDATE {inbox} SET result = ?3 WHERE consumer = ?1 AND root_id = ?2")),
        }
    }
}

fn json(values: &[String]) -> String {
    serde_json::Value::from(values).to_string()
}

impl Store for Sqlite {
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const SINGLE_WRITER: bool = true;
    const FAILED_STATEMENT_ABORTS: bool = false;
    type Sql = Sql;

    fn sql(tables: &Tables, config: &OutboxConfig) -> Sql {
        Sql::new(tables, config)
    }

    fn fault(error: &sqlx::Error) -> Fault {
        let Some(error) = error.as_database_error() else { return Fault::Other };
        // The low byte of an extended result code is the primary one: 5 is BUSY, 6 is LOCKED.
        let primary = error.code().and_then(|code| code.parse::<i32>().ok()).map(|code| code & 0xff);
        match primary {
            Some(5 | 6) => Fault::Busy,
            _ if error.message().starts_with("no such table") => Fault::NoTable,
            _ => Fault::Other,
        }
    }

    async fn verify(pool: &Pool<Self>, sql: &Sql) -> Result<()> {
        sqlx::query(statement(&sql.verify)).execute(pool).await.map(drop)
    }

    async fn ping(_: &mut SqliteConnection) -> Result<()> {
        Ok(())
    }

    async fn execute(conn: &mut SqliteConnection, sql: &'static str) -> Result<()> {
        sqlx::query(sql).execute(conn).await.map(drop)
    }

    async fn lock_key(_: &mut SqliteConnection, _: i64) -> Result<()> {
        Ok(())
    }

    async fn insert(conn: &mut SqliteConnection, sql: &Sql, row: &NewRow, offset: i64) -> Result<bool> {
        let query = sqlx::query(statement(&sql.insert))
            .bind(&row.id)
            .bind(row.kind)
            .bind(row.name)
            .bind(&row.subject)
            .bind(&row.headers)
            .bind(&row.body)
            .bind(&row.order_key)
            .bind(offset);
        Ok(query.execute(conn).await?.rows_affected() == 1)
    }

    async fn find(conn: &mut SqliteConnection, sql: &Sql, id: &str) -> Result<Option<StoredRow>> {
        let row = sqlx::query(statement(&sql.find)).bind(id).fetch_optional(conn).await?;
        row.map(|row| {
            Ok(StoredRow {
                kind: row.try_get(0)?,
                name: row.try_get(1)?,
                subject: row.try_get(2)?,
                body: row.try_get(3)?,
                order_key: row.try_get(4)?,
            })
        })
        .transpose()
    }

    async fn claim(pool: &Pool<Self>, sql: &Sql, by: ClaimBy<'_>, offset: i64) -> Result<Claim> {
        let found = sqlx::query(statement(&sql.claim))
            .bind(by.token)
            .bind(by.page)
            .bind(by.lease_ms)
            .bind(by.horizon_ms)
            .bind(offset)
            .bind(by.bytes)
            .fetch_all(pool)
            .await?;
        let mut rows = found.iter().map(claimed).collect::<Result<Vec<_>>>()?;
        rows.sort_unstable_by_key(|row| row.seq);
        Ok(Claim { rows, behind: Vec::new() })
    }

    async fn hold(_: &Pool<Self>, _: &Sql, _: &[String]) -> Result<()> {
        Ok(())
    }

    async fn sent(
        pool: &Pool<Self>,
        sql: &Sql,
        token: &str,
        rows: &[&ClaimedRow],
        keys: &[String],
    ) -> Result<u64> {
        let numbers: serde_json::Value = rows.iter().map(|row| row.seq).collect();
        let query = sqlx::query(statement(&sql.sent)).bind(numbers.to_string()).bind(token);
        if keys.is_empty() {
            return Ok(query.execute(pool).await?.rows_affected());
        }
        let (mut tx, ()) = begin(pool, ()).await?;
        let sent = query.execute(&mut *tx).await?.rows_affected();
        sqlx::query(statement(&sql.promote)).bind(json(keys)).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(sent)
    }

    async fn failed(
        pool: &Pool<Self>,
        sql: &Sql,
        token: &str,
        failures: &[Failure],
        keys: &[String],
        offset: i64,
    ) -> Result<u64> {
        let failures: Vec<_> = failures.iter().map(|f| (&f.id, f.retry_in_ms, &f.reason)).collect();
        let failures = serde_json::to_string(&failures).map_err(|error| sqlx::Error::Encode(error.into()))?;
        let query = sqlx::query(statement(&sql.failed)).bind(failures).bind(token).bind(offset);
        let (mut tx, ()) = begin(pool, ()).await?;
        let failed = query.execute(&mut *tx).await?.rows_affected();
        if !keys.is_empty() {
            sqlx::query(statement(&sql.promote)).bind(json(keys)).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(failed)
    }

    async fn release(pool: &Pool<Self>, sql: &Sql, token: &str, ids: &[String]) -> Result<u64> {
        let query = sqlx::query(statement(&sql.release)).bind(json(ids)).bind(token);
        Ok(query.execute(pool).await?.rows_affected())
    }

    async fn mend(pool: &Pool<Self>, sql: &Sql) -> Result<u64> {
        Ok(sqlx::query(statement(&sql.mend)).execute(pool).await?.rows_affected())
    }

    async fn unknown_kinds(pool: &Pool<Self>, sql: &Sql) -> Result<Vec<String>> {
        sqlx::query_scalar(statement(&sql.unknown_kinds)).fetch_all(pool).await
    }

    async fn stats(pool: &Pool<Self>, sql: &Sql, offset: i64) -> Result<OutboxStats> {
        let mut stats = OutboxStats::default();
        for row in sqlx::query(statement(&sql.stats)).bind(offset).fetch_all(pool).await? {
            let (kind, state, held): (String, String, bool) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            stats.count(kind, &state, held, row.try_get(3)?, row.try_get(4)?);
        }
        Ok(stats)
    }

    async fn dead(pool: &Pool<Self>, sql: &Sql, limit: i64) -> Result<Vec<DeadRow>> {
        let rows = sqlx::query(statement(&sql.dead)).bind(limit).fetch_all(pool).await?;
        rows.iter()
            .map(|row| {
                Ok(DeadRow {
                    id: row.try_get(0)?,
                    kind: row.try_get(1)?,
                    name: row.try_get(2)?,
                    subject: row.try_get(3)?,
                    order_key: row.try_get(4)?,
                    attempts: row.try_get::<i32, _>(5)?.cast_unsigned(),
                    reason: row.try_get(6)?,
                })
            })
            .collect()
    }

    async fn redrive(pool: &Pool<Self>, sql: &Sql, id: &str) -> Result<bool> {
        let (mut tx, ()) = begin(pool, ()).await?;
        let redriven =
            sqlx::query(statement(&sql.redrive)).bind(id).execute(&mut *tx).await?.rows_affected() == 1;
        if redriven {
            // Where dead rows are skipped, a later row of its key may be next: the older one goes first.
            sqlx::query(statement(&sql.hold_others)).bind(id).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(redriven)
    }

    async fn inbox_insert(
        conn: &mut SqliteConnection,
        sql: &Sql,
        consumer: &str,
        root_id: &str,
        offset: i64,
    ) -> Result<bool> {
        let query = sqlx::query(statement(&sql.inbox_insert)).bind(consumer).bind(root_id).bind(offset);
        Ok(query.execute(conn).await?.rows_affected() == 1)
    }

    async fn inbox_result(
        conn: &mut SqliteConnection,
        sql: &Sql,
        consumer: &str,
        root_id: &str,
    ) -> Result<Option<String>> {
        let query = sqlx::query_scalar(statement(&sql.inbox_result)).bind(consumer).bind(root_id);
        Ok(query.fetch_optional(conn).await?.flatten())
    }

    async fn inbox_store(
        conn: &mut SqliteConnection,
        sql: &Sql,
        consumer: &str,
        root_id: &str,
        result: &str,
    ) -> Result<()> {
        let query = sqlx::query(statement(&sql.inbox_store)).bind(consumer).bind(root_id).bind(result);
        query.execute(conn).await.map(drop)
    }
}

fn claimed(row: &SqliteRow) -> Result<ClaimedRow> {
    let text = |at: usize| -> Result<String> {
        let bytes: Option<Vec<u8>> = row.try_get(at)?;
        let read = String::from_utf8(bytes.unwrap_or_default());
        Ok(read.unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned()))
    };
    Ok(ClaimedRow {
        seq: row.try_get(0)?,
        id: row.try_get(1)?,
        name: text(2)?,
        subject: text(3)?,
        headers: text(4)?,
        body: row.try_get(5)?,
        order_key: row.try_get(6)?,
        attempts: row.try_get::<i32, _>(7)?.cast_unsigned(),
    })
}
