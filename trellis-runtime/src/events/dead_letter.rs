//! Dead letters: events that a group gives up, kept with their reason.
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Context, ErrorCode};
use bytes::Bytes;

use crate::causes::{causes, chain};
use crate::events::route::Raw;
use crate::wire;

/// How long the write of a dead letter may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest reason that is kept.
const MAX_REASON_CHARS: usize = 1000;

/// What a group gives up.
pub(crate) struct DeadLetter<'a> {
    pub(crate) consumer: &'a str,
    pub(crate) subject: String,
    pub(crate) event: &'a Raw,
    pub(crate) reason: &'a str,
    pub(crate) headers: Option<&'a HeaderMap>,
}

impl DeadLetter<'_> {
    /// Store it. `Ok` only when the stream has it.
    pub(crate) async fn write(&self, context: &Context) -> Result<(), String> {
        let body = &self.event.body;
        match self.publish(context, self.copied_headers(), self.reason, body.clone()).await {
            // With our headers it no longer fits; the event itself stays in its stream for a while.
            Err(failed) if failed.too_large => {
                let reason = format!("[body of {} bytes left out: too large] {}", body.len(), self.reason);
                let sent = self.publish(context, HeaderMap::new(), &reason, Bytes::new()).await;
                sent.map_err(|failed| failed.reason)
            }
            sent => sent.map_err(|failed| failed.reason),
        }
    }

    async fn publish(
        &self,
        context: &Context,
        mut headers: HeaderMap,
        reason: &str,
        body: Bytes,
    ) -> Result<(), Failed> {
        let event = self.event;
        // One letter per message of the stream, however often it is given up. The root id would be
        // too little: a redrive that fails again within the stream's duplicate window is news.
        headers.insert(wire::MESSAGE_ID, format!("dead:{}:{}:{}", self.consumer, event.sequence, event.id));
        headers.insert(wire::ROOT_ID, event.root_id.as_str());
        headers.insert(wire::DEAD_REASON, one_line(reason));
        headers.insert(wire::DEAD_DELIVERIES, event.deliveries.to_string());
        headers.insert(wire::DEAD_SUBJECT, event.subject.as_str());
        headers.insert(wire::DEAD_SEQUENCE, event.sequence.to_string());
        let message = PublishMessage::build().headers(headers).payload(body);
        let sent = async { context.send_publish(self.subject.clone(), message).await?.await };
        match tokio::time::timeout(TIMEOUT, sent).await {
            Ok(Ok(ack)) if ack.sequence > 0 => Ok(()),
            Ok(Ok(_)) => {
                Err(Failed { too_large: false, reason: "the server acknowledged without storing".to_owned() })
            }
            Ok(Err(error)) => Err(Failed { too_large: is_too_large(&error), reason: chain(&error) }),
            Err(_) => Err(Failed { too_large: false, reason: "no acknowledgement in time".to_owned() }),
        }
    }

    fn copied_headers(&self) -> HeaderMap {
        let mut copy = HeaderMap::new();
        for (name, values) in self.headers.iter().flat_map(|headers| headers.iter()) {
            // `Nats-` headers instruct the server; they were for the original.
            if !AsRef::<str>::as_ref(name).starts_with("Nats-") {
                for value in values {
                    copy.append(name.clone(), value.clone());
                }
            }
        }
        copy
    }
}

/// A letter that was not stored.
struct Failed {
    too_large: bool,
    reason: String,
}

/// For the connection, or for the stream.
fn is_too_large(error: &PublishError) -> bool {
    let by_stream = |code| {
        matches!(code, ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM)
    };
    let server = causes(error).find_map(|cause| cause.downcast_ref::<async_nats::jetstream::Error>());
    error.kind() == PublishErrorKind::MaxPayloadExceeded
        || server.is_some_and(|error| by_stream(error.error_code()))
}

/// Header values end at a line break.
fn one_line(reason: &str) -> String {
    reason.chars().take(MAX_REASON_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
