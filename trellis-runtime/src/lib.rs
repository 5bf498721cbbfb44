//! The engine behind `trellis` contracts.
pub mod broker;
mod causes;
mod database;
mod outbox;
pub mod ports;
mod trace;
pub mod wire;
pub use database::Database;
pub use outbox::*;
