//! Events: streams, consumer groups, deliveries, dead letters.
mod consumer;
mod dead_letter;
mod decide;
mod delivery;
mod group;
mod hold;
mod provision;
mod pull;
mod route;

pub use group::GroupConfig;
pub use provision::{ProvisionError, StreamConfig};

pub(crate) use group::{Group, GroupRunner};
pub(crate) use provision::Provision;
pub(crate) use pull::Binding;
pub(crate) use route::Routes;
