//! Real servers for tests, demos and benchmarks: found, fetched, started, stopped.
//!
//! [`nats`] finds or fetches a `nats-server` and runs it, alone or as a cluster of three; [`postgres`] does the same
//! for a single PostgreSQL; [`Process`] runs any other program that a proof wants to stop, suspend or kill.
//! Everything binds to 127.0.0.1 on a free port and lives in a temporary directory that goes with it.
//!
//! ```no_run
//! use testbed::{nats, postgres};
//!
//! # fn main() -> Result<(), testbed::Error> {
//! let mut server = nats::Server::start(&nats::find()?, nats::Options::default())?;
//! let cluster = postgres::Cluster::shared()?;
//! println!("{} {}", server.url(), cluster.fresh_database()?);
//! server.kill()?;
//! server.restart()?; // same port, same store
//! # Ok(())
//! # }
//! ```
//!
//! What is started here ends when its owner is dropped. A process that is killed drops nothing: on Linux its
//! servers are then ended by the kernel (through `setpriv --pdeathsig`, where util-linux is installed); elsewhere they
//! stay behind, as does the temporary directory everywhere.

mod account;
mod cache;
mod command;
mod deadline;
mod error;
mod launch;
pub mod nats;
mod port;
pub mod postgres;
mod process;
mod programs;
mod signal;
mod spawner;
mod version;
mod wheel;

pub use cache::cache_dir;
pub use deadline::Stopwatch;
pub use error::Error;
pub use launch::Launch;
pub use port::free_port;
pub use process::Process;
pub use version::Version;
