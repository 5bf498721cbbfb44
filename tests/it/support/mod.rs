//! What the tests share: servers, databases, a contract.
pub mod contract;
pub mod database;
pub mod hand;
pub mod log;
pub mod nats;
pub mod proxy;
pub mod reader;
pub mod tap;

use std::future::Future;
use std::time::Duration;

pub use database::{Bed, TestDb};

/// Wait until `done` says so; panics with `what` after `limit`.
pub async fn until<F: Future<Output = bool>>(what: &str, limit: Duration, mut done: impl FnMut() -> F) {
    let waited = tokio::time::timeout(limit, async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "not within {limit:?}: {what}");
}

/// One test per database.
#[macro_export]
macro_rules! on_both_databases {
    ($($name:ident),* $(,)?) => {
        mod sqlite { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name::<sqlx::Sqlite>().await; })* }
        mod postgres { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name::<sqlx::Postgres>().await; })* }
    };
}
