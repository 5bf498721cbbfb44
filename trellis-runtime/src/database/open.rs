//! Begin a transaction so that its connection stays clean wherever the caller's future is dropped.
use sqlx::{Pool, Transaction};

use crate::database::{Database, Store};

/// Begin a transaction that writes; `guard` is held while BEGIN is under way.
///
/// sqlx 0.9 leaves a transaction open on PostgreSQL when `begin()` is dropped between sending BEGIN
/// and its answer, and gives that connection to the next borrower (`docs/adr/0002`). So BEGIN runs
/// in a task that is never dropped half-way: an abandoned transaction is rolled back by its end.
pub(crate) async fn begin<D: Database, G: Send + 'static>(
    pool: &Pool<D>,
    guard: G,
) -> sqlx::Result<(Transaction<'static, D>, G)> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { Ok((pool.begin_with(<D as Store>::BEGIN).await?, guard)) });
    begun.await.map_err(|_| sqlx::Error::WorkerCrashed)?
}
