//! The contract that most tests use.

/// What tests enqueue.
#[trellis::contract(id = "test.notes@v1")]
pub mod notes {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// Something was noted.
    #[event("notes.added")]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Added {
        pub number: u64,
        pub text: String,
    }

    /// Something about a key changed.
    #[event("notes.moved", params(region), order_by = key)]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Moved {
        pub key: u64,
        pub region: String,
        #[schemars(range(min = 1))]
        pub step: u64,
    }

    /// A group over both.
    #[group("readers", replay = "all")]
    pub struct Readers(Added, Moved);
}

pub use notes::{Added, EVENT, Moved};

pub fn added(number: u64) -> Added {
    Added { number, text: format!("note {number}") }
}

pub fn moved(key: u64, step: u64) -> Moved {
    Moved { key, region: "e.u".to_owned(), step }
}
