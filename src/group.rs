//! Consumer groups: what a declaration says, and how its handlers reach an engine.
use serde::Serialize;

use crate::event::{Event, EventDeclaration};
use crate::handler::{On, Service};

/// A declared consumer group. Implemented by `#[group(..)]`, never by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a declared consumer group",
    label = "expected a type under `#[group(\"..\")]` in a `#[trellis::contract]` module"
)]
pub trait Group: Send + Sync + 'static {
    /// What the contract says of this group.
    const DECLARATION: GroupDeclaration;
    /// The events it consumes, in declared order.
    const MEMBERS: &'static [EventDeclaration];
}

/// What a contract says of one consumer group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupDeclaration {
    /// Identity of the consuming contract, e.g. `acme.warehouse@v1`.
    pub contract: &'static str,
    /// Name within that contract, e.g. `stock`.
    pub name: &'static str,
    /// Where the group begins when it is started for the first time.
    pub replay: Replay,
}

impl GroupDeclaration {
    /// A group that begins with events published after its first start.
    pub const fn new(contract: &'static str, name: &'static str) -> Self {
        Self { contract, name, replay: Replay::New }
    }

    /// The same, beginning elsewhere.
    #[must_use]
    pub const fn replay(mut self, replay: Replay) -> Self {
        self.replay = replay;
        self
    }
}

/// Where a consumer group begins when it is started for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Replay {
    /// With events published after that start.
    New,
    /// With the oldest event that the stream still holds.
    All,
}

/// Binds the handlers of `S` to a group's members. Implemented by `#[group(..)]`: the bounds are
/// the member list, so that a group with a forgotten handler does not compile.
pub trait Mount<S: Service>: Group {
    /// Register one handler per member.
    fn mount(registrar: &mut impl Registrar<S>);
}

/// The port through which handlers are registered on an engine.
pub trait Registrar<S: Service> {
    /// Register the handler of `E`.
    fn on<E: Event>(&mut self)
    where
        S: On<E>;
}
