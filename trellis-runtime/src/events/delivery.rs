//! One delivery: read it, run its handler, settle it.
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_nats::HeaderMap;
use async_nats::jetstream::message::{AckKind, Acker};
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, MessageId, Service};

use crate::ctx::{Ctx, Delivery};
use crate::database::Database;
use crate::events::dead_letter::DeadLetter;
use crate::events::decide::{Action, Ended, backoff, decide};
use crate::events::group::GroupRunner;
use crate::events::route::{Raw, Route, Unhandled};
use crate::outbox::parse_rfc3339;
use crate::ports::Clock;
use crate::trace::TraceContext;
use crate::wire::{self, Descriptor};

/// How long the broker may take to confirm a settlement.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

impl<S, C, D> GroupRunner<S, C, D>
where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    /// Handle one message from the stream and settle it.
    pub(crate) async fn deliver(
        self: Arc<Self>,
        message: async_nats::jetstream::Message,
        interrupt: CancellationToken,
    ) {
        let place = message.info().map(|info| (info.delivered.cast_unsigned(), info.stream_sequence));
        let Ok((deliveries, sequence)) = place else {
            tracing::error!(group = %self.consumer, "a message that no stream delivered is ignored");
            return;
        };
        let (message, acker) = message.split();
        let raw = raw(&message, deliveries, sequence, &self.stream);
        let Some(route) = self.routes.iter().find(|route| route.takes(&raw.subject)) else {
            // A newer instance of this service has widened the group's filter; leave it to that one.
            self.say(&acker, AckKind::Nak(Some(backoff(&self.config, deliveries)))).await;
            return;
        };
        let mut hold = Hold::new(&*self.ports().clock, &acker, self.config.ack_wait);
        let ended = match self.unreadable(route, &message.headers) {
            Some(reason) => Ended::Hopeless(reason),
            None => self.handle(route, &raw, &message.headers, &mut hold, &interrupt).await,
        };
        if hold.is_lost() {
            tracing::warn!(group = %self.consumer, id = %raw.id, "a delivery was held longer than its ack wait; it is left to whoever has it now");
            return;
        }
        if let Ended::Failed(reason) | Ended::Hopeless(reason) = &ended {
            tracing::warn!(group = %self.consumer, event = route.event.name, id = %raw.id, deliveries, reason, "an event was not handled");
        }
        match decide(ended, deliveries, &self.config, |delay| delay / 2 + self.ports().jitter.full(delay / 2))
        {
            Action::Acknowledge => self.say(&acker, AckKind::Ack).await,
            Action::Retry(delay) => self.say(&acker, AckKind::Nak(Some(delay))).await,
            Action::Bury(reason) => self.bury(route, &raw, &message, &acker, &reason).await,
        }
    }

    async fn handle(
        &self,
        route: &Route<S>,
        raw: &Raw,
        headers: &Option<HeaderMap>,
        hold: &mut Hold<'_>,
        interrupt: &CancellationToken,
    ) -> Ended {
        let delivery = Delivery {
            consumer: Arc::clone(&self.consumer),
            root_id: raw.root_id.to_string(),
            used: std::sync::atomic::AtomicBool::new(false),
        };
        let ctx = Ctx::new(self.client.clone(), self.outbox.clone(), Some(delivery));
        let trace = trace_of(headers).unwrap_or_else(|| TraceContext::begin(&*self.ports().ids));
        let handler = (route.handle)(&self.service, &ctx, &self.outbox.0.validators, raw.clone());
        let handler = AssertUnwindSafe(trace.scope(handler)).catch_unwind();
        tokio::select! {
            biased;
            ended = handler => match ended {
                Ok(Ok(())) => Ended::Handled,
                Ok(Err(Unhandled::Unreadable(reason))) => Ended::Hopeless(reason),
                Ok(Err(Unhandled::Failed(error))) if error.is_dead() => Ended::Hopeless(error.to_string()),
                Ok(Err(Unhandled::Failed(error))) => Ended::Failed(error.to_string()),
                Err(panic) => Ended::Failed(format!("the handler panicked: {}", said(&panic))),
            },
            () = interrupt.cancelled() => Ended::Interrupted,
            () = hold.keep() => Ended::Interrupted,
        }
    }

    /// Why the message cannot be this event, if so. A message without a descriptor comes from a
    /// foreign producer and is taken at its subject's word.
    fn unreadable(&self, route: &Route<S>, headers: &Option<HeaderMap>) -> Option<String> {
        let text = header(headers, wire::EVENT_DESCRIPTOR)?;
        let Some(descriptor) = Descriptor::parse(text) else {
            return Some(format!("descriptor `{text}` is of a format that this version does not know"));
        };
        let expected = Descriptor::of(&route.event);
        (descriptor != expected)
            .then(|| format!("descriptor says `{descriptor}` where the subject is of `{expected}`"))
    }

    /// Write the dead letter first, so that nothing is ended that is not kept.
    async fn bury(
        &self,
        route: &Route<S>,
        raw: &Raw,
        message: &async_nats::Message,
        acker: &Acker,
        reason: &str,
    ) {
        let letter = DeadLetter {
            consumer: &self.consumer,
            subject: self.outbox.environment().dead_subject(&self.declaration, route.event.name),
            event_subject: &raw.subject,
            root_id: raw.root_id.as_str(),
            deliveries: raw.deliveries,
            sequence: raw.sequence,
            reason,
            headers: message.headers.as_ref(),
            body: &raw.body,
        };
        match letter.write(&self.context).await {
            Ok(()) => {
                tracing::error!(group = %self.consumer, event = route.event.name, id = %raw.id, reason, "an event became a dead letter");
                self.say(acker, AckKind::Term).await;
            }
            Err(error) => {
                tracing::error!(group = %self.consumer, id = %raw.id, error, "a dead letter could not be written, the event comes back");
                self.say(acker, AckKind::Nak(Some(backoff(&self.config, raw.deliveries)))).await;
            }
        }
    }

    /// A settlement that is not confirmed brings the event back, which the inbox is for.
    async fn say(&self, acker: &Acker, kind: AckKind) {
        match tokio::time::timeout(SETTLE_TIMEOUT, acker.double_ack_with(kind)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(group = %self.consumer, %error, "a settlement was not confirmed")
            }
            Err(_) => tracing::debug!(group = %self.consumer, "a settlement was not confirmed in time"),
        }
    }
}

/// Keeps a delivery ours while its handler runs.
struct Hold<'a> {
    clock: &'a dyn Clock,
    acker: &'a Acker,
    ack_wait: Duration,
    held_since: Duration,
}

impl<'a> Hold<'a> {
    fn new(clock: &'a dyn Clock, acker: &'a Acker, ack_wait: Duration) -> Self {
        Self { clock, acker, ack_wait, held_since: clock.monotonic() }
    }

    /// Tell the broker again and again that work goes on; ends only when the delivery is lost.
    async fn keep(&mut self) {
        while !self.is_lost() {
            tokio::time::sleep(self.ack_wait / 3).await;
            if self.is_lost() {
                return;
            }
            let now = self.clock.monotonic();
            if self.acker.ack_with(AckKind::Progress).await.is_ok() {
                self.held_since = now;
            }
        }
    }

    /// Whether the broker may have given the delivery to another one: then nothing more may be said
    /// on it, for what a late owner says hits the new owner's delivery.
    fn is_lost(&self) -> bool {
        self.clock.monotonic().saturating_sub(self.held_since) >= self.ack_wait
    }
}

fn raw(message: &async_nats::Message, deliveries: u64, sequence: u64, stream: &str) -> Raw {
    let id = |name| header(&message.headers, name).and_then(|text| MessageId::new(text).ok());
    // A foreign message without an id has one place in one stream, which identifies it as well.
    let own_id = id(wire::MESSAGE_ID).unwrap_or_else(|| MessageId::of_place(stream, sequence));
    Raw {
        root_id: id(wire::ROOT_ID).unwrap_or_else(|| own_id.clone()),
        id: own_id,
        body: message.payload.clone(),
        time: header(&message.headers, wire::EVENT_TIME)
            .and_then(parse_rfc3339)
            .unwrap_or(SystemTime::UNIX_EPOCH),
        subject: message.subject.to_string(),
        deliveries,
        sequence,
    }
}

fn header<'a>(headers: &'a Option<HeaderMap>, name: &str) -> Option<&'a str> {
    headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str)
}

fn trace_of(headers: &Option<HeaderMap>) -> Option<TraceContext> {
    TraceContext::parse(header(headers, wire::TRACEPARENT)?, header(headers, wire::TRACESTATE))
}

/// What a panic said.
fn said(panic: &Box<dyn std::any::Any + Send>) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
