//! What became of a job that was created in a transaction.
use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The format in which outcomes are stored.
const VERSION: u32 = 1;
const ACCEPTED: &str = "accepted";
const REJECTED: &str = "rejected";
const DUPLICATE_ID: &str = "duplicate-id";

/// How far the submission of a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmissionState {
    /// The outbox has no row for it: it was not created here, its transaction is not committed, or
    /// its outcome was kept for its time and removed.
    Unknown,
    /// It is committed, and waits to be sent or is being sent.
    Pending,
    /// It is decided what became of it.
    Decided(SubmissionOutcome),
}

impl SubmissionState {
    /// The outcome, once it is decided.
    pub fn outcome(&self) -> Option<&SubmissionOutcome> {
        match self {
            Self::Decided(outcome) => Some(outcome),
            Self::Unknown | Self::Pending => None,
        }
    }
}

/// What became of a job that was created in a transaction. Variants and fields may be added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmissionOutcome {
    /// The job is in the log.
    #[non_exhaustive]
    Accepted {
        /// It was there before, created with the same id and payload by another call.
        existing: bool,
    },
    /// It was refused, and will not be tried again.
    #[non_exhaustive]
    Rejected {
        /// Why.
        reason: Rejection,
    },
    /// Its row was given up. As a rule the job does not exist, but a send whose answer was lost may
    /// have made it. [`SqlOutbox::redrive`](crate::SqlOutbox::redrive) starts the row again.
    #[non_exhaustive]
    Dead {
        /// Why, for people.
        reason: String,
    },
    /// A later version decided it in a way that this one has no word for.
    #[non_exhaustive]
    Other {
        /// That version's word.
        kind: String,
    },
}

impl SubmissionOutcome {
    /// Whether the job exists.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted { .. })
    }
}

/// Why a job was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// A job with this id and another payload exists.
    DuplicateId,
    /// A reason that a later version knows.
    Other(String),
}

impl Rejection {
    /// Its word, as it is stored: `duplicate-id`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::DuplicateId => DUPLICATE_ID,
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An outcome as it is stored. Later versions may add fields, and kinds.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    v: u32,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    existing: bool,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
}

impl SubmissionOutcome {
    /// The JSON that is stored.
    pub(crate) fn encode(&self) -> String {
        let stored = |kind: &str, existing: bool, reason: Option<&str>| {
            let (kind, reason) = (kind.to_owned().into(), reason.map(|reason| reason.to_owned().into()));
            // Strings, a number and a truth value always encode.
            serde_json::to_string(&Stored { v: VERSION, kind, existing, reason }).unwrap_or_default()
        };
        match self {
            Self::Accepted { existing } => stored(ACCEPTED, *existing, None),
            Self::Rejected { reason } => stored(REJECTED, false, Some(reason.as_str())),
            // Told by the row's state; for completeness.
            Self::Dead { reason } => stored("dead", false, Some(reason)),
            Self::Other { kind } => stored(kind, false, None),
        }
    }

    pub(crate) fn decode(stored: &str) -> serde_json::Result<Self> {
        let Stored { v, kind, existing, reason } = serde_json::from_str(stored)?;
        Ok(match (v, kind.as_ref()) {
            (VERSION, ACCEPTED) => Self::Accepted { existing },
            (VERSION, REJECTED) => Self::Rejected {
                reason: match reason.as_deref() {
                    Some(DUPLICATE_ID) => Rejection::DuplicateId,
                    word => Rejection::Other(word.unwrap_or_default().to_owned()),
                },
            },
            _ => Self::Other { kind: kind.into_owned() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Rejection, SubmissionOutcome};

    #[test]
    fn outcomes_are_stored_as_ever() {
        for (outcome, stored) in [
            (SubmissionOutcome::Accepted { existing: false }, r#"{"v":1,"kind":"accepted"}"#),
            (SubmissionOutcome::Accepted { existing: true }, r#"{"v":1,"kind":"accepted","existing":true}"#),
            (
                SubmissionOutcome::Rejected { reason: Rejection::DuplicateId },
                r#"{"v":1,"kind":"rejected","reason":"duplicate-id"}"#,
            ),
        ] {
            assert_eq!(outcome.encode(), stored);
            assert_eq!(SubmissionOutcome::decode(stored).unwrap(), outcome);
        }
    }

    #[test]
    fn what_later_versions_store_is_read() {
        let read = |stored: &str| SubmissionOutcome::decode(stored).unwrap();
        let other = |kind: &str| SubmissionOutcome::Other { kind: kind.to_owned() };
        assert_eq!(
            read(r#"{"v":1,"kind":"coalesced","existing":false,"key":"a","job":{}}"#),
            other("coalesced")
        );
        assert_eq!(read(r#"{"v":2,"kind":"accepted"}"#), other("accepted"));
        assert_eq!(
            read(r#"{"v":1,"kind":"rejected","reason":"queue-depth","queued":7}"#),
            SubmissionOutcome::Rejected { reason: Rejection::Other("queue-depth".to_owned()) }
        );
        for corrupt in ["", "{}", r#"{"v":1}"#, r#"{"v":-1,"kind":"accepted"}"#] {
            assert!(SubmissionOutcome::decode(corrupt).is_err(), "{corrupt}");
        }
    }
}
