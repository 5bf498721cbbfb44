//! Message → row: pure, and frozen from here on.
use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use trellis::{Message, MessageId};

use crate::outbox::error::OutboxError;
use crate::outbox::row::{Kind, MAX_SUBJECT_BYTES, NewRow, encode_headers};
use crate::trace::TraceContext;
use crate::wire::{self, Descriptor, Environment};

/// The longest ordering key: PostgreSQL's index entries end at about 2.7 kB.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// What an enqueue adds to the message.
pub(crate) struct Stamp {
    pub(crate) id: MessageId,
    pub(crate) time: SystemTime,
    pub(crate) trace: TraceContext,
}

/// Decide everything about the row that the message becomes.
pub(crate) fn prepare(
    message: Message,
    stamp: Stamp,
    environment: &Environment,
    max_message_bytes: usize,
) -> Result<NewRow, OutboxError> {
    let event = message.declaration;
    let name = event.name;
    let subject = environment.event_subject(&event, &message.params);
    let descriptor = Descriptor::of(&event).to_string();
    let time = rfc3339(stamp.time);
    let traceparent = stamp.trace.traceparent();
    let mut headers = vec![
        (wire::MESSAGE_ID, stamp.id.as_str()),
        (wire::EVENT_TIME, time.as_str()),
        (wire::EVENT_DESCRIPTOR, descriptor.as_str()),
        (wire::TRACEPARENT, traceparent.as_str()),
    ];
    headers.extend(stamp.trace.tracestate().map(|state| (wire::TRACESTATE, state)));

    let size = message.body.len() + header_bytes(&headers);
    if size > max_message_bytes {
        return Err(OutboxError::TooLarge { name, size, limit: max_message_bytes });
    }
    if subject.len() > MAX_SUBJECT_BYTES {
        return Err(OutboxError::SubjectTooLong { name, size: subject.len(), limit: MAX_SUBJECT_BYTES });
    }
    let key_bytes = message.order_key.as_ref().map_or(0, String::len);
    if key_bytes > MAX_KEY_BYTES {
        return Err(OutboxError::KeyTooLong { name, size: key_bytes, limit: MAX_KEY_BYTES });
    }
    Ok(NewRow {
        headers: encode_headers(&headers),
        id: stamp.id.into(),
        kind: Kind::Event,
        name,
        subject,
        body: message.body,
        order_key: message.order_key,
    })
}

/// Bytes of headers on the wire: a version line, `name: value` lines, an empty line.
pub(crate) fn header_bytes(headers: &[(&str, &str)]) -> usize {
    let lines: usize = headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    "NATS/1.0\r\n\r\n".len() + lines
}

pub(crate) fn rfc3339(time: SystemTime) -> String {
    OffsetDateTime::from(time).format(&Rfc3339).unwrap_or_else(|_| "1970-01-01T00:00:00Z".to_owned())
}

pub(crate) fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::{MAX_KEY_BYTES, Stamp, prepare};
    use crate::outbox::error::OutboxError;
    use crate::outbox::row::decode_headers;
    use crate::trace::TraceContext;
    use crate::wire::Environment;
    use std::time::{Duration, SystemTime};
    use trellis::{Event, EventDeclaration, Message, MessageId};

    struct Created;
    impl Event for Created {
        type Payload = serde_json::Value;
        const DECLARATION: EventDeclaration =
            EventDeclaration::new("acme.orders@v1", "orders.created").params(&["region"]).order_by("order");
    }

    fn message() -> Message {
        Message::event::<Created>(&serde_json::json!({"region": "e.u", "order": 7})).unwrap()
    }

    fn stamp() -> Stamp {
        Stamp {
            id: MessageId::new("m-1").unwrap(),
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1500),
            trace: TraceContext::parse(
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                Some("a=1"),
            )
            .unwrap(),
        }
    }

    #[test]
    fn everything_that_travels_is_decided() {
        let row = prepare(message(), stamp(), &Environment::new("dev").unwrap(), 1 << 20).unwrap();
        assert_eq!(row.subject, "dev.events.v1.orders.created.e~2E~u");
        assert_eq!(row.order_key.as_deref(), Some("order=7"));
        let headers = decode_headers(&row.headers).unwrap();
        let get = |name| headers.get(name).unwrap().as_str();
        assert_eq!(get("Nats-Msg-Id"), "m-1");
        assert_eq!(get("Trellis-Event-Time"), "1970-01-01T00:00:01.5Z");
        assert_eq!(get("Trellis-Event-Descriptor"), "v1 acme.orders@v1 orders.created 1");
        assert_eq!(get("traceparent"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(get("tracestate"), "a=1");
    }

    #[test]
    fn the_limit_counts_headers() {
        let size = match prepare(message(), stamp(), &Environment::NONE, 0) {
            Err(OutboxError::TooLarge { size, .. }) => size,
            other => panic!("{other:?}"),
        };
        assert!(prepare(message(), stamp(), &Environment::NONE, size).is_ok());
        assert!(prepare(message(), stamp(), &Environment::NONE, size - 1).is_err());
    }

    #[test]
    fn keys_and_subjects_have_a_limit() {
        let mut long = message();
        long.order_key = Some("k".repeat(MAX_KEY_BYTES + 1));
        assert!(matches!(
            prepare(long, stamp(), &Environment::NONE, 1 << 20),
            Err(OutboxError::KeyTooLong { .. })
        ));
        let mut long = message();
        long.params = vec!["p".repeat(3000)];
        let error = prepare(long, stamp(), &Environment::NONE, 1 << 20).unwrap_err();
        assert!(matches!(error, OutboxError::SubjectTooLong { .. }));
    }
}
