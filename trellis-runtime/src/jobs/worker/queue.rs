//! One queue at work: binds to its consumer, pulls as much as it has slots for, survives the broker.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::AckKind;
use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trellis::{Cancellation, Contract, JobId, Service};

use crate::causes::chain;
use crate::ctx::Ctx;
use crate::database::Database;
use crate::jobs::consumer::Consumers;
use crate::jobs::event::EventType;
use crate::jobs::worker::config::WorkerConfig;
use crate::jobs::worker::delivery::Signal;
use crate::jobs::worker::keeper::Keeper;
use crate::jobs::worker::live::{Live, Queue};
use crate::jobs::worker::pull::{EXPIRES, Heard, Pulls};
use crate::jobs::worker::route::Run;
use crate::jobs::worker::slots::{Order, Slots};
use crate::nats::Nats;
use crate::outbox::SqlOutbox;
use crate::wire;

/// Shortest and longest wait after pulling failed.
const TROUBLE_FIRST: Duration = Duration::from_millis(100);
const TROUBLE_LONGEST: Duration = Duration::from_secs(2);
/// When a delivery comes back that cannot be read.
const UNREADABLE: Duration = Duration::from_secs(30);
/// How often the pulls are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often the consumer is verified.
const VERIFY_EVERY: Duration = Duration::from_secs(5);
/// How long deliveries may fail to come although some wait and were asked for.
const STALL: Duration = Duration::from_secs(10);

/// A queue and all that its deliveries need.
pub(crate) struct Worker<S: Service, C: Contract, D: Database> {
    pub(crate) service: Arc<S>,
    pub(crate) nats: Nats,
    pub(crate) outbox: SqlOutbox<D>,
    pub(crate) queue: Arc<Queue>,
    /// The queue's consumer, which is also its name in the inbox.
    pub(crate) name: Arc<str>,
    pub(crate) config: WorkerConfig,
    pub(crate) run: Run<S>,
    pub(crate) consumers: Consumers,
    pub(crate) keeper: Arc<Keeper>,
    /// Why no jobs are pulled now.
    pub(crate) problem: watch::Sender<Option<String>>,
    /// Something may be missing on the server.
    pub(crate) doubt: Arc<Notify>,
    pub(crate) stop: CancellationToken,
    pub(crate) contract: std::marker::PhantomData<fn() -> C>,
}

impl<S, C, D> Worker<S, C, D>
where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    pub(crate) fn stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    fn now(&self) -> Duration {
        self.queue.log.ports.clock.monotonic()
    }

    /// Work until the stop; then let the handlers that run end, or give their jobs back on `interrupt`.
    pub(crate) async fn run(self: Arc<Self>, interrupt: CancellationToken) {
        let mut helpers = JoinSet::new();
        let (keeper, ack_wait) = (Arc::clone(&self.keeper), self.queue.ack_wait);
        helpers.spawn(async move { keeper.run(ack_wait).await });
        let mut slots = Slots::new(Arc::clone(&self), interrupt);
        let mut troubles = 0_u32;
        while !self.stopping() {
            let pulled = self.pull(&mut slots, &mut troubles).await;
            let Err(reason) = pulled else { break };
            if self.stopping() {
                break;
            }
            tracing::warn!(queue = %self.name, reason, "jobs cannot be pulled, trying again");
            self.problem.send_replace(Some(reason));
            self.doubt.notify_one();
            let longest = TROUBLE_FIRST.saturating_mul(1 << troubles.min(8)).min(TROUBLE_LONGEST);
            troubles = troubles.saturating_add(1);
            tokio::select! {
                () = tokio::time::sleep(longest / 2 + self.queue.log.ports.jitter.full(longest / 2)) => {}
                () = self.stop.cancelled() => {}
            }
        }
        self.keeper.cancel_all(Cancellation::Shutdown);
        slots.end().await;
        helpers.shutdown().await;
    }

    /// Pull until the stop, or until pulls are of no use any more.
    async fn pull(&self, slots: &mut Slots<S, C, D>, troubles: &mut u32) -> Result<(), String> {
        // The client would keep requests and pulls, and send them when nobody waits for them any more.
        self.connected()?;
        let connects = self.connects();
        let _cancellations = self.hear_cancellations().await?;
        self.consumers.bind(&self.queue.declaration, self.queue.ack_wait).await?;
        let stream = self.queue.log.stream.as_str();
        let expires = EXPIRES.min(self.queue.ack_wait / 4);
        let mut pulls = Pulls::open(&self.queue.log.context, (stream, &self.name), expires).await?;
        let concurrency = usize::from(self.config.concurrency);
        let mut look = tokio::time::interval(LOOK_EVERY);
        let (mut verified_at, mut delivered_at) = (self.now(), self.now());
        let (mut stalled_since, mut told_of_stop) = (None, false);
        loop {
            let outstanding = pulls.outstanding();
            if self.stopping() && outstanding == 0 {
                return Ok(());
            }
            let wanted = slots.free().saturating_sub(outstanding);
            // Not for each slot that becomes free: a request each would cost more than most jobs.
            let worth = wanted > 0 && (outstanding == 0 || wanted * 4 >= concurrency);
            if worth && !self.stopping() {
                pulls.ask(wanted, self.now()).await?;
            }
            tokio::select! {
                biased;
                message = pulls.hear() => {
                    let mut next = Some(message.ok_or("the subscription for deliveries has ended")?);
                    while let Some(message) = next {
                        match pulls.read(message, self.now()) {
                            Heard::Delivery(message, given_after) => {
                                delivered_at = self.now();
                                self.take(message, given_after, slots).await;
                            }
                            Heard::Ended => {}
                            Heard::Broken(reason) => return Err(reason),
                        }
                        // What has come along costs no further look at everything else.
                        next = pulls.hear().now_or_never().flatten();
                    }
                    if *troubles > 0 || self.problem.borrow().is_some() {
                        *troubles = 0;
                        if stalled_since.is_none() {
                            self.problem.send_if_modified(|problem| problem.take().is_some());
                        }
                    }
                }
                () = slots.freed() => {}
                () = self.stop.cancelled(), if !told_of_stop => {
                    told_of_stop = true;
                    self.keeper.cancel_all(Cancellation::Shutdown);
                }
                _ = look.tick() => {
                    self.connected()?;
                    if self.connects() != connects {
                        return Err("the connection was lost during a pull".to_owned());
                    }
                    if pulls.is_silent(self.now()) {
                        return Err("the server does not answer a pull".to_owned());
                    }
                    if self.now().saturating_sub(verified_at) >= VERIFY_EVERY && !self.stopping() {
                        verified_at = self.now();
                        // One question that is not answered says nothing; the pulls tell.
                        let waiting = self.consumers.waiting(&self.name).await.unwrap_or_default();
                        let starved = waiting > 0 && pulls.outstanding() > 0
                            && self.now().saturating_sub(delivered_at) >= VERIFY_EVERY;
                        let since = *stalled_since.get_or_insert_with(|| self.now());
                        if !starved {
                            stalled_since = None;
                        } else if self.now().saturating_sub(since) >= STALL {
                            return Err(format!("{waiting} jobs wait, were asked for, and are not delivered"));
                        }
                    }
                }
            }
        }
    }

    async fn take(&self, message: async_nats::Message, given_after: Duration, slots: &mut Slots<S, C, D>) {
        let Some(reply) = message.reply.clone() else { return };
        let Some(place) = Place::parse(&reply) else {
            let reason = format!("a delivery cannot be read: its reply subject is `{reply}`");
            tracing::error!(queue = %self.name, reason);
            self.problem.send_replace(Some(reason));
            return self.answer(reply, AckKind::Nak(Some(UNREADABLE))).await;
        };
        let Some(signal) = self.signal(&message, &place) else {
            tracing::error!(queue = %self.name, subject = %message.subject, "what no job can be is ended");
            return self.answer(reply, AckKind::Term).await;
        };
        let place = (signal.sequence, signal.deliveries);
        let live = Live::new(&self.queue, signal.id.clone(), place, reply.clone(), given_after);
        if self.stopping() || slots.give(Order { signal, live }).is_err() {
            // It arrived after the stop, or nobody asked for it: for another instance.
            // Not at once: it would come to the same pull again.
            self.answer(reply, AckKind::Nak(Some(EXPIRES + EXPIRES / 4))).await;
        }
    }

    async fn answer(&self, reply: async_nats::Subject, kind: AckKind) {
        let said = self.queue.log.client.publish(reply, kind.into());
        let Ok(said) = tokio::time::timeout(TROUBLE_LONGEST, said).await else { return };
        if let Err(error) = said {
            tracing::debug!(error = %chain(&error), "a delivery could not be answered, it comes back after its ack wait");
        }
    }

    fn signal(&self, message: &async_nats::Message, place: &Place) -> Option<Signal> {
        let rest = message.subject.strip_prefix(&*self.queue.prefix)?.strip_prefix('.')?;
        let (id, token) = rest.split_once('.')?;
        let header = |name| message.headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str);
        let tree = format!("{}.{id}.>", self.queue.prefix);
        let is_first =
            header(wire::EXPECTED_SEQUENCE) == Some("0") && header(wire::EXPECTED_SUBJECT) == Some(&*tree);
        Some(Signal {
            id: JobId::new(id).ok()?,
            is_first,
            event: EventType::of_token(token).filter(|event| event.is_signal())?,
            sequence: place.sequence,
            deliveries: place.deliveries,
            stored_at: std::time::SystemTime::UNIX_EPOCH + Duration::from_nanos(place.stored_at),
            body: message.payload.clone(),
        })
    }

    /// Hear cancellations as they are stored. Those that are missed are found by the keeper.
    async fn hear_cancellations(&self) -> Result<JoinSet<()>, String> {
        let subject = format!("{}.*.{}", self.queue.prefix, EventType::Cancelled.token());
        let client = &self.queue.log.client;
        let mut heard = client.subscribe(subject).await.map_err(|error| chain(&error))?;
        let flushed = tokio::time::timeout(Duration::from_secs(5), client.flush()).await;
        flushed.map_err(|_| "the server does not answer".to_owned())?.map_err(|error| chain(&error))?;
        let (keeper, prefix) = (Arc::clone(&self.keeper), self.queue.prefix.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Some(message) = futures_util::StreamExt::next(&mut heard).await {
                let id = message.subject.strip_prefix(&*prefix).and_then(|rest| rest.split('.').nth(1));
                if let Some(Ok(id)) = id.map(JobId::new) {
                    keeper.ask(&id).await;
                }
            }
        });
        Ok(task)
    }

    fn connects(&self) -> u64 {
        self.queue.log.client.statistics().connects.load(Ordering::Relaxed)
    }

    fn connected(&self) -> Result<(), String> {
        match self.queue.log.client.connection_state() {
            State::Connected => Ok(()),
            state => Err(format!("no connection to the server ({state})")),
        }
    }
}

/// What the reply subject of a delivery says of it: `$JS.ACK.<stream>.<consumer>.<deliveries>.
/// <sequence>.<consumer sequence>.<stored at, ns>.<pending>`, with domain and account before the
/// stream in the newer form.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    deliveries: u64,
    sequence: u64,
    stored_at: u64,
}

impl Place {
    fn parse(reply: &str) -> Option<Self> {
        let tokens: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
        let skip = match tokens.len() {
            7 => 2,
            9.. => 4,
            _ => return None,
        };
        let number = |at: usize| tokens.get(skip + at)?.parse().ok();
        Some(Self { deliveries: number(0)?, sequence: number(1)?, stored_at: number(3)? })
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn both_forms_of_a_delivery_are_read() {
        let place = Some(Place { deliveries: 2, sequence: 31, stored_at: 1_700_000_000_000_000_001 });
        assert_eq!(Place::parse("$JS.ACK.S.c.2.31.5.1700000000000000001.7"), place);
        assert_eq!(Place::parse("$JS.ACK._.hash.S.c.2.31.5.1700000000000000001.7"), place);
        assert_eq!(Place::parse("$JS.ACK._.hash.S.c.2.31.5.1700000000000000001.7.token"), place);
        for bad in ["", "_INBOX.a", "$JS.ACK.S.c.x.31.5.1.7", "$JS.ACK.S.c.2"] {
            assert_eq!(Place::parse(bad), None, "{bad}");
        }
    }
}
