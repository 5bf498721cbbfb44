//! A delivery that is at work: whose it is, what its handler is told and tells, what the log expects next.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_nats::connection::State;
use async_nats::jetstream::AckKind;
use async_nats::{HeaderMap, Request, Subject};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use trellis::{
    Attempt, Boxed, Cancellation, JobDeclaration, JobFacts, JobId, LogLine, Progress, UpdateError, WaitTarget,
};

use crate::causes::chain;
use crate::jobs::decide::until_deadline;
use crate::jobs::event::{Entry, EventType};
use crate::jobs::log::{Append, AppendError, JobLog, Tree};
use crate::jobs::record::JobRecord;
use crate::jobs::state::JobState;
use crate::jobs::worker::notes::Notes;
use crate::outbox::rfc3339;
use crate::validate::Validators;

/// Observations of one try that are kept, and how many more make them be trimmed.
const KEPT_OBSERVATIONS: usize = 100;
/// Entries of a job that make what is over be trimmed.
const LONG: usize = 100;
/// How long an append is sent again while its outcome is not known.
const PATIENCE: Duration = Duration::from_secs(120);
/// The same for observations, which are worth less.
const OBSERVATION_PATIENCE: Duration = Duration::from_secs(5);

/// How long a word on a delivery may take to leave.
const SAY_TIMEOUT: Duration = Duration::from_secs(5);

/// What all deliveries of one queue share.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) log: JobLog,
    pub(crate) declaration: JobDeclaration,
    /// What the subjects of its jobs begin with.
    pub(crate) prefix: String,
    /// What the subjects of its updates begin with.
    pub(crate) updates: String,
    pub(crate) update_schema: fn() -> schemars::Schema,
    /// This instance, unlike any other.
    pub(crate) instance: String,
    pub(crate) ack_wait: Duration,
    pub(crate) validators: Validators,
}

/// A delivery at work.
pub(crate) struct Live {
    pub(crate) queue: Arc<Queue>,
    pub(crate) id: JobId,
    pub(crate) tree: String,
    /// Sequence number of the signal.
    pub(crate) signal: u64,
    pub(crate) deliveries: u64,
    reply: Subject,
    /// When it was ours for certain, in milliseconds of the monotonic clock.
    ours_at: AtomicU64,
    cancellation: AtomicU8,
    cancelled: Notify,
    begun: AtomicBool,
    over: AtomicBool,
    log: Mutex<Place>,
    notes: Mutex<Notes>,
    noted: Notify,
    updates: AtomicU64,
}

/// Where the job's log is.
#[derive(Debug, Clone)]
struct Place {
    /// Sequence number of its last entry.
    last: u64,
    state: JobState,
    tries: u32,
    /// Sequence number of our `started`.
    fence: u64,
    facts: Option<JobFacts>,
    observations: VecDeque<u64>,
}

impl Live {
    /// Take a delivery that the broker gave away after `given_after`.
    pub(crate) fn new(
        queue: &Arc<Queue>,
        id: JobId,
        (signal, deliveries): (u64, u64),
        reply: Subject,
        given_after: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            queue: Arc::clone(queue),
            tree: format!("{}.{id}", queue.prefix),
            id,
            signal,
            deliveries,
            reply,
            ours_at: AtomicU64::new(ms(given_after)),
            cancellation: AtomicU8::new(0),
            cancelled: Notify::new(),
            begun: AtomicBool::new(false),
            over: AtomicBool::new(false),
            log: Mutex::new(Place {
                last: 0,
                state: JobState::Pending,
                tries: 0,
                fence: 0,
                facts: None,
                observations: VecDeque::new(),
            }),
            notes: Mutex::default(),
            noted: Notify::new(),
            updates: AtomicU64::new(0),
        })
    }

    /// What the log says, before a try.
    pub(crate) fn is_at(&self, record: &JobRecord) {
        let mut place = self.place();
        place.last = record.last;
        place.state = record.state;
        place.tries = record.tries;
        place.facts = JobId::new(record.id.clone()).ok().map(|id| {
            let mut facts = JobFacts::new(id, record.created_at);
            facts.run = record.run;
            facts.tries = record.tries + 1;
            facts.max_tries = record.max_tries;
            facts.deliveries = self.deliveries;
            facts.deadline = record.deadline;
            facts
        });
    }

    /// Append `started`: from here on this try counts.
    pub(crate) async fn begin(&self) -> Result<JobFacts, AppendError> {
        let place = self.place().clone();
        let Some(facts) = place.facts else {
            return Err(AppendError::NotSent("the job was never read".to_owned()));
        };
        let mut entry = self.entry(EventType::Started, JobState::Active, facts.tries);
        entry.instance = Some(self.queue.instance.as_str().into());
        let fence = self.append(&entry, PATIENCE.min(self.queue.ack_wait)).await?;
        let mut place = self.place();
        (place.last, place.fence, place.state, place.tries) = (fence, fence, JobState::Active, facts.tries);
        self.over.store(false, Ordering::Release);
        self.begun.store(true, Ordering::Release);
        Ok(facts)
    }

    /// Tries so far, and whether one of them is ours.
    pub(crate) fn tries(&self) -> (u32, bool) {
        (self.place().tries, self.begun.load(Ordering::Acquire))
    }

    /// Append what ends the try, with what the handler told last.
    pub(crate) async fn end(
        &self,
        (event, state): (EventType, JobState),
        tries: u32,
        (error, result): (Option<&str>, Option<&RawValue>),
        delay: Option<Duration>,
    ) -> Result<u64, AppendError> {
        self.is_over();
        let mut entry = self.entry(event, state, tries);
        entry.error = error.map(Into::into);
        entry.result = result;
        entry.delay_ms = delay.map(ms);
        let notes = if self.begun.load(Ordering::Acquire) { self.take_notes() } else { Notes::default() };
        notes.write(&mut entry, || self.now());
        let mut appended = self.append(&entry, PATIENCE).await;
        let told = !notes.is_empty();
        if appended.is_err() {
            self.notes().put_back(notes);
        }
        if told && matches!(appended, Err(AppendError::Refused(_))) {
            // Too much for one message: what was told goes before, or is left out.
            self.store_notes().await;
            self.take_notes();
            Notes::default().write(&mut entry, || self.now());
            appended = self.append(&entry, PATIENCE).await;
        }
        if let Ok(sequence) = &appended {
            self.place().last = *sequence;
        }
        appended
    }

    /// The try has nothing more to tell.
    pub(crate) fn is_over(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// When the delivery of a job that waits for `delay` comes back.
    pub(crate) fn back_in(&self, delay: Duration) -> Duration {
        let deadline = self.place().facts.as_ref().and_then(|facts| facts.deadline);
        until_deadline(delay, deadline, self.queue.log.broker_now())
    }

    /// Append what the handler has told since the last time, if anything.
    pub(crate) async fn store_notes(&self) {
        let notes = self.take_notes();
        if notes.is_empty() {
            return;
        }
        let tries = self.place().tries;
        let mut entry = self.entry(EventType::Progress, JobState::Active, tries);
        notes.write(&mut entry, || self.now());
        match self.append(&entry, OBSERVATION_PATIENCE).await {
            Ok(sequence) => {
                let surplus = self.observed(sequence);
                if let Some(before) = surplus {
                    self.trim(EventType::Progress, before).await;
                }
            }
            Err(AppendError::Moved(tree)) => {
                self.moved(tree.fold().ok().flatten().as_ref());
                self.notes().put_back(notes);
            }
            Err(error) => {
                tracing::warn!(job = %self.id, ?error, "what a job told could not be stored");
                if matches!(error, AppendError::NotSent(_)) {
                    self.notes().put_back(notes);
                }
            }
        }
    }

    fn observed(&self, sequence: u64) -> Option<u64> {
        let mut place = self.place();
        place.last = sequence;
        place.observations.push_back(sequence);
        if place.observations.len() < 2 * KEPT_OBSERVATIONS {
            return None;
        }
        place.observations.drain(..KEPT_OBSERVATIONS);
        place.observations.front().copied()
    }

    /// A job that comes back without using a try leaves two entries each time: what is long over goes,
    /// so that the log of one that does so for days can still be read.
    pub(crate) async fn shorten(&self, tree: &Tree, record: &JobRecord) {
        const OVER: [EventType; 3] = [EventType::Started, EventType::HandedBack, EventType::Progress];
        if tree.0.len() < LONG || !tree.can_lose(&OVER, record.fence) {
            return;
        }
        for event in OVER {
            self.trim(event, record.fence).await;
        }
    }

    /// Remove such entries before the one numbered `before`. The last entry of the tree stays, so
    /// what the next append expects stays as well.
    async fn trim(&self, event: EventType, before: u64) {
        let log = &self.queue.log;
        let filter = format!("{}.{}", self.tree, event.token());
        let trimmed = async {
            let stream = log.context.get_stream_no_info(&log.stream).await.map_err(|error| chain(&error))?;
            let purge = stream.purge().filter(filter).sequence(before);
            purge.await.map(drop).map_err(|error| chain(&error))
        };
        if let Err(error) = trimmed.await {
            tracing::debug!(job = %self.id, error, "old entries of a job could not be removed");
        }
    }

    /// The log went on without us: find out whether the job is still ours.
    pub(crate) fn moved(&self, record: Option<&JobRecord>) {
        let Some(record) = record else { return };
        match record.state {
            JobState::Active if record.fence == self.place().fence => self.place().last = record.last,
            JobState::Cancelled => self.cancel(Cancellation::Job),
            _ => self.cancel(Cancellation::LeaseLost),
        }
    }

    /// Sequence number of our `started`, once there is one.
    pub(crate) fn fence(&self) -> Option<u64> {
        self.begun.load(Ordering::Acquire).then(|| self.place().fence)
    }

    /// Whether the latest try in the log is ours.
    pub(crate) fn owns(&self, record: &JobRecord) -> bool {
        record.state == JobState::Active && record.fence == self.place().fence
    }

    pub(crate) fn expects(&self, last: u64) {
        self.place().last = last;
    }

    fn entry(&self, event: EventType, state: JobState, tries: u32) -> Entry<'_> {
        let JobDeclaration { contract, name, .. } = self.queue.declaration;
        let previous_state = Some(self.place().state);
        let now = self.queue.log.ports.clock.now();
        Entry { previous_state, tries, ..Entry::bare(self.id.as_str(), contract, name, event, state, now) }
    }

    async fn append(&self, entry: &Entry<'_>, patience: Duration) -> Result<u64, AppendError> {
        let append = Append {
            tree: self.tree.clone(),
            token: entry.event_type.token(),
            expected: self.place().last,
            id: self.queue.log.ports.ulid(),
            headers: HeaderMap::new(),
            body: entry.encode().into(),
        };
        self.queue.log.append(&append, patience).await
    }

    fn place(&self) -> std::sync::MutexGuard<'_, Place> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_notes(&self) -> Notes {
        self.notes().take()
    }

    fn note(&self, note: impl FnOnce(&mut Notes)) {
        if self.over.load(Ordering::Acquire) {
            return;
        }
        note(&mut self.notes());
        self.noted.notify_one();
    }

    /// Ready when there is something to store.
    pub(crate) async fn noted(&self) {
        self.noted.notified().await;
    }

    fn now(&self) -> String {
        rfc3339(self.queue.log.ports.clock.now())
    }

    fn monotonic(&self) -> Duration {
        self.queue.log.ports.clock.monotonic()
    }

    /// Raise a reason to end. The one that counts most stays.
    pub(crate) fn cancel(&self, reason: Cancellation) {
        let before = self.cancellation.fetch_max(rank(reason), Ordering::AcqRel);
        if before < rank(reason) {
            self.cancelled.notify_waiters();
        }
    }

    /// Ready when a reason counts more than `known`.
    pub(crate) async fn cancelled_beyond(&self, known: Option<Cancellation>) -> Cancellation {
        loop {
            let changed = self.cancelled.notified();
            match self.reason() {
                Some(reason) if Some(reason) > known => return reason,
                _ => changed.await,
            }
        }
    }

    pub(crate) fn reason(&self) -> Option<Cancellation> {
        match self.cancellation.load(Ordering::Acquire) {
            1 => Some(Cancellation::Deadline),
            2 => Some(Cancellation::Job),
            3 => Some(Cancellation::Shutdown),
            4 => Some(Cancellation::LeaseLost),
            _ => None,
        }
    }

    /// How long ago it was ours for certain.
    pub(crate) fn held_for(&self) -> Duration {
        Duration::from_millis(ms(self.monotonic()).saturating_sub(self.ours_at.load(Ordering::Acquire)))
    }

    /// Whether the broker may have given it to another one: then nothing more may be said on it, for
    /// what a late owner says hits the new owner's delivery.
    pub(crate) fn is_lost(&self) -> bool {
        self.reason() == Some(Cancellation::LeaseLost) || self.held_for() >= self.queue.ack_wait
    }

    /// Tell the broker that it is at work, and hear that it was understood.
    pub(crate) async fn renew(&self) {
        let client = &self.queue.log.client;
        if client.connection_state() != State::Connected {
            return;
        }
        let before = self.monotonic();
        let request =
            Request::new().payload(Bytes::from(AckKind::Progress)).timeout(Some(self.queue.ack_wait / 4));
        let sent = client.send_request(self.reply.clone(), request);
        let Ok(sent) = tokio::time::timeout(self.queue.ack_wait / 4, sent).await else {
            return tracing::debug!(job = %self.id, "a delivery could not be renewed in time");
        };
        match sent {
            // An answer that comes after the ack wait was given to a stranger's delivery.
            Ok(_) if !self.is_lost() => self.ours_at.store(ms(before), Ordering::Release),
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(job = %self.id, error = %chain(&error), "a delivery could not be renewed");
            }
        }
    }

    /// Say what became of the delivery. Not confirmed: what the broker does not hear brings the
    /// delivery back, and the log then says what is left to do.
    pub(crate) async fn say(&self, kind: AckKind) {
        let client = &self.queue.log.client;
        if self.is_lost() || client.connection_state() != State::Connected {
            return;
        }
        let said = client.publish(self.reply.clone(), kind.into());
        let Ok(said) = tokio::time::timeout(SAY_TIMEOUT, said).await else {
            return tracing::debug!(job = %self.id, "a delivery could not be settled in time, it comes back");
        };
        if let Err(error) = said {
            tracing::debug!(job = %self.id, error = %chain(&error), "a delivery could not be settled, it comes back");
        }
    }
}

/// What travels to those who listen for updates.
#[expect(clippy::struct_field_names, reason = "the names are those of the protocol")]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    v: u32,
    job_id: &'a str,
    attempt: u32,
    sequence: u64,
    timestamp: String,
    update: &'a RawValue,
}

impl Attempt for Live {
    fn progress(&self, progress: Progress) {
        self.note(|notes| notes.progress(progress));
    }

    fn log(&self, line: LogLine) {
        let timestamp = self.now();
        self.note(|notes| notes.line(timestamp, line.level, &line.message));
    }

    fn update(&self, update: Vec<u8>) -> Boxed<'_, Result<(), UpdateError>> {
        Box::pin(async move {
            let JobDeclaration { contract, name, .. } = self.queue.declaration;
            let not_sent = |reason: String| UpdateError::NotSent { name, reason };
            let checked = self.queue.validators.check((contract, name), self.queue.update_schema, &update);
            checked.map_err(|invalid| UpdateError::Invalid { name, problem: invalid.to_string() })?;
            let client = &self.queue.log.client;
            if self.over.load(Ordering::Acquire) || self.is_lost() {
                return Err(not_sent("the try has ended".to_owned()));
            }
            if client.connection_state() != State::Connected {
                return Err(not_sent("no connection to the server".to_owned()));
            }
            let update =
                serde_json::from_slice(&update).map_err(|source| UpdateError::Encode { name, source })?;
            let body = Update {
                v: crate::jobs::event::VERSION,
                job_id: self.id.as_str(),
                attempt: self.place().tries,
                sequence: self.updates.fetch_add(1, Ordering::AcqRel) + 1,
                timestamp: self.now(),
                update,
            };
            let body = serde_json::to_vec(&body).map_err(|source| UpdateError::Encode { name, source })?;
            let subject = format!("{}.{}", self.queue.updates, self.id);
            client.publish(subject, body.into()).await.map_err(|error| not_sent(chain(&error)))
        })
    }

    fn cancellation(&self) -> Option<Cancellation> {
        self.reason()
    }

    fn cancelled(&self) -> Boxed<'_, Cancellation> {
        Box::pin(self.cancelled_beyond(None))
    }

    fn waiting(&self, target: WaitTarget) -> String {
        let (id, started_at) = (self.queue.log.ports.ulid(), self.now());
        self.note(|notes| notes.waiting(id.clone(), target, started_at));
        id
    }

    fn resumed(&self, wait: String) {
        self.note(|notes| notes.resumed(&wait));
    }
}

fn rank(reason: Cancellation) -> u8 {
    match reason {
        Cancellation::Job => 2,
        Cancellation::Shutdown => 3,
        Cancellation::LeaseLost => 4,
        // Reasons that a later version knows count least.
        _ => 1,
    }
}

pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long is left until `deadline`, by `now`.
pub(crate) fn left(deadline: Option<SystemTime>, now: SystemTime) -> Option<Duration> {
    deadline.map(|deadline| deadline.duration_since(now).unwrap_or_default())
}
