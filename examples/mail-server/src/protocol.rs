//! What travels: see the head of `main.rs`.
use serde::{Deserialize, Serialize};

/// A mail to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mail {
    pub(crate) key: String,
    pub(crate) to: String,
    pub(crate) subject: String,
}

/// What becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    Sent { mail: u64 },
    Busy,
    Later { after_ms: u64 },
    NoSuchAddress,
    Bad { reason: String },
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Entry {
    Taken {
        mail: u64,
        #[serde(flatten)]
        content: Mail,
    },
    Repeat {
        repeat: u64,
    },
}
