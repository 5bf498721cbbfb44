//! The databases an engine runs on: one trait, one adapter per dialect, one way to begin.
mod open;
mod postgres;
mod sqlite;
mod store;

pub(crate) use open::begin;
pub(crate) use store::{ClaimBy, Fault, Store};

/// A database that an outbox and an inbox can live in: [`sqlx::Sqlite`] or [`sqlx::Postgres`].
///
/// Sealed: its workings are no public API.
#[expect(private_bounds, reason = "sealed: no other crate can implement `Store`")]
pub trait Database: sqlx::Database + Store {}

impl Database for sqlx::Sqlite {}
impl Database for sqlx::Postgres {}

/// What an error means, whichever database it comes from.
pub(crate) fn fault(error: &sqlx::Error) -> Fault {
    let of_sqlite = |error: &dyn sqlx::error::DatabaseError| {
        error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some()
    };
    if error.as_database_error().is_some_and(of_sqlite) {
        <sqlx::Sqlite as Store>::fault(error)
    } else {
        <sqlx::Postgres as Store>::fault(error)
    }
}
