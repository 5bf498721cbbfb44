//! The port to a database: what the engine asks of it, one method per question.
use std::future::Future;
use std::sync::Arc;

use sqlx::{Pool, Result};

use crate::outbox::{
    Claim, ClaimedRow, DeadRow, Decision, Failure, Kind, NewRow, OutboxConfig, OutboxStats, StoredRow,
    StoredSubmission, Tables,
};

/// What a claim is made with.
pub(crate) struct ClaimBy<'a> {
    pub(crate) token: &'a str,
    pub(crate) page: i64,
    pub(crate) lease_ms: i64,
    pub(crate) horizon_ms: i64,
    /// Bodies of a page end with the one that reaches this.
    pub(crate) bytes: i64,
    /// Whether rows of a kind are taken, in the order of [`Kind::ALL`].
    pub(crate) kinds: [bool; Kind::ALL.len()],
}

/// What an error of the database means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another writer holds SQLite's lock.
    Busy,
    /// Ended in favour of another transaction: deadlock or serialisation failure.
    Conflict,
    /// The statements before it in this transaction failed.
    Aborted,
    /// A table or one of its columns is missing.
    NoTable,
    Other,
}

/// One method per question to the database. `offset` is what is added to its clock, in milliseconds.
///
/// Conformance: `tests/it/{transaction,outbox_port,outbox_jobs,dispatcher,poison,order}.rs` run against every
/// implementation.
pub(crate) trait Store: sqlx::Database {
    /// Begins a transaction that writes.
    const BEGIN: &'static str;
    /// Whether one transaction writes at a time anyway.
    const SINGLE_WRITER: bool;
    /// Whether a failed statement spoils its transaction although COMMIT succeeds.
    const FAILED_STATEMENT_ABORTS: bool;
    /// The statements of one outbox.
    type Sql: Send + Sync + 'static;

    fn sql(tables: &Tables, config: &OutboxConfig) -> Self::Sql;
    fn fault(error: &sqlx::Error) -> Fault;

    fn verify(pool: &Pool<Self>, sql: &Self::Sql) -> impl Future<Output = Result<()>> + Send;
    /// Fails when the transaction cannot be committed.
    fn ping(conn: &mut Self::Connection) -> impl Future<Output = Result<()>> + Send;
    fn execute(conn: &mut Self::Connection, sql: &'static str) -> impl Future<Output = Result<()>> + Send;

    /// Hold a key until this transaction ends.
    fn lock_key(conn: &mut Self::Connection, lock: i64) -> impl Future<Output = Result<()>> + Send;
    /// False when a row with this id exists.
    fn insert(
        conn: &mut Self::Connection,
        sql: &Self::Sql,
        row: &NewRow,
        offset: i64,
    ) -> impl Future<Output = Result<bool>> + Send;
    fn find(
        conn: &mut Self::Connection,
        sql: &Self::Sql,
        id: &str,
    ) -> impl Future<Output = Result<Option<StoredRow>>> + Send;

    fn claim(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        by: ClaimBy<'_>,
        offset: i64,
    ) -> impl Future<Output = Result<Claim>> + Send;
    /// Take rows that are behind an earlier one of their key out of the claim's way.
    fn hold(pool: &Pool<Self>, sql: &Self::Sql, behind: &[String])
    -> impl Future<Output = Result<()>> + Send;
    /// Remove rows that were sent; the number that was still held under `token`.
    fn sent(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        token: &str,
        rows: &[&ClaimedRow],
        keys: &[String],
    ) -> impl Future<Output = Result<u64>> + Send;
    /// Record what became of jobs; the number that was still held under `token`.
    fn decided(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        token: &str,
        decisions: &[Decision],
        offset: i64,
    ) -> impl Future<Output = Result<u64>> + Send;
    /// Put rows off or to death; `keys` are those whose next row may go on.
    fn failed(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        token: &str,
        failures: &[Failure],
        keys: &[String],
        offset: i64,
    ) -> impl Future<Output = Result<u64>> + Send;
    /// Give rows back as if they had not been claimed. Those of them that are also `unsent` have never
    /// been sent.
    fn release(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        token: &str,
        ids: &[String],
        unsent: &[String],
    ) -> impl Future<Output = Result<u64>> + Send;
    /// Let the first row of each key go on: repairs what removals by hand left behind.
    fn mend(pool: &Pool<Self>, sql: &Self::Sql) -> impl Future<Output = Result<u64>> + Send;

    /// Remove jobs that were decided longer ago than `older_ms`, at most `limit`; how many.
    fn forget(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        older_ms: i64,
        limit: i64,
        offset: i64,
    ) -> impl Future<Output = Result<u64>> + Send;
    fn submission(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        id: &str,
    ) -> impl Future<Output = Result<Option<StoredSubmission>>> + Send;

    fn unknown_kinds(pool: &Pool<Self>, sql: &Self::Sql) -> impl Future<Output = Result<Vec<String>>> + Send;
    fn stats(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        offset: i64,
    ) -> impl Future<Output = Result<OutboxStats>> + Send;
    fn dead(
        pool: &Pool<Self>,
        sql: &Self::Sql,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<DeadRow>>> + Send;
    fn redrive(pool: &Pool<Self>, sql: &Self::Sql, id: &str) -> impl Future<Output = Result<bool>> + Send;

    /// False when this consumer has handled `root_id`; waits for a transaction that is about to.
    fn inbox_insert(
        conn: &mut Self::Connection,
        sql: &Self::Sql,
        consumer: &str,
        root_id: &str,
        offset: i64,
    ) -> impl Future<Output = Result<bool>> + Send;
    fn inbox_result(
        conn: &mut Self::Connection,
        sql: &Self::Sql,
        consumer: &str,
        root_id: &str,
    ) -> impl Future<Output = Result<Option<String>>> + Send;
    fn inbox_store(
        conn: &mut Self::Connection,
        sql: &Self::Sql,
        consumer: &str,
        root_id: &str,
        result: &str,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// A statement of one outbox: its table names are checked identifiers.
pub(crate) fn statement(sql: &Arc<str>) -> sqlx::AssertSqlSafe<Arc<str>> {
    sqlx::AssertSqlSafe(Arc::clone(sql))
}

/// Kinds of claimable rows in the gaps between the known ones, so that the index answers without
/// walking over known rows.
pub(crate) fn unknown_kinds(table: &str, claimable: &str) -> String {
    let mut kinds = Kind::ALL.map(Kind::name);
    kinds.sort_unstable();
    let from = |gap: String| {
        format!(
            "SELECT kind FROM (SELECT kind FROM {table} WHERE {claimable} AND {gap} ORDER BY kind LIMIT 1000) g"
        )
    };
    let after = |kind: &str| match kinds.iter().find(|next| **next > kind) {
        Some(next) => from(format!("kind > '{kind}' AND kind < '{next}'")),
        None => from(format!("kind > '{kind}'")),
    };
    let mut gaps: Vec<String> =
        kinds.first().map(|kind| from(format!("kind < '{kind}'"))).into_iter().collect();
    gaps.extend(kinds.iter().map(|kind| after(kind)));
    gaps.join(" UNION ")
}

/// What is in the table: one branch per partial index, so that rows which are decided are only
/// counted. `age` is the milliseconds since a row was enqueued, `no` a truth value.
pub(crate) fn stats(table: &str, age: &str, held: &str, not_held: &str, no: &str) -> String {
    let branch = |condition: &str| {
        format!(
            "SELECT kind, state, held, count(*), max({age}) FROM {table} WHERE {condition} GROUP BY kind, state, held"
        )
    };
    let live = [
        format!("state = 'pending' AND {not_held}"),
        held.to_owned(),
        "state IN ('leased', 'failed')".to_owned(),
        "state = 'dead'".to_owned(),
    ];
    let decided = format!(
        "SELECT kind, 'dispatched', {no}, count(*), 0 FROM {table} WHERE state = 'dispatched' GROUP BY kind"
    );
    let mut branches: Vec<String> = live.iter().map(|condition| branch(condition)).collect();
    branches.push(decided);
    branches.join(" UNION ALL ")
}
