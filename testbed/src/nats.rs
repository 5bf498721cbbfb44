//! nats-server: found or fetched, then run, alone or as a cluster.

mod binary;
mod client;
mod cluster;
mod config;
mod election;
mod monitor;
mod probe;
mod server;

pub use binary::{NatsBinary, OLDEST, PINNED, VARIABLE, fetch, find};
pub use cluster::Cluster;
pub use config::Options;
pub use server::Server;
