//! The SQLite adapter. One writer at a time, so the head of a key is decided where a row is written.
mod sql;

pub(crate) use sql::Sql;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Pool, Result, Row, Sqlite};

use crate::database::open::begin;
use crate::database::store::{ClaimBy, Fault, Store, statement};
use crate::outbox::{
    Claim, ClaimedRow, DeadRow, Decision, Failure, Kind, NewRow, OutboxConfig, OutboxStats, StoredRow,
    StoredSubmission, Tables,
};

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
            _ if error.message().starts_with("no such column") => Fault::NoTable,
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
            .bind(row.kind.name())
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
        let query = sqlx::query(statement(&sql.claim))
            .bind(by.token)
            .bind(by.page)
            .bind(by.lease_ms)
            .bind(by.horizon_ms)
            .bind(offset)
            .bind(by.bytes);
        let found = by.kinds.into_iter().fold(query, sqlx::query::Query::bind).fetch_all(pool).await?;
        let mut rows = found.iter().filter_map(|row| claimed(row).transpose()).collect::<Result<Vec<_>>>()?;
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

    async fn decided(
        pool: &Pool<Self>,
        sql: &Sql,
        token: &str,
        decisions: &[Decision],
        offset: i64,
    ) -> Result<u64> {
        let decisions: Vec<_> = decisions.iter().map(|decision| (decision.seq, &decision.outcome)).collect();
        let decisions =
            serde_json::to_string(&decisions).map_err(|error| sqlx::Error::Encode(error.into()))?;
        let query = sqlx::query(statement(&sql.decided)).bind(decisions).bind(token).bind(offset);
        Ok(query.execute(pool).await?.rows_affected())
    }

    async fn failed(
        pool: &Pool<Self>,
        sql: &Sql,
        token: &str,
        failures: &[Failure],
        keys: &[String],
        offset: i64,
    ) -> Result<u64> {
        let failures: Vec<_> = failures.iter().map(|f| (&f.id, f.retry_in_ms, &f.reason, f.unsent)).collect();
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

    async fn release(
        pool: &Pool<Self>,
        sql: &Sql,
        token: &str,
        ids: &[String],
        unsent: &[String],
    ) -> Result<u64> {
        let query = sqlx::query(statement(&sql.release)).bind(json(ids)).bind(token).bind(json(unsent));
        Ok(query.execute(pool).await?.rows_affected())
    }

    async fn mend(pool: &Pool<Self>, sql: &Sql) -> Result<u64> {
        Ok(sqlx::query(statement(&sql.mend)).execute(pool).await?.rows_affected())
    }

    async fn forget(pool: &Pool<Self>, sql: &Sql, older_ms: i64, limit: i64, offset: i64) -> Result<u64> {
        let query = sqlx::query(statement(&sql.forget)).bind(older_ms).bind(limit).bind(offset);
        Ok(query.execute(pool).await?.rows_affected())
    }

    async fn submission(pool: &Pool<Self>, sql: &Sql, id: &str) -> Result<Option<StoredSubmission>> {
        let row = sqlx::query(statement(&sql.submission)).bind(id).fetch_optional(pool).await?;
        row.map(|row| {
            Ok(StoredSubmission { state: row.try_get(0)?, outcome: row.try_get(1)?, reason: row.try_get(2)? })
        })
        .transpose()
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

/// `None` for a kind that nobody asked for.
fn claimed(row: &SqliteRow) -> Result<Option<ClaimedRow>> {
    let text = |at: usize| -> Result<String> {
        let bytes: Option<Vec<u8>> = row.try_get(at)?;
        let read = String::from_utf8(bytes.unwrap_or_default());
        Ok(read.unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned()))
    };
    let Some(kind) = Kind::of(row.try_get(2)?) else { return Ok(None) };
    Ok(Some(ClaimedRow {
        seq: row.try_get(0)?,
        id: row.try_get(1)?,
        kind,
        name: text(3)?,
        subject: text(4)?,
        headers: text(5)?,
        body: row.try_get(6)?,
        order_key: row.try_get(7)?,
        attempts: row.try_get::<i32, _>(8)?.cast_unsigned(),
        sent_ago_ms: row.try_get(9)?,
    }))
}
