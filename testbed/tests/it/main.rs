//! Real servers are started, stopped, killed and started again, and nothing is left behind.

mod cluster;
mod nats;
mod postgres;
mod process;
mod support;
