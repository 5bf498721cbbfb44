//! The whole system on real servers. One binary: each further one would link everything again.
#![expect(unreachable_pub, reason = "tests")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails is to panic")]

mod support;

mod dead_letters;
mod dispatcher;
mod events;
mod faults;
mod host;
mod jobs;
mod order;
mod outbox_jobs;
mod outbox_port;
mod poison;
mod transaction;
mod versions;
