//! The PostgreSQL adapter.
mod sql;

pub(crate) use sql::Sql;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Pool, Postgres, Result, Row};

use crate::database::store::{ClaimBy, Fault, Store, statement};
use crate::outbox::{
    Claim, ClaimedRow, DeadRow, Decision, Failure, Kind, NewRow, OutboxConfig, OutboxStats, StoredRow,
    StoredSubmission, Tables,
};

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
            Some("42P01" | "42703") => Fault::NoTable,
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
            .bind(row.kind.name())
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
            .bind(&by.kinds[..])
            .fetch_all(pool)
            .await?;
        let mut claim = Claim::default();
        for row in &found {
            if row.try_get(0)? {
                claim.behind.push(row.try_get(2)?);
            } else {
                claim.rows.extend(claimed(row)?);
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

    async fn decided(
        pool: &Pool<Self>,
        sql: &Sql,
        token: &str,
        decisions: &[Decision],
        offset: i64,
    ) -> Result<u64> {
        let ids: Vec<&str> = decisions.iter().map(|decision| decision.id.as_str()).collect();
        let outcomes: Vec<&str> = decisions.iter().map(|decision| decision.outcome.as_str()).collect();
        let query = sqlx::query(statement(&sql.decided)).bind(ids).bind(outcomes).bind(token).bind(offset);
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
        let ids: Vec<&str> = failures.iter().map(|failure| failure.id.as_str()).collect();
        let delays: Vec<i64> = failures.iter().map(|failure| failure.retry_in_ms.unwrap_or(-1)).collect();
        let reasons: Vec<&str> = failures.iter().map(|failure| failure.reason.as_str()).collect();
        let unsent: Vec<bool> = failures.iter().map(|failure| failure.unsent).collect();
        let query = sqlx::query(statement(&sql.failed))
            .bind(ids)
            .bind(delays)
            .bind(reasons)
            .bind(token)
            .bind(offset)
            .bind(unsent);
        if keys.is_empty() {
            return Ok(query.execute(pool).await?.rows_affected());
        }
        let mut tx = sql.decide_heads(pool).await?;
        let failed = query.execute(&mut *tx).await?.rows_affected();
        sqlx::query(statement(&sql.promote)).bind(keys).execute(&mut *tx).await?;
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
        let query = sqlx::query(statement(&sql.release)).bind(ids).bind(token).bind(unsent);
        Ok(query.execute(pool).await?.rows_affected())
    }

    async fn mend(pool: &Pool<Self>, sql: &Sql) -> Result<u64> {
        let mut tx = sql.decide_heads(pool).await?;
        let mended = sqlx::query(statement(&sql.mend)).execute(&mut *tx).await?.rows_affected();
        tx.commit().await?;
        Ok(mended)
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

/// `None` for a kind that nobody asked for.
fn claimed(row: &PgRow) -> Result<Option<ClaimedRow>> {
    let Some(kind) = Kind::of(row.try_get(3)?) else { return Ok(None) };
    Ok(Some(ClaimedRow {
        seq: row.try_get(1)?,
        id: row.try_get(2)?,
        kind,
        name: row.try_get(4)?,
        subject: row.try_get(5)?,
        headers: row.try_get(6)?,
        body: row.try_get(7)?,
        order_key: row.try_get(8)?,
        attempts: row.try_get::<i32, _>(9)?.cast_unsigned(),
        sent_ago_ms: row.try_get(10)?,
    }))
}
