//! nats-server: found or fetched, then run.

mod binary;
mod config;
mod probe;
mod server;

pub use binary::{NatsBinary, OLDEST, PINNED, VARIABLE, fetch, find};
pub use config::Options;
pub use server::Server;
