//! What became of a job's row: pure.
use crate::broker::First;
use crate::outbox::job::Content;
use crate::outbox::outcome::{Rejection, SubmissionOutcome};

/// A row that is to become the first entry of its job's log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own<'a> {
    /// Names its append, however often it is sent.
    pub(crate) append_id: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// How the row stands with the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Stored as the first entry of its log.
    Stored,
    /// Refused, because something is in its log.
    Occupied,
    /// Not sent: its first send is longer ago than logs are kept for certain.
    Expired,
}

/// What becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is decided; `repeated` if the broker had the job before this send.
    Decided { outcome: SubmissionOutcome, repeated: bool },
    /// Nothing is known: try again.
    Again(String),
    /// Nothing can be known any more.
    Unknown(&'static str),
}

/// Decide by how the row stands and by what is first in its log, as far as that was read.
pub(crate) fn decide(own: Own<'_>, standing: Standing, first: Option<&First>) -> Verdict {
    let accepted = |existing: bool, repeated: bool| Verdict::Decided {
        outcome: SubmissionOutcome::Accepted { existing },
        repeated,
    };
    let Some(first) = first else {
        return match standing {
            Standing::Stored => accepted(false, false),
            // It cannot be empty: only one who lags can say so. Or somebody purged it.
            Standing::Occupied => {
                Verdict::Again("the log of the job cannot be found, though something is in it".to_owned())
            }
            Standing::Expired => Verdict::Unknown("and its log is empty or gone"),
        };
    };
    let is_own = own.append_id.is_some_and(|id| first.append_id.as_deref() == Some(id));
    if is_own {
        return accepted(false, standing != Standing::Stored);
    }
    let there = Content::of(&first.body);
    match standing {
        _ if there.is_same(&Content::of(own.body)) => accepted(true, true),
        Standing::Expired => Verdict::Unknown("and its log is of another job now"),
        _ if there == Content::Later => {
            Verdict::Again("a later version wrote what is first in the log of the job".to_owned())
        }
        Standing::Stored | Standing::Occupied => Verdict::Decided {
            outcome: SubmissionOutcome::Rejected { reason: Rejection::DuplicateId },
            repeated: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Own, Standing, Verdict, decide};
    use crate::broker::First;
    use crate::outbox::outcome::{Rejection, SubmissionOutcome};

    const BODY: &[u8] = br#"{"v":1,"timestamp":"a","payload":{"a":1}}"#;
    const SAME: &[u8] = br#"{"v":1,"timestamp":"b","payload":{"a":1}}"#;
    const OTHER: &[u8] = br#"{"v":1,"timestamp":"a","payload":{"a":2}}"#;
    const ENDED: &[u8] = br#"{"v":1,"timestamp":"a","result":1}"#;
    const LATER: &[u8] = br#"{"v":2,"payload":{"a":1}}"#;

    #[test]
    fn a_row_is_decided_by_what_is_first_in_its_log() {
        use Standing::{Expired, Occupied, Stored};
        let accepted = |existing, repeated| Verdict::Decided {
            outcome: SubmissionOutcome::Accepted { existing },
            repeated,
        };
        let rejected = || Verdict::Decided {
            outcome: SubmissionOutcome::Rejected { reason: Rejection::DuplicateId },
            repeated: false,
        };
        let first = |id: Option<&str>, body: &'static [u8]| {
            let append_id = id.map(str::to_owned);
            Some(First { subject: "s".to_owned(), append_id, body: body.into() })
        };
        let again = |part| Err::<Verdict, _>(part);
        let unknown = |part| Err::<Verdict, _>(part);
        for (standing, first, expected) in [
            (Stored, None, Ok(accepted(false, false))),
            (Occupied, first(Some("own"), BODY), Ok(accepted(false, true))),
            (Occupied, first(Some("own"), OTHER), Ok(accepted(false, true))),
            (Occupied, first(Some("else"), SAME), Ok(accepted(true, true))),
            (Occupied, first(None, SAME), Ok(accepted(true, true))),
            (Occupied, first(Some("else"), OTHER), Ok(rejected())),
            (Occupied, first(Some("else"), ENDED), Ok(rejected())),
            (Occupied, first(None, b"rubbish"), Ok(rejected())),
            (Occupied, first(Some("else"), LATER), again("later version")),
            (Occupied, None, again("cannot be found")),
            (Expired, None, unknown("empty or gone")),
            (Expired, first(Some("own"), BODY), Ok(accepted(false, true))),
            (Expired, first(Some("else"), SAME), Ok(accepted(true, true))),
            (Expired, first(Some("else"), OTHER), unknown("another job")),
            (Expired, first(Some("else"), LATER), unknown("another job")),
        ] {
            let own = Own { append_id: Some("own"), body: BODY };
            let verdict = decide(own, standing, first.as_ref());
            match (&verdict, expected) {
                (Verdict::Again(reason), Err(part)) => assert!(reason.contains(part), "{reason}"),
                (Verdict::Unknown(reason), Err(part)) => assert!(reason.contains(part), "{reason}"),
                (verdict, expected) => assert_eq!(Ok(verdict.clone()), expected, "{standing:?} {first:?}"),
            }
        }
        // A row without a name of its own is never taken for what is there by name.
        let nameless = Own { append_id: None, body: BODY };
        assert_eq!(decide(nameless, Occupied, first(None, OTHER).as_ref()), rejected());
    }
}
