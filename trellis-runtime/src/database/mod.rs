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
