//! One delivery: find out what is to be done, run a try, append its end, settle.
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::AckKind;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::OptionFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use trellis::{Cancellation, Contract, JobId, Service, Then};

use crate::causes::said;
use crate::ctx::{Ctx, Delivery};
use crate::database::Database;
use crate::jobs::decide::{After, Ended, Step, cut, delivered, ended};
use crate::jobs::event::{Entry, EventType, Unreadable};
use crate::jobs::log::{AppendError, Tree};
use crate::jobs::origin::Origin;
use crate::jobs::record::JobRecord;
use crate::jobs::state::JobState;
use crate::jobs::worker::current;
use crate::jobs::worker::live::{Live, left};
use crate::jobs::worker::queue::Worker;
use crate::jobs::worker::route::Ran;
use crate::trace::TraceContext;

/// How often a delivery decides again after the log has moved on.
const ROUNDS: usize = 8;
/// When a delivery comes back that could not be attended to.
const TROUBLE: Duration = Duration::from_secs(5);
/// When one comes back that only a later version can read.
const NEWER: Duration = Duration::from_secs(30);

/// A message of the queue's consumer.
pub(crate) struct Signal {
    pub(crate) id: JobId,
    /// The server has stored it as the first entry of its job, and no other.
    pub(crate) is_first: bool,
    pub(crate) event: EventType,
    pub(crate) sequence: u64,
    pub(crate) deliveries: u64,
    pub(crate) stored_at: std::time::SystemTime,
    pub(crate) body: Bytes,
}

/// What is said on a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settlement {
    Acknowledge,
    Again(Duration),
    /// It is somebody else's.
    Silence,
}

/// What a try came to.
enum Try {
    Settled(Settlement),
    /// The log has moved on: decide again.
    Moved(Tree),
}

impl<S, C, D> Worker<S, C, D>
where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    pub(crate) async fn deliver(&self, signal: Signal, live: Arc<Live>, interrupt: &CancellationToken) {
        let kept = self.keeper.keep(Arc::clone(&live));
        if self.stopping() {
            live.cancel(Cancellation::Shutdown);
        }
        let settlement = self.attend(&signal, &live, interrupt).await;
        drop(kept);
        match settlement {
            Settlement::Acknowledge => live.say(AckKind::Ack).await,
            Settlement::Again(delay) => live.say(AckKind::Nak(Some(delay))).await,
            Settlement::Silence => {
                tracing::info!(queue = %self.name, job = %live.id, "a job is left to whoever has it now");
            }
        }
    }

    async fn attend(&self, signal: &Signal, live: &Arc<Live>, interrupt: &CancellationToken) -> Settlement {
        let mut record = match self.first_look(signal, live).await {
            Ok(record) => record,
            Err(settlement) => return settlement,
        };
        for _ in 0..ROUNDS {
            if live.is_lost() {
                return Settlement::Silence;
            }
            let now = self.queue.log.broker_now();
            live.is_at(&record);
            let came_to = match delivered(&record, signal.sequence, now) {
                Step::Done => return Settlement::Acknowledge,
                Step::Later(delay) => return Settlement::Again(delay),
                Step::Start if live.reason() == Some(Cancellation::Shutdown) => {
                    return Settlement::Again(Duration::ZERO);
                }
                Step::Start => self.run_try(&record, live, interrupt).await,
                Step::End(event, reason) => {
                    let state = if event == EventType::Dead { JobState::Dead } else { JobState::Expired };
                    let (tries, error, result, again) = (record.tries, Some(reason), None, None);
                    self.conclude(live, After { event, state, tries, error, result, again }).await
                }
            };
            match came_to {
                Try::Settled(settlement) => return settlement,
                Try::Moved(tree) => match tree.fold() {
                    Ok(Some(moved)) => record = moved,
                    Ok(None) => return Settlement::Again(TROUBLE),
                    Err(_) => return Settlement::Again(NEWER),
                },
            }
        }
        Settlement::Again(TROUBLE)
    }

    /// What the log says of the job. A first delivery says it itself.
    async fn first_look(&self, signal: &Signal, live: &Arc<Live>) -> Result<JobRecord, Settlement> {
        if signal.event == EventType::Created && signal.deliveries == 1 && signal.is_first {
            live.expects(signal.sequence);
            match Entry::decode(&signal.body) {
                Ok(entry) if entry.event_type == EventType::Created && entry.job_id == signal.id.as_str() => {
                    let mut record = None;
                    JobRecord::apply(&mut record, signal.sequence, signal.stored_at, &entry);
                    return record.ok_or(Settlement::Again(TROUBLE));
                }
                Ok(_) => return Err(self.bury(live, "its first entry is of another job").await),
                Err(Unreadable::Newer(v)) => return Err(self.leave(v)),
                Err(Unreadable::Broken(reason)) => return Err(self.bury(live, &reason).await),
            }
        }
        let tree = match self.queue.log.tree(&live.tree).await {
            Ok(Some(tree)) => tree,
            Ok(None) => {
                // It was there when the signal was stored: it has been purged, or the reader lags.
                tracing::debug!(queue = %self.name, job = %signal.id, "a delivered job has no log");
                return Err(Settlement::Again(TROUBLE));
            }
            Err(error) => {
                tracing::warn!(queue = %self.name, job = %signal.id, %error, "a job waits");
                return Err(Settlement::Again(TROUBLE));
            }
        };
        match tree.fold() {
            Ok(Some(record)) => {
                live.shorten(&tree, &record).await;
                Ok(record)
            }
            Ok(None) => {
                live.expects(tree.last());
                Err(self.bury(live, "nothing in its log can be read").await)
            }
            Err(Unreadable::Newer(v)) => Err(self.leave(v)),
            Err(Unreadable::Broken(reason)) => Err(self.bury(live, &reason).await),
        }
    }

    fn leave(&self, v: u32) -> Settlement {
        tracing::warn!(queue = %self.name, v, "a job of a later format is left to instances that can read it");
        Settlement::Again(NEWER)
    }

    /// A job that nobody can read is dead, with the reason.
    async fn bury(&self, live: &Arc<Live>, reason: &str) -> Settlement {
        let after = After {
            event: EventType::Dead,
            state: JobState::Dead,
            tries: 0,
            error: Some(cut(reason)),
            result: None,
            again: None,
        };
        match self.conclude(live, after).await {
            Try::Settled(settlement) => settlement,
            Try::Moved(_) => Settlement::Again(TROUBLE),
        }
    }

    async fn run_try(&self, record: &JobRecord, live: &Arc<Live>, interrupt: &CancellationToken) -> Try {
        // JSON's `null` is a payload like any other, and reads as none.
        let payload = record.payload.as_deref().unwrap_or(RawValue::NULL);
        let end = match self.watch(record, payload, live, interrupt).await {
            Ran::Ended(end) => {
                live.is_over();
                end
            }
            Ran::NotBegun(AppendError::Moved(tree)) => return Try::Moved(*tree),
            Ran::NotBegun(error) => {
                tracing::warn!(queue = %self.name, job = %live.id, ?error, "a try could not begin");
                return Try::Settled(Settlement::Again(TROUBLE));
            }
        };
        let (tries, begun) = live.tries();
        if let (Ended::Failed(reason, _) | Ended::Panicked(reason), true) = (&end, begun) {
            tracing::warn!(queue = %self.name, job = %live.id, tries, reason, "a try failed");
        }
        let retry = &self.queue.declaration.retry;
        let jitter = |delay: Duration| delay / 2 + self.queue.log.ports.jitter.full(delay / 2);
        match ended(end, (tries, record.max_tries), retry, jitter) {
            Some(after) => self.conclude(live, after).await,
            None if live.reason() == Some(Cancellation::LeaseLost) => Try::Settled(Settlement::Silence),
            None => Try::Settled(Settlement::Acknowledge),
        }
    }

    /// Run the handler, under its deadline, its cancellation, and the end of the service.
    async fn watch(
        &self,
        record: &JobRecord,
        payload: &RawValue,
        live: &Arc<Live>,
        interrupt: &CancellationToken,
    ) -> Ran {
        let ctx = Ctx::new(
            self.nats.clone(),
            self.outbox.clone(),
            Some(Delivery {
                consumer: Arc::clone(&self.name),
                root_id: format!("{}@{}", live.id, record.run),
                used: std::sync::atomic::AtomicBool::new(false),
            }),
        );
        let origin = Origin::job(&record.id, record.context.clone(), record.lineage.as_ref());
        let trace = record
            .context
            .as_ref()
            .and_then(|context| TraceContext::parse(&context.traceparent, context.tracestate.as_deref()));
        let trace = trace.unwrap_or_else(|| TraceContext::begin(&*self.queue.log.ports.ids));
        let work = (self.run)(&self.service, &ctx, live, payload);
        let work = current::scope(Arc::clone(live), trace.scope(origin.scope(work)));
        let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
        let now = self.queue.log.broker_now();
        let mut deadline = pin!(OptionFuture::from(left(record.deadline, now).map(tokio::time::sleep)));
        let mut grace = pin!(OptionFuture::from(None::<tokio::time::Sleep>));
        let mut graced = Cancellation::Job;
        let mut storing = None;
        let (mut told, mut deadline_is_over) = (None, record.deadline.is_none());
        let mut rest = pin!(tokio::time::sleep(Duration::ZERO));
        let mut rested = true;
        let ran = loop {
            tokio::select! {
                biased;
                ran = &mut work => break match ran {
                    Ok(ran) => returned(ran, live.reason()),
                    Err(panic) => returned(Ran::Ended(Ended::Panicked(said(&*panic).to_owned())), live.reason()),
                },
                reason = live.cancelled_beyond(told) => {
                    told = Some(reason);
                    match reason {
                        Cancellation::LeaseLost => break Ran::Ended(Ended::Cancelled(reason)),
                        // The service's own time-out is the grace, unless there is another one already.
                        Cancellation::Shutdown => {}
                        _ => {
                            graced = reason;
                            grace.set(OptionFuture::from(Some(tokio::time::sleep(self.config.cancel_grace))));
                        }
                    }
                }
                Some(()) = &mut grace => {
                    tracing::warn!(queue = %self.name, job = %live.id, reason = ?graced, "a handler did not end in time and was dropped");
                    break Ran::Ended(Ended::Cancelled(graced));
                }
                _ = &mut deadline, if !deadline_is_over => {
                    deadline_is_over = true;
                    live.cancel(Cancellation::Deadline);
                }
                () = interrupt.cancelled() => break Ran::Ended(Ended::Cancelled(Cancellation::Shutdown)),
                () = async { if let Some(storing) = storing.as_mut() { std::pin::Pin::new(storing).await } }, if storing.is_some() => {
                    storing = None;
                    rest.set(tokio::time::sleep(self.config.observe_every));
                    rested = false;
                }
                () = &mut rest, if !rested => rested = true,
                () = live.noted(), if storing.is_none() && rested => storing = Some(live.store_notes().boxed()),
            }
        };
        if let Some(storing) = storing {
            storing.await;
        }
        ran
    }

    /// Append what ends a try, and decide what is said on the delivery.
    async fn conclude(&self, live: &Live, mut after: After) -> Try {
        for _ in 0..ROUNDS {
            let (error, result) = (after.error.as_deref(), after.result.as_deref());
            let appended =
                live.end((after.event, after.state), after.tries, (error, result), after.again).await;
            match appended {
                Ok(_) => {
                    self.tell(live, &after);
                    let again = after.again.map(|delay| Settlement::Again(live.back_in(delay)));
                    return Try::Settled(again.unwrap_or(Settlement::Acknowledge));
                }
                Err(AppendError::Moved(tree)) => match tree.fold() {
                    // Something was added that does not concern the owner.
                    Ok(Some(record)) if live.tries().1 && live.owns(&record) => live.expects(record.last),
                    Ok(Some(record)) if record.state.is_terminal() => {
                        return Try::Settled(Settlement::Acknowledge);
                    }
                    _ if live.tries().1 => return Try::Settled(Settlement::Silence),
                    _ => return Try::Moved(*tree),
                },
                Err(AppendError::Refused(reason)) if after.result.is_some() => {
                    let reason = format!("the result cannot be stored: {reason}");
                    let (tries, retry) = (after.tries, &self.queue.declaration.retry);
                    let failed =
                        ended(Ended::Failed(reason, Then::Fail), (tries, tries), retry, |delay| delay);
                    let Some(failed) = failed else { return Try::Settled(Settlement::Silence) };
                    after = failed;
                }
                Err(error) => {
                    tracing::error!(queue = %self.name, job = %live.id, ?error, event = after.event.token(), "the end of a try could not be stored");
                    return Try::Settled(Settlement::Again(TROUBLE));
                }
            }
        }
        Try::Settled(Settlement::Again(TROUBLE))
    }

    fn tell(&self, live: &Live, after: &After) {
        let (event, reason) = (after.event.token(), after.error.as_deref().unwrap_or_default());
        match after.event {
            EventType::Dead | EventType::Failed | EventType::Expired => {
                tracing::error!(queue = %self.name, job = %live.id, tries = after.tries, event, reason, "a job ended without a result");
            }
            _ => {
                tracing::debug!(queue = %self.name, job = %live.id, tries = after.tries, event, "a try ended");
            }
        }
    }
}

/// What a handler that returned after it was told to end came to.
fn returned(ran: Ran, reason: Option<Cancellation>) -> Ran {
    match (ran, reason) {
        (Ran::Ended(_), Some(reason @ (Cancellation::Deadline | Cancellation::Job))) => {
            Ran::Ended(Ended::Cancelled(reason))
        }
        (
            Ran::Ended(Ended::Failed(_, Then::Declared | Then::Retry | Then::RetryAfter(_))),
            Some(reason @ Cancellation::Shutdown),
        ) => Ran::Ended(Ended::Cancelled(reason)),
        (ran, _) => ran,
    }
}
