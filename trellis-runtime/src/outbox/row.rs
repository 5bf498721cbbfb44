//! A row of the outbox, as it is written and as it is claimed.
use std::borrow::Cow;
use std::collections::BTreeMap;

use async_nats::HeaderMap;
use serde_json::value::RawValue;
use trellis::JobId;

/// Kinds of rows that this version can send. A kind names what the row is and the format of its
/// columns; rows of other kinds are left for processes that know them.
pub(crate) const KINDS: [&str; 2] = [EVENT, JOB];

/// An event to be published as it is.
pub(crate) const EVENT: &str = "event.v1";
/// A job: the first entry of its log, to be appended as it is where nothing is yet.
pub(crate) const JOB: &str = "job.create.v1";

/// The id of a job's row: of another form than any that is made for an event.
pub(crate) fn job_row_id(name: &str, id: &JobId) -> String {
    format!("job:{name}:{id}")
}

/// A row about to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRow {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    pub(crate) subject: String,
    /// JSON object of strings.
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
    pub(crate) order_key: Option<String>,
}

/// What a repeated enqueue of one id is compared with. Stamps and trace differ from call to call,
/// so headers are no part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRow {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) subject: String,
    pub(crate) body: Vec<u8>,
    pub(crate) order_key: Option<String>,
}

impl StoredRow {
    pub(crate) fn is_same_message(&self, row: &NewRow) -> bool {
        let Self { kind, name, subject, body, order_key } = self;
        (kind.as_str(), name.as_str(), subject, order_key)
            == (row.kind, row.name, &row.subject, &row.order_key)
            && is_same_content(row.kind, body, &row.body)
    }
}

/// Whether two bodies of one kind say the same. Those of jobs have a time and a trace of their own,
/// so their payloads are compared.
pub(crate) fn is_same_content(kind: &str, one: &[u8], other: &[u8]) -> bool {
    match kind {
        JOB => job_payload(one).is_some_and(|payload| Some(payload) == job_payload(other)),
        _ => one == other,
    }
}

/// The text of the payload in the first entry of a job's log.
fn job_payload(body: &[u8]) -> Option<&str> {
    #[derive(serde::Deserialize)]
    struct Entry<'a> {
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    serde_json::from_slice(body).ok().map(|Entry { payload }| payload.get())
}

/// A row that a dispatcher holds.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedRow {
    pub(crate) seq: i64,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) subject: String,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
    pub(crate) order_key: Option<String>,
    /// Failures so far.
    pub(crate) attempts: u32,
}

/// What one claim found.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    /// Rows held under the claim's token, in sequence order.
    pub(crate) rows: Vec<ClaimedRow>,
    /// Ids of rows that are not the first of their key.
    pub(crate) behind: Vec<String>,
}

/// What becomes of a row that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) id: String,
    pub(crate) reason: String,
    /// Milliseconds until it is due again; `None` when it is dead.
    pub(crate) retry_in_ms: Option<i64>,
}

/// Headers as they are stored.
pub(crate) fn encode_headers(headers: &[(&str, &str)]) -> String {
    let headers: serde_json::Map<String, serde_json::Value> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    serde_json::Value::Object(headers).to_string()
}

/// Text of a JSON document, copied only where it has escapes.
#[derive(serde::Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Headers as they are sent; the error says what is wrong with the stored ones.
pub(crate) fn decode_headers(stored: &str) -> Result<HeaderMap, String> {
    let pairs: BTreeMap<Text<'_>, Text<'_>> = serde_json::from_str(stored)
        .map_err(|error| format!("stored headers are no JSON object of strings: {error}"))?;
    let mut headers = HeaderMap::new();
    for (Text(name), Text(value)) in pairs {
        let parsed_name = name.parse::<async_nats::HeaderName>();
        let parsed_name =
            parsed_name.map_err(|_| format!("stored header name {name:?} is no header name"))?;
        let parsed_value = value.parse::<async_nats::HeaderValue>();
        let parsed_value =
            parsed_value.map_err(|_| format!("stored value of header {name:?} is no header value"))?;
        headers.insert(parsed_name, parsed_value);
    }
    Ok(headers)
}

/// The longest subject: servers refuse protocol lines over 4 KiB, and the reply inbox shares one.
pub(crate) const MAX_SUBJECT_BYTES: usize = 2048;

/// Whether a message can be published on `subject`; what is wrong with it if not. A server takes
/// wildcards for plain text, and consumers for wildcards.
pub(crate) fn check_subject(subject: &str) -> Result<(), String> {
    let is_odd = |token: &str| {
        token.is_empty()
            || token == "*"
            || token == ">"
            || token.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    // A server cuts the connection at a longer protocol line, and every message in flight with it.
    if subject.len() > MAX_SUBJECT_BYTES {
        return Err(format!("invalid subject: {} bytes, the limit is {MAX_SUBJECT_BYTES}", subject.len()));
    }
    match subject.split('.').find(|token| is_odd(token)) {
        Some(token) => Err(format!("invalid subject {subject:?}: {token:?} is no token to publish on")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{EVENT, JOB, check_subject, decode_headers, encode_headers, is_same_content};

    #[test]
    fn jobs_are_compared_by_their_payload() {
        let same = |one: &str, other: &str| is_same_content(JOB, one.as_bytes(), other.as_bytes());
        let first = r#"{"v":1,"timestamp":"a","payload":{"a":1}}"#;
        assert!(same(first, r#"{"v":1,"timestamp":"b","payload":{"a":1}}"#));
        assert!(!same(first, r#"{"v":1,"timestamp":"a","payload":{"a":2}}"#));
        assert!(!same("{}", "{}"), "nothing is no payload");
        assert!(!same("rubbish", "rubbish"));
        assert!(is_same_content(EVENT, b"rubbish", b"rubbish"));
    }

    #[test]
    fn a_subject_to_publish_on_has_plain_tokens() {
        assert_eq!(check_subject("events.v1.a~2E~b.ü"), Ok(()));
        assert!(check_subject(&"a".repeat(5000)).unwrap_err().contains("5000 bytes, the limit is 2048"));
        for bad in ["", "a..b", ".a", "a.", "a b", "a.*", "a.>", "a\r\nPUB b"] {
            assert!(check_subject(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn headers_read_back() {
        let stored = encode_headers(&[("Nats-Msg-Id", "a"), ("X", "é \"quoted\"")]);
        let headers = decode_headers(&stored).unwrap();
        assert_eq!(headers.get("Nats-Msg-Id").unwrap().as_str(), "a");
        assert_eq!(headers.get("X").unwrap().as_str(), "é \"quoted\"");
    }

    #[test]
    fn corrupt_headers_are_described() {
        for (stored, says) in [
            ("", "no JSON object"),
            ("[1]", "no JSON object"),
            (r#"{"a":1}"#, "no JSON object"),
            (r#"{"a b\u0000":"x"}"#, "no header name"),
            (r#"{"a":"x\r\ny: z"}"#, "no header value"),
        ] {
            let error = decode_headers(stored).unwrap_err();
            assert!(error.contains(says), "{stored}: {error}");
        }
    }
}
