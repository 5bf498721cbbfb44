//! A row that is a job: its id, what its content is, what it must say to be sent.
use async_nats::HeaderMap;
use serde_json::value::RawValue;
use trellis::JobId;

use crate::wire::{APPEND_ID, EXPECTED_SEQUENCE, EXPECTED_SUBJECT, MESSAGE_ID};

/// The format of entries that this version reads.
const ENTRY_VERSION: u32 = 1;

/// The id of a job's row: of another form than any that is made for an event.
pub(crate) fn job_row_id(name: &str, id: &JobId) -> String {
    format!("job:{name}:{id}")
}

/// What an entry of a job's log says of the job's content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// The payload's JSON text.
    Payload(&'a str),
    /// Nothing that could be compared.
    None,
    /// A later version wrote it.
    Later,
}

impl<'a> Content<'a> {
    pub(crate) fn of(entry: &'a [u8]) -> Self {
        #[derive(serde::Deserialize)]
        struct Entry<'a> {
            v: u32,
            #[serde(default, borrow)]
            payload: Option<&'a RawValue>,
        }
        match serde_json::from_slice(entry) {
            Ok(Entry { v, .. }) if v > ENTRY_VERSION => Self::Later,
            Ok(Entry { payload: Some(payload), .. }) => Self::Payload(payload.get()),
            Ok(Entry { payload: None, .. }) | Err(_) => Self::None,
        }
    }

    /// Whether both have a payload, and the same, in whatever order its fields are written.
    pub(crate) fn is_same(&self, other: &Content<'_>) -> bool {
        let (Self::Payload(one), Content::Payload(other)) = (self, other) else { return false };
        // What is too deep or too large to be read is the same only to the letter.
        let value = |json| serde_json::from_str::<serde_json::Value>(json).ok();
        one == other || value(one).is_some_and(|one| Some(one) == value(other))
    }
}

/// All subjects of the job whose first entry goes to `subject`, as a filter.
pub(crate) fn tree_filter(subject: &str) -> String {
    let tree = subject.rsplit_once('.').map_or(subject, |(tree, _)| tree);
    format!("{tree}.>")
}

/// Whether an append is one that only begins a log. A server takes an expectation on subjects that
/// do not cover the message, and a message id would let it answer from memory.
pub(crate) fn check_append(subject: &str, headers: &HeaderMap) -> Result<(), String> {
    let header = |name: &str| headers.get(name).map(async_nats::HeaderValue::as_str);
    if header(APPEND_ID).is_none_or(str::is_empty) {
        Err(format!("a job's row has no {APPEND_ID}"))
    } else if header(EXPECTED_SEQUENCE) != Some("0")
        || header(EXPECTED_SUBJECT) != Some(tree_filter(subject).as_str())
    {
        Err("a job's row does not expect its log to be empty".to_owned())
    } else if header(MESSAGE_ID).is_some() {
        Err(format!("a job's row has a {MESSAGE_ID}"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Content, check_append, tree_filter};
    use crate::outbox::row::decode_headers;

    #[test]
    fn content_is_the_payload() {
        let first = Content::of(br#"{"v":1,"timestamp":"a","payload":{"a":1}}"#);
        assert_eq!(first, Content::Payload(r#"{"a":1}"#));
        assert!(first.is_same(&Content::of(br#"{"v":1,"timestamp":"b","payload":{"a":1}}"#)));
        assert!(!first.is_same(&Content::of(br#"{"v":1,"payload":{"a":2}}"#)));
        let fields = Content::of(br#"{"v":1,"payload":{"a":1,"b":2}}"#);
        assert!(fields.is_same(&Content::of(br#"{"v":1,"payload":{"b":2,"a":1}}"#)));
        let huge = Content::of(br#"{"v":1,"payload":1e999}"#);
        assert!(huge.is_same(&Content::of(br#"{"v":1,"payload":1e999}"#)));
        assert!(!huge.is_same(&Content::of(br#"{"v":1,"payload":2e999}"#)), "neither can be read");
        for none in [&b"{}"[..], b"rubbish", br#"{"v":1}"#, b"\xff"] {
            assert_eq!(Content::of(none), Content::None);
            assert!(!Content::of(none).is_same(&Content::of(none)), "nothing is no payload");
        }
        assert_eq!(Content::of(br#"{"v":2,"payload":1}"#), Content::Later);
        assert!(!Content::Later.is_same(&Content::Later));
    }

    #[test]
    fn only_an_append_that_expects_an_empty_log_is_sent() {
        let good = r#"{"Trellis-Append-Id":"x","Nats-Expected-Last-Subject-Sequence":"0","Nats-Expected-Last-Subject-Sequence-Subject":"a.b.>"}"#;
        let check = |headers: &str| check_append("a.b.created", &decode_headers(headers).unwrap());
        assert_eq!((check(good), tree_filter("a.b.created").as_str()), (Ok(()), "a.b.>"));
        for (from, to, says) in [
            (r#""x""#, r#""""#, "no Trellis-Append-Id"),
            (r#""0""#, r#""7""#, "expect"),
            ("a.b.>", "a.>", "expect"),
            ("a.b.>", "a.c.>", "expect"),
            (r#""0""#, r#""0","Nats-Msg-Id":"m""#, "Nats-Msg-Id"),
        ] {
            let error = check(&good.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(says), "{to}: {error}");
        }
    }
}
