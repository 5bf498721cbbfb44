//! Typed contracts for services on NATS JetStream and SQL: the contract layer.
//!
//! A service says what it owns once, as a Rust module under [`#[trellis::contract]`](contract).
//! From it come the typed facade (`ctx.event.orders.created.enqueue(..)`), handler traits, JSON
//! Schemas and a [`Manifest`]. This crate has no async runtime, no database and no broker below
//! it, so that a consumer depends on a provider's contract without pulling in an engine.
//! `trellis-runtime` is the engine.
//!
#![doc = include_str!("../docs/first-example.md")]
//!
//! # Where next
//!
//! * [`contract`]: the whole grammar of a contract module.
//! * [`On`] and [`Service`]: how a service handles events.
//! * [`Outbox`]: the port through which an enqueue joins your transaction.
//! * `ARCHITECTURE.md` in the repository: the words, the rooms, the guarantees and their limits.

// `#[trellis::contract]` expands to `::trellis::…`; make that path work in here too.
extern crate self as trellis;

mod event;
mod field;
mod group;
mod handler;
mod manifest;
mod message;
mod outbox;
pub mod schema;
pub mod subject;

pub use event::{Event, EventDeclaration, EventHandle};
pub use field::FieldError;
pub use group::{Group, GroupDeclaration, Mount, Registrar, Replay};
pub use handler::{HandlerError, On, Received, Service};
pub use manifest::{Contract, EventSpec, GroupSpec, Manifest, ManifestBuilder, MemberSpec};
pub use message::{InvalidMessageId, Message, MessageId, Payload, PayloadError};
pub use outbox::{Enqueue, Outbox};
pub use trellis_macros::{contract, event, group};

/// Paths for generated code. Not public API; exempt from semver.
#[doc(hidden)]
pub mod __private {
    pub use crate::event::{Event, EventDeclaration, EventHandle};
    pub use crate::group::{Group, GroupDeclaration, Mount, Registrar, Replay};
    pub use crate::handler::{On, Service};
    pub use crate::manifest::{Contract, Manifest, ManifestBuilder};
    pub use ::core;
    pub use ::std;
    pub use ::{schemars, serde};
}
