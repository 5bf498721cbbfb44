//! Dead letters: events that a group gives up, kept with their reason.
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;

use crate::causes::chain;
use crate::wire;

/// How long the write of a dead letter may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest reason that is kept.
const MAX_REASON_CHARS: usize = 1000;

/// What a group gives up.
pub(crate) struct DeadLetter<'a> {
    pub(crate) consumer: &'a str,
    pub(crate) subject: String,
    pub(crate) event_subject: &'a str,
    pub(crate) root_id: &'a str,
    pub(crate) deliveries: u64,
    pub(crate) sequence: u64,
    pub(crate) reason: &'a str,
    pub(crate) headers: Option<&'a HeaderMap>,
    pub(crate) body: &'a Bytes,
}

impl DeadLetter<'_> {
    /// Store it. `Ok` only when the stream has it.
    pub(crate) async fn write(&self, context: &Context) -> Result<(), String> {
        match self.publish(context, self.copied_headers(), self.body.clone()).await {
            // With our headers it no longer fits; the event itself stays in its stream for a while.
            Err((PublishErrorKind::MaxPayloadExceeded, _)) => {
                self.publish(context, HeaderMap::new(), Bytes::new()).await.map_err(|(_, reason)| reason)
            }
            written => written.map_err(|(_, reason)| reason),
        }
    }

    async fn publish(
        &self,
        context: &Context,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<(), (PublishErrorKind, String)> {
        // The same group gives the same event up once, however often it tries to.
        headers.insert(wire::MESSAGE_ID, format!("dead:{}:{}", self.consumer, self.root_id));
        headers.insert(wire::ROOT_ID, self.root_id);
        headers.insert(wire::DEAD_REASON, one_line(self.reason));
        headers.insert(wire::DEAD_DELIVERIES, self.deliveries.to_string());
        headers.insert(wire::DEAD_SUBJECT, self.event_subject);
        headers.insert(wire::DEAD_SEQUENCE, self.sequence.to_string());
        let message = PublishMessage::build().headers(headers).payload(body);
        let failed = |error: async_nats::jetstream::context::PublishError| (error.kind(), chain(&error));
        let sent = async {
            context.send_publish(self.subject.clone(), message).await.map_err(failed)?.await.map_err(failed)
        };
        let stored = tokio::time::timeout(TIMEOUT, sent).await;
        stored.map_err(|_| (PublishErrorKind::TimedOut, "no acknowledgement in time".to_owned()))?.map(drop)
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

/// Header values end at a line break.
fn one_line(reason: &str) -> String {
    reason.chars().take(MAX_REASON_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
