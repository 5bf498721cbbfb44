//! For tests: an outbox in memory, a clock that is set by hand, a broker with faults.
//!
//! Behind the feature `testing`. `tests/it/outbox_port.rs` in the repository runs one conformance
//! suite against the outbox in memory and the real ones.
mod broker;
mod clock;
mod memory;

pub use broker::{Fault, FaultyBroker, ReadFault};
pub use clock::ManualClock;
pub use memory::MemoryOutbox;
