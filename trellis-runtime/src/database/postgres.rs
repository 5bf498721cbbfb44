//! The PostgreSQL adapter.
use std::sync::Arc;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Pool, Postgres, Result, Row, Transaction};

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
    hold: Arc<str>,
    sent: Arc<str>,
    failed: Arc<str>,
    release: Arc<str>,
    promote: Arc<str>,
    mend: Arc<str>,
    unknown_kinds: Arc<str>,
    stats: Arc<str>,
    dead: Arc<str>,
    redrive: Arc<str>,
    inbox_insert: Arc<str>,
    inbox_result: Arc<str>,
    inbox_store: Arc<str>,
    /// Serialises what decides the head of a key: holding back and letting go on.
    heads_lock: i64,
}

/// The database's clock in milliseconds, stable within a statement so that an index can be searched by it.
const NOW: &str = "(extract(epoch from statement_timestamp()) * 1000)::bigint";

impl Sql {
    fn new(tables: &Tables, config: &OutboxConfig) -> Self {
        let (t, inbox) = (tables.outbox(), tables.inbox());
        // A row that keeps later rows of its key waiting.
        let live = match config.dead_key {
            DeadKey::Block => "TRUE",
            DeadKey::Skip => "h.state <> 'dead'",
        };
        let kinds = KINDS.map(|kind| format!("'{kind}'")).join(", ");
        let columns = "seq, id, name, subject, headers, body, order_key, attempts";
        let head = format!(
            "(SELECT h.id FROM {t} h WHERE h.order_key = k.order_key AND {live} ORDER BY h.seq LIMIT 1)"
        );
        let fresh = KINDS.map(|kind| {
            format!("(SELECT r.id, r.seq, r.order_key, octet_length(r.body) AS size FROM {t} r WHERE r.kind = '{kind}' AND r.state = 'pending' AND NOT r.held ORDER BY r.seq LIMIT $2 FOR UPDATE SKIP LOCKED)")
        }).join(" UNION ALL ");
        let due = |condition: &str| {
            format!(
                "SELECT r.id, octet_length(r.body) AS size FROM {t} r WHERE r.state IN ('leased', 'failed') AND {condition} AND r.kind IN ({kinds}) ORDER BY r.due_at LIMIT $2 / 4 + 1 FOR UPDATE SKIP LOCKED"
            )
        };
        let text = |sql: String| Arc::from(sql);
        Self {
            verify: text(format!("SELECT 1 FROM {t}, {inbox} LIMIT 0")),
            insert: text(format!(
                "INSERT INTO {t} (id, kind, name, subject, headers, body, order_key, enqueued_at) VALUES ($1, $2, $3, $4, $5, $6, $7, {NOW} + $8) ON CONFLICT (id) DO NOTHING"
            )),
            find: text(format!("SELECT kind, name, subject, body, order_key FROM {t} WHERE id = $1")),
            claim: text(format!(
                "WITH clock AS (SELECT {NOW} + $5 AS ms),
                 fresh AS MATERIALIZED (SELECT f.id, f.seq, f.size, f.order_key IS NOT NULL AND EXISTS (SELECT 1 FROM {t} h WHERE h.order_key = f.order_key AND h.seq < f.seq AND {live}) AS behind FROM ({fresh}) f ORDER BY f.seq LIMIT $2),
                 due AS MATERIALIZED ({}),
                 beyond AS MATERIALIZED ({}),
                 found AS (SELECT id, seq, size FROM fresh WHERE NOT behind UNION ALL SELECT id, 0, size FROM due UNION ALL SELECT id, 0, size FROM beyond),
                 page AS (SELECT id, sum(size) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - size AS before FROM found),
                 claimed AS (UPDATE {t} r SET state = 'leased', token = $1, due_at = (SELECT ms FROM clock) + $3 FROM page p WHERE r.id = p.id AND p.before < $6 RETURNING r.seq, r.id, r.name, r.subject, r.headers, r.body, r.order_key, r.attempts)
                 SELECT FALSE AS behind, {columns} FROM claimed UNION ALL SELECT TRUE, 0, id, '', '', '', ''::bytea, NULL, 0 FROM fresh WHERE behind",
                due("r.due_at <= (SELECT ms FROM clock)"),
                due("r.due_at > (SELECT ms FROM clock) + $4"),
            )),
            hold: text(format!(
                "UPDATE {t} r SET held = TRUE WHERE r.id = ANY($1) AND r.state = 'pending' AND EXISTS (SELECT 1 FROM {t} h WHERE h.order_key = r.order_key AND h.seq < r.seq AND {live})"
            )),
            sent: text(format!("DELETE FROM {t} WHERE id = ANY($1) AND token = $2")),
            failed: text(format!(
                "UPDATE {t} r SET state = CASE WHEN f.delay < 0 THEN 'dead' ELSE 'failed' END, due_at = CASE WHEN f.delay < 0 THEN NULL ELSE {NOW} + $5 + f.delay END, attempts = r.attempts + 1, reason = f.reason, token = NULL FROM unnest($1::text[], $2::bigint[], $3::text[]) AS f(id, delay, reason) WHERE r.id = f.id AND r.token = $4"
            )),
            release: text(format!(
                "UPDATE {t} SET state = 'pending', token = NULL, due_at = NULL WHERE id = ANY($1) AND token = $2"
            )),
            promote: text(format!(
                "UPDATE {t} SET held = FALSE WHERE held AND id IN (SELECT {head} FROM unnest($1::text[]) AS k(order_key))"
            )),
            mend: text(format!(
                "UPDATE {t} SET held = FALSE WHERE held AND id IN (SELECT {head} FROM (SELECT DISTINCT order_key FROM {t} WHERE held) k)"
            )),
            unknown_kinds: text(unknown_kinds(t, "state = 'pending' AND NOT held")),
            stats: text(format!(
                "SELECT kind, state, held, count(*), max({NOW} + $1 - enqueued_at) FROM {t} GROUP BY kind, state, held"
            )),
            dead: text(format!(
                "SELECT id, kind, name, subject, order_key, attempts, coalesce(reason, '') FROM {t} WHERE state = 'dead' ORDER BY seq LIMIT $1"
            )),
            redrive: text(format!(
                "UPDATE {t} SET state = 'pending', held = FALSE, attempts = 0, reason = NULL WHERE id = $1 AND state = 'dead'"
            )),
            inbox_insert: text(format!(
                "INSERT INTO {inbox} (consumer, root_id, handled_at) VALUES ($1, $2, {NOW} + $3) ON CONFLICT (consumer, root_id) DO NOTHING"
            )),
            inbox_result: text(format!("SELECT result FROM {inbox} WHERE consumer = $1 AND root_id = $2")),
            inbox_store: text(format!("UPDATE {inbox} SET result = $3 WHERE consumer = $1 AND root_id = $2")),
            heads_lock: tables.lock_id("heads", ""),
        }
    }

    /// Begin what decides the heads of keys. Its statements see everything that was decided before.
    async fn decide_heads(&self, pool: &Pool<Postgres>) -> Result<Transaction<'static, Postgres>> {
        let (mut tx, ()) = begin(pool, ()).await?;
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(self.heads_lock).execute(&mut *tx).await?;
        Ok(tx)
    }
}

impl Store for Postgres {
    const BEGIN: &'static str = "BEGIN ISOLATION LEVEL READ COMMITTED";
    const SINGLE_WRITER: bool = false;
    const FAILED_STATEMENT_ABORTS: bool = true;
    type Sql = Sql;

    fn sql(tables: &Tables, config: &OutboxConfig) -> Sql {
        Sql::new(tables, config)
    }

    fn fault(error: &sqlx::Error) -> Fault {
        match error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() {
            Some("40P01" | "40001") => Fault::Conflict,
            Some("25P02") => Fault::Aborted,
            Some("42P01") => Fault::NoTable,
            _ => Fault::Other,
        }
    }

    async fn verify(pool: &Pool<Self>, sql: &Sql) -> Result<()> {
        sqlx::query(statement(&sql.verify)).execute(pool).await.map(drop)
    }

    async fn ping(conn: &mut PgConnection) -> Result<()> {
        sqlx::query("SELECT 1").execute(conn).await.map(drop)
    }

    async fn execute(conn: &mut PgConnection, sql: &'static str) -> Result<()> {
        sqlx::query(sql).execute(conn).await.map(drop)
    }

    async fn lock_key(conn: &mut PgConnection, lock: i64) -> Result<()> {
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(lock).execute(conn).await.map(drop)
    }

    async fn insert(conn: &mut PgConnection, sql: &Sql, row: &NewRow, offset: i64) -> Result<bool> {
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

    async fn find(conn: &mut PgConnection, sql: &Sql, id: &str) -> Result<Option<StoredRow>> {
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
        let mut claim = Claim::default();
        for row in &found {
            if row.try_get(0)? {
                claim.behind.push(row.try_get(2)?);
            } else {
                claim.rows.push(claimed(row)?);
            }
        }
        claim.rows.sort_unstable_by_key(|row| row.seq);
        Ok(claim)
    }

    async fn hold(pool: &Pool<Self>, sql: &Sql, behind: &[String]) -> Result<()> {
        let mut tx = sql.decide_heads(pool).await?;
        sqlx::query(statement(&sql.hold)).bind(behind).execute(&mut *tx).await?;
        tx.commit().await
    }

    async fn sent(
        pool: &Pool<Self>,
        sql: &Sql,
        token: &str,
        rows: &[&ClaimedRow],
        keys: &[String],
    ) -> Result<u64> {
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let query = sqlx::query(statement(&sql.sent)).bind(ids).bind(token);
        if keys.is_empty() {
            return Ok(query.execute(pool).await?.rows_affected());
        }
        let mut tx = sql.decide_heads(pool).await?;
        let sent = query.execute(&mut *tx).await?.rows_affected();
        sqlx::query(statement(&sql.promote)).bind(keys).execute(&mut *tx).await?;
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
        let ids: Vec<&str> = failures.iter().map(|failure| failure.id.as_str()).collect();
        let delays: Vec<i64> = failures.iter().map(|failure| failure.retry_in_ms.unwrap_or(-1)).collect();
        let reasons: Vec<&str> = failures.iter().map(|failure| failure.reason.as_str()).collect();
        let query =
            sqlx::query(statement(&sql.failed)).bind(ids).bind(delays).bind(reasons).bind(token).bind(offset);
        if keys.is_empty() {
            return Ok(query.execute(pool).await?.rows_affected());
        }
        let mut tx = sql.decide_heads(pool).await?;
        let failed = query.execute(&mut *tx).await?.rows_affected();
        sqlx::query(statement(&sql.promote)).bind(keys).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(failed)
    }

    async fn release(pool: &Pool<Self>, sql: &Sql, token: &str, ids: &[String]) -> Result<u64> {
        let query = sqlx::query(statement(&sql.release)).bind(ids).bind(token);
        Ok(query.execute(pool).await?.rows_affected())
    }

    async fn mend(pool: &Pool<Self>, sql: &Sql) -> Result<u64> {
        let mut tx = sql.decide_heads(pool).await?;
        let mended = sqlx::query(statement(&sql.mend)).execute(&mut *tx).await?.rows_affected();
        tx.commit().await?;
        Ok(mended)
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
        let query = sqlx::query(statement(&sql.redrive)).bind(id);
        Ok(query.execute(pool).await?.rows_affected() == 1)
    }

    async fn inbox_insert(
        conn: &mut PgConnection,
        sql: &Sql,
        consumer: &str,
        root_id: &str,
        offset: i64,
    ) -> Result<bool> {
        let query = sqlx::query(statement(&sql.inbox_insert)).bind(consumer).bind(root_id).bind(offset);
        Ok(query.execute(conn).await?.rows_affected() == 1)
    }

    async fn inbox_result(
        conn: &mut PgConnection,
        sql: &Sql,
        consumer: &str,
        root_id: &str,
    ) -> Result<Option<String>> {
        let query = sqlx::query_scalar(statement(&sql.inbox_result)).bind(consumer).bind(root_id);
        Ok(query.fetch_optional(conn).await?.flatten())
    }

    async fn inbox_store(
        conn: &mut PgConnection,
        sql: &Sql,
        consumer: &str,
        root_id: &str,
        result: &str,
    ) -> Result<()> {
        let query = sqlx::query(statement(&sql.inbox_store)).bind(consumer).bind(root_id).bind(result);
        query.execute(conn).await.map(drop)
    }
}

fn claimed(row: &PgRow) -> Result<ClaimedRow> {
    Ok(ClaimedRow {
        seq: row.try_get(1)?,
        id: row.try_get(2)?,
        name: row.try_get(3)?,
        subject: row.try_get(4)?,
        headers: row.try_get(5)?,
        body: row.try_get(6)?,
        order_key: row.try_get(7)?,
        attempts: row.try_get::<i32, _>(8)?.cast_unsigned(),
    })
}
