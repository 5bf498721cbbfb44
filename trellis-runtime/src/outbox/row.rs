//! A row of the outbox, as it is written and as it is claimed.
use std::borrow::Cow;
use std::collections::BTreeMap;

use async_nats::HeaderMap;

use crate::broker::Destination;
use crate::outbox::job::Content;

/// Kinds of rows that this version can send. A kind names what the row is and the format of its
/// columns; rows of other kinds are left for processes that know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An event to be published as it is.
    Event,
    /// A job: the first entry of its log, to be appended as it is where nothing is yet.
    Job,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Event, Self::Job];

    /// What the table says.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Event => "event.v1",
            Self::Job => "job.create.v1",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Where rows of this kind go.
    pub(crate) const fn destination(self) -> Destination {
        match self {
            Self::Event => Destination::Events,
            Self::Job => Destination::Jobs,
        }
    }
}

/// A row about to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRow {
    pub(crate) id: String,
    pub(crate) kind: Kind,
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
            == (row.kind.name(), row.name, &row.subject, &row.order_key)
            && row.kind.is_same_content(body, &row.body)
    }
}

impl Kind {
    /// Whether two bodies say the same. Those of jobs have a time and a trace of their own, so their
    /// payloads are compared.
    pub(crate) fn is_same_content(self, one: &[u8], other: &[u8]) -> bool {
        match self {
            Self::Event => one == other,
            Self::Job => Content::of(one).is_same(&Content::of(other)),
        }
    }
}

/// A row that a dispatcher holds.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedRow {
    pub(crate) seq: i64,
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) subject: String,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
    pub(crate) order_key: Option<String>,
    /// Failures so far.
    pub(crate) attempts: u32,
    /// Milliseconds since the first claim that may have sent it; 0 if that is this one.
    pub(crate) sent_ago_ms: i64,
}

/// What a row says of its submission.
#[derive(Debug)]
pub(crate) struct StoredSubmission {
    pub(crate) state: String,
    pub(crate) outcome: Option<String>,
    pub(crate) reason: Option<String>,
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) seq: i64,
    pub(crate) id: String,
    /// JSON.
    pub(crate) outcome: String,
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
    /// It has never been sent.
    pub(crate) unsent: bool,
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
    use super::{Kind, check_subject, decode_headers, encode_headers};

    #[test]
    fn a_kind_is_named_once() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind.name()), Some(kind));
        }
        assert_eq!(Kind::of("job.create.v2"), None);
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
