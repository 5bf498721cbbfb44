//! The event that is sent, and its encoded form for loops that know no contract.

use async_nats::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trellis::{Event, EventDeclaration, EventHandle};

/// How many bytes a body has.
const BODY_BYTES: usize = 256;

/// The subject of [`Placed`] without an environment.
pub(crate) const SUBJECT: &str = "events.v1.orders.placed";

/// An order that somebody placed, with as much text as fills a body.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Placed {
    order: u64,
    note: String,
}

// Without the macro, so that the benchmark measures the engine whatever the macro is going through.
impl Event for Placed {
    type Payload = Self;
    const DECLARATION: EventDeclaration = EventDeclaration::new("acme.orders@v1", "orders.placed");
}

pub(crate) fn event() -> EventHandle<Placed> {
    EventHandle::default()
}

/// A payload whose body takes exactly [`BODY_BYTES`].
pub(crate) fn payload() -> Placed {
    const AROUND_THE_NOTE: usize = r#"{"order":1234567,"note":""}"#.len();
    Placed { order: 1_234_567, note: "x".repeat(BODY_BYTES - AROUND_THE_NOTE) }
}

/// What the loops send beside the body: all that the engine sends, for the message `id`.
pub(crate) fn headers_json(id: &str) -> String {
    format!(
        r#"{{"Nats-Msg-Id":"{id}","Trellis-Event-Descriptor":"v1 acme.orders@v1 orders.placed 0","Trellis-Event-Time":"2026-11-29T16:41:12.123456789Z","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}}"#
    )
}

/// Headers as a loop decodes them that needs to understand only what it has written itself.
pub(crate) fn decode_headers(stored: &str) -> crate::Result<HeaderMap> {
    let pairs: std::collections::BTreeMap<&str, &str> = serde_json::from_str(stored)?;
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::{BODY_BYTES, decode_headers, headers_json, payload};

    #[test]
    fn the_body_has_the_announced_size() {
        assert_eq!(serde_json::to_vec(&payload()).unwrap().len(), BODY_BYTES);
    }

    #[test]
    fn headers_read_back() {
        let headers = decode_headers(&headers_json("id-1")).unwrap();
        assert_eq!(headers.get("Nats-Msg-Id").unwrap().as_str(), "id-1");
        assert_eq!(headers.len(), 4);
    }
}
