//! One delivery: read it, run its handler, settle it.
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_nats::HeaderMap;
use async_nats::jetstream::AckKind;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, MessageId, Service};

use crate::causes::said;
use crate::ctx::{Ctx, Delivery};
use crate::database::Database;
use crate::events::dead_letter::DeadLetter;
use crate::events::decide::{Action, Ended, backoff, decide, unfinished};
use crate::events::group::GroupRunner;
use crate::events::hold::{Hold, Terms};
use crate::events::route::{Raw, Route, Unhandled};
use crate::jobs::origin::Origin;
use crate::outbox::parse_rfc3339;
use crate::trace::TraceContext;
use crate::wire::{self, Descriptor};

impl<S, C, D> GroupRunner<S, C, D>
where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    /// Handle one message from the stream and settle it. It was asked for at `asked`, so the broker
    /// gave it away after that.
    pub(crate) async fn deliver(
        self: Arc<Self>,
        message: async_nats::jetstream::Message,
        asked: Duration,
        interrupt: CancellationToken,
    ) {
        let Some((raw, hold)) = self.receive(&message, asked).await else {
            tracing::error!(group = %self.consumer, "a message that no stream delivered is ignored");
            return;
        };
        let headers = message.headers.as_ref();
        let ended = self.ended(&raw, headers, &hold, &interrupt).await;
        if hold.is_lost() {
            tracing::warn!(group = %self.consumer, id = %raw.id, "a delivery was held longer than its ack wait; it is left to whoever has it now");
            return;
        }
        if let Ended::Failed(reason) | Ended::Hopeless(reason) = &ended {
            tracing::warn!(group = %self.consumer, subject = raw.subject, id = %raw.id, deliveries = raw.deliveries, reason, "an event was not handled");
        }
        let jitter = |delay| delay / 2 + self.ports().jitter.full(delay / 2);
        let settlement = match decide(ended, raw.deliveries, &self.config, jitter) {
            Action::Acknowledge => AckKind::Ack,
            Action::Retry(delay) => AckKind::Nak(Some(delay)),
            Action::Bury(reason) => self.bury(&raw, headers, &reason).await,
        };
        hold.settle(settlement).await;
    }

    async fn receive(
        &self,
        message: &async_nats::jetstream::Message,
        asked: Duration,
    ) -> Option<(Raw, Hold)> {
        let (info, reply) = (message.info().ok()?, message.reply.clone()?);
        let deliveries = info.delivered.cast_unsigned();
        let raw = raw(message, deliveries, info.stream_sequence, &self.stream, info.published.into());
        let terms = Terms {
            client: self.client.clone(),
            clock: Arc::clone(&self.ports().clock),
            ack_wait: self.config.ack_wait,
            given_after: asked,
            reply,
        };
        Some((raw, Hold::begin(terms).await))
    }

    async fn ended(
        &self,
        raw: &Raw,
        headers: Option<&HeaderMap>,
        hold: &Hold,
        interrupt: &CancellationToken,
    ) -> Ended {
        if let Some(reason) = unfinished(raw.deliveries, &self.config) {
            return Ended::Hopeless(reason);
        }
        let Some(route) = self.route(&raw.subject) else {
            // A newer version of this service has widened the group: one of its instances can.
            return Ended::Failed(format!("this version has no handler for subject `{}`", raw.subject));
        };
        match unreadable(route, headers) {
            Some(reason) => Ended::Hopeless(reason),
            None => self.handle(route, raw, headers, hold, interrupt).await,
        }
    }

    fn route(&self, subject: &str) -> Option<&Route<S>> {
        self.routes.iter().find(|route| route.takes(subject))
    }

    async fn handle(
        &self,
        route: &Route<S>,
        raw: &Raw,
        headers: Option<&HeaderMap>,
        hold: &Hold,
        interrupt: &CancellationToken,
    ) -> Ended {
        let delivery = Delivery {
            consumer: Arc::clone(&self.consumer),
            root_id: raw.root_id.to_string(),
            used: std::sync::atomic::AtomicBool::new(false),
        };
        let ctx = Ctx::new(self.nats.clone(), self.outbox.clone(), Some(delivery));
        let trace = trace_of(headers).unwrap_or_else(|| TraceContext::begin(&*self.ports().ids));
        let handler = (route.handle)(&self.service, &ctx, &self.outbox.0.validators, raw.clone());
        let handler =
            AssertUnwindSafe(trace.scope(Origin::event(raw.id.as_str(), &raw.subject).scope(handler)))
                .catch_unwind();
        if hold.is_lost() {
            return Ended::Interrupted;
        }
        tokio::select! {
            biased;
            ended = handler => match ended {
                Ok(Ok(())) => Ended::Handled,
                Ok(Err(Unhandled::Unreadable(reason))) => Ended::Hopeless(reason),
                Ok(Err(Unhandled::Failed(error))) if error.is_dead() => Ended::Hopeless(error.to_string()),
                Ok(Err(Unhandled::Failed(error))) => Ended::Failed(error.to_string()),
                Err(panic) => Ended::Failed(format!("the handler panicked: {}", said(&*panic))),
            },
            () = interrupt.cancelled() => Ended::Interrupted,
            () = hold.lost() => Ended::Interrupted,
        }
    }

    /// Write the dead letter first, so that nothing is ended that is not kept.
    async fn bury(&self, raw: &Raw, headers: Option<&HeaderMap>, reason: &str) -> AckKind {
        let environment = self.outbox.environment();
        let name = match self.route(&raw.subject) {
            Some(route) => route.event.name,
            None => environment.event_name(&raw.subject).unwrap_or(&raw.subject),
        };
        let letter = DeadLetter {
            consumer: &self.consumer,
            subject: environment.dead_subject(&self.declaration, name),
            event: raw,
            reason,
            headers,
        };
        match letter.write(&self.context).await {
            Ok(()) => {
                tracing::error!(group = %self.consumer, event = name, id = %raw.id, reason, "an event became a dead letter");
                AckKind::Term
            }
            Err(error) => {
                tracing::error!(group = %self.consumer, event = name, id = %raw.id, error, "a dead letter could not be written, the event comes back");
                self.doubt.notify_one();
                AckKind::Nak(Some(backoff(&self.config, raw.deliveries)))
            }
        }
    }
}

/// Why the message cannot be this event, if so. A message without a descriptor comes from a foreign
/// producer and is taken at its subject's word.
fn unreadable<S: Service>(route: &Route<S>, headers: Option<&HeaderMap>) -> Option<String> {
    let text = header(headers, wire::EVENT_DESCRIPTOR)?;
    let Some(descriptor) = Descriptor::parse(text) else {
        return Some(format!("descriptor `{text}` is of a format that this version does not know"));
    };
    let expected = Descriptor::of(&route.event);
    (!descriptor.is_same_event(&expected))
        .then(|| format!("descriptor says `{descriptor}` where the subject is of `{expected}`"))
}

fn raw(
    message: &async_nats::Message,
    deliveries: u64,
    sequence: u64,
    stream: &str,
    stored: SystemTime,
) -> Raw {
    let id = |name| header(message.headers.as_ref(), name).and_then(|text| MessageId::new(text).ok());
    // A foreign message without an id has one place in one stream, which identifies it as well.
    let own_id = id(wire::MESSAGE_ID).unwrap_or_else(|| MessageId::of_place(stream, sequence));
    Raw {
        root_id: id(wire::ROOT_ID).unwrap_or_else(|| own_id.clone()),
        id: own_id,
        body: message.payload.clone(),
        time: header(message.headers.as_ref(), wire::EVENT_TIME).and_then(parse_rfc3339).unwrap_or(stored),
        subject: message.subject.to_string(),
        deliveries,
        sequence,
    }
}

fn header<'a>(headers: Option<&'a HeaderMap>, name: &str) -> Option<&'a str> {
    headers?.get(name).map(async_nats::HeaderValue::as_str)
}

fn trace_of(headers: Option<&HeaderMap>) -> Option<TraceContext> {
    TraceContext::parse(header(headers, wire::TRACEPARENT)?, header(headers, wire::TRACESTATE))
}
