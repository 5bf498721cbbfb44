#![doc = include_str!("../README.md")]
//!
//! # This crate
//!
//! It is the contract layer: what a service *says*. It has no async runtime, no database and no
//! broker below it, so that a consumer depends on a provider's contract without an engine;
//! `trellis-runtime` is the engine.
//!
//! * [`contract`]: the whole grammar of a contract module.
//! * [`On`], [`Work`] and [`Service`]: how a service handles events and works on jobs.
//! * [`Outbox`]: the port through which events and jobs join your transaction.

// `#[trellis::contract]` expands to `::trellis::…`; make that path work in here too.
extern crate self as trellis;

mod event;
mod field;
mod group;
mod handler;
mod job;
mod manifest;
mod message;
mod outbox;
pub mod schema;
pub mod subject;

pub use event::{Event, EventDeclaration, EventHandle};
pub use field::FieldError;
pub use group::{Group, GroupDeclaration, Mount, Registrar, Replay};
pub use handler::{HandlerError, On, Received, Service};
pub use job::{
    ActiveJob, Attempt, Boxed, Cancellation, Create, InvalidJobId, Job, JobDeclaration, JobError, JobFacts,
    JobHandle, JobId, JobRefs, LogLevel, LogLine, NoUpdate, Progress, Retry, Submission, Submit, Then,
    UpdateError, WaitKind, WaitTarget, Work,
};
pub use manifest::{Contract, EventSpec, GroupSpec, JobSpec, Manifest, ManifestBuilder, MemberSpec};
pub use message::{InvalidMessageId, Message, MessageId, Payload, PayloadError};
pub use outbox::{Enqueue, Outbox};
/// Declares a contract: what a service owns, as an inline module.
///
/// ```
/// /// Orders: accepted and given up.
/// #[trellis::contract(id = "acme.orders@v1")]
/// pub mod orders {
///     use schemars::JsonSchema;
///     use serde::{Deserialize, Serialize};
///
///     /// An order was accepted.
///     #[event("orders.created", params(region), order_by = customer_id)]
///     #[derive(Debug, Serialize, Deserialize, JsonSchema)]
///     pub struct OrderCreated {
///         pub order_id: u64,
///         pub customer_id: u64,
///         pub region: String,
///     }
///
///     /// An order was given up.
///     #[event("orders.cancelled", payload = Order)]
///     pub struct OrderCancelled;
///
///     #[derive(Debug, Serialize, Deserialize, JsonSchema)]
///     pub struct Order {
///         pub order_id: u64,
///     }
///
///     /// Sends the customer a receipt.
///     #[job("orders.send_receipt", result = Receipt, retry(tries = 8, longest = "1h"), deadline = "2d")]
///     #[derive(Debug, Serialize, Deserialize, JsonSchema)]
///     pub struct SendReceipt {
///         pub order_id: u64,
///         pub address: String,
///     }
///
///     #[derive(Debug, Serialize, Deserialize, JsonSchema)]
///     pub struct Receipt {
///         pub mail_id: String,
///     }
///
///     /// Keeps the stock in step.
///     #[group("stock", replay = "all")]
///     pub struct Stock(OrderCreated, OrderCancelled);
/// }
///
/// use trellis::{Contract, Event, Job};
///
/// assert_eq!(orders::Contract::ID, "acme.orders@v1");
/// assert_eq!(orders::OrderCreated::DECLARATION.params, ["region"]);
/// assert_eq!(orders::SendReceipt::DECLARATION.retry.tries, 8);
/// let handle = orders::EVENT.orders.created; // `ctx.event.orders.created` inside a handler
/// assert_eq!(size_of_val(&handle), 0);
/// let handle = orders::JOB.orders.send_receipt; // `ctx.job.orders.send_receipt` inside a handler
/// assert_eq!(size_of_val(&handle), 0);
/// ```
///
/// # Arguments
///
/// * `id = "acme.orders@v1"` (required): the identity, a dotted snake_case name and a version.
/// * `crate = ::path::to::trellis`: where this crate is, if not at `::trellis`. An absolute path, or
///   one that begins with `crate`, `self` (the contract module) or `super`.
///
/// # What may be in the module
///
/// Anything. Items under [`#[event]`](event), [`#[job]`](macro@job) and [`#[group]`](group) are declarations;
/// they stand directly in the module and are no product of another macro in it. Everything else stays as it
/// is. `#[cfg]` on a declaration holds for all that is generated for it. Doc comments flow into the
/// facade and the [`Manifest`]. The module is inline, because rustc does not show a macro what is in
/// another file: payloads can be elsewhere, `payload = path`.
///
/// # What is added to the module
///
/// * `Contract`: the contract as a type, with [`trellis::Contract`](trait@Contract).
/// * `event` and `job`: the types of the two facades, `event::Root` and `job::Root` above all: zero-sized,
///   `Copy`, one field per word.
/// * `EVENT` and `JOB`: those facades as values, for use where there is no context.
/// * an [`Event`] implementation per event and a [`Job`] implementation per job; a [`Group`] and a [`Mount`]
///   implementation per group.
pub use trellis_macros::contract;
/// Declares an event, on a struct or an enum directly in a [`contract`] module.
///
/// `#[event("orders.created", params(order_id, region), order_by = customer_id, payload = path::to::Type)]`
///
/// * The name is a path of snake_case words. It is the subject (`events.v1.orders.created`) and the path on
///   the facade (`ctx.event.orders.created`), so no word is a Rust keyword and no name continues another.
/// * `params(..)`: fields of the payload whose values follow the name in the subject, as its last tokens.
/// * `order_by = ..`: the field that is the ordering key. Events with the same key leave in the order of
///   their commits.
/// * `payload = ..`: what travels, if not the type itself. So two events can share a type, and a type
///   from elsewhere can be sent: `#[event("orders.cancelled", payload = model::Order)] pub struct OrderCancelled;`
///
/// Fields are named as on the wire, after serde's renaming: `order_id`, `r#type` or `"order-id"`. They hold
/// a string or an integer, always. That is checked here if the payload is in the module, except for what
/// the source does not tell: types from elsewhere, a hand-written `Serialize`, `#[serde(with = ..)]`.
///
/// The payload derives `Serialize`, `Deserialize` and `JsonSchema`.
pub use trellis_macros::event;
/// Declares a consumer group, on a tuple struct directly in a [`contract`] module.
///
/// `#[group("stock", replay = "all")] pub struct Stock(orders::OrderCreated, orders::OrderCancelled);`
///
/// * The name is one snake_case word, unique in the contract.
/// * `replay`: where the group begins when it is started for the first time, with `"new"` events (the
///   default) or with `"all"` that the stream still holds.
/// * The fields are the events it consumes, of this contract or of others. They are a list and no data:
///   the struct becomes a unit struct, to be named in `.mount::<Stock>()`, which requires [`On`] for each.
pub use trellis_macros::group;
/// Declares a job, on a struct or an enum directly in a [`contract`] module.
///
/// `#[job("orders.send_receipt", payload = path::to::Type, result = path::to::Type, update = path::to::Type,
/// retry(tries = 8, first = "1s", longest = "10m", explicit), deadline = "2d")]`
///
/// * The name is a path of snake_case words and the path on the facade (`ctx.job.orders.send_receipt`), so no
///   word is a Rust keyword and no name continues another. An event may have the same name.
/// * `payload = ..`: what the job is created with, if not the type itself.
/// * `result = ..`: what it ends with, `()` by default.
/// * `update = ..`: what it tells on the way to who listens, [`NoUpdate`] by default.
/// * `retry(..)`: when a try follows a failed one, any of:
///   * `tries`: how many a run has, the first included, 1 to 1000; 5 by default.
///   * `first`, `longest`: the longest delay before the second try, and the longest of all, up to `"30d"`;
///     `"5s"` and `"10m"` by default.
///   * `explicit`: only [`JobError::retry`] and [`JobError::retry_after`] retry. `retry = "explicit"` says
///     that alone.
/// * `deadline = ..`: how long after its submission the job must have ended, up to `"365d"`; no limit by default.
///
/// Durations are whole numbers with the units `d`, `h`, `m`, `s` and `ms`: `"10m"`, `"1h30m"`.
///
/// Payload, result and update derive `Serialize`, `Deserialize` and `JsonSchema`. A service works on the
/// job with [`Work`].
pub use trellis_macros::job;

/// Paths for generated code. Not public API; exempt from semver.
#[doc(hidden)]
pub mod __private {
    pub use crate::event::{Event, EventDeclaration, EventHandle};
    pub use crate::group::{Group, GroupDeclaration, Mount, Registrar, Replay};
    pub use crate::handler::{On, Service};
    pub use crate::job::{Job, JobDeclaration, JobHandle, NoUpdate, Retry};
    pub use crate::manifest::{Contract, Manifest, ManifestBuilder};
    pub use ::{core, std};
    // No trait that a user may forget to derive: an error would call it by this path.
    pub use ::schemars::{Schema, SchemaGenerator};
    pub use ::serde::de::{Deserializer, Error as DeserializeError};
    pub use ::serde::ser::Serializer;
}
