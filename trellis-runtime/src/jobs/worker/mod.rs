//! Workers: one per kind of job that a service works on.
mod config;
pub(crate) mod current;
mod delivery;
mod keeper;
mod live;
mod notes;
mod pull;
mod queue;
mod route;
mod slots;

pub use config::{JobRetention, WorkerConfig};
pub(crate) use keeper::Keeper;
pub(crate) use live::Queue;
pub(crate) use queue::Worker;
pub(crate) use route::{Run, route};
