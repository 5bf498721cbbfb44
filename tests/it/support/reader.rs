//! A service whose handlers do what a test says, and tell what they were handed.
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};
use trellis::{Event, HandlerError, On, Received, Service};
use trellis_runtime::ports::{Clock, SystemClock};
use trellis_runtime::{Ctx, GroupConfig, Host, HostBuilder, OutboxError, SqlOutbox, StreamConfig};

use super::contract::{Added, EVENT, Moved, added, notes};
use super::nats::Nats;
use super::{Bed, TestDb};

pub type NotesCtx<D> = Ctx<notes::Contract, D>;
pub type NotesHost<D> = Host<notes::Contract, D>;
pub type Handled = Result<(), HandlerError>;

/// Longest wait for something that should happen at once.
pub const SOON: Duration = Duration::from_secs(20);

/// A delivery as its handler got it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// `number` of a note added, `step` of one moved.
    pub number: u64,
    pub event: &'static str,
    pub id: String,
    pub root_id: String,
    pub subject: String,
    pub deliveries: u64,
    pub time: SystemTime,
    /// When the handler began, by a clock that all handlers share.
    pub at: Duration,
}

impl Seen {
    /// How long after another one.
    pub fn after(&self, other: &Self) -> Duration {
        self.at.saturating_sub(other.at)
    }
}

type Act<D> = dyn for<'a> Fn(&'a NotesCtx<D>, &'a Seen) -> BoxFuture<'a, Handled> + Send + Sync;

/// The service. Clones are further instances of it.
pub struct Reader<D: TestDb> {
    act: Arc<Act<D>>,
    tell: mpsc::UnboundedSender<Seen>,
}

// By hand: a derive would demand `D: Clone`.
impl<D: TestDb> Clone for Reader<D> {
    fn clone(&self) -> Self {
        Self { act: Arc::clone(&self.act), tell: self.tell.clone() }
    }
}

/// What handlers were handed, in the order in which they began.
#[derive(Clone)]
pub struct Heard(Arc<Mutex<mpsc::UnboundedReceiver<Seen>>>);

impl<D: TestDb> Reader<D> {
    /// Handlers do `act`.
    pub fn new<F>(act: F) -> (Self, Heard)
    where
        F: for<'a> Fn(&'a NotesCtx<D>, &'a Seen) -> BoxFuture<'a, Handled> + Send + Sync + 'static,
    {
        let (tell, hear) = mpsc::unbounded_channel();
        (Self { act: Arc::new(act), tell }, Heard(Arc::new(Mutex::new(hear))))
    }

    /// Handlers that succeed at once.
    pub fn content() -> (Self, Heard) {
        Self::new(|_, _| Box::pin(async { Ok(()) }))
    }

    async fn saw<E: Event>(&self, ctx: &NotesCtx<D>, event: Received<E>, number: u64) -> Handled {
        let seen = Seen {
            number,
            event: E::DECLARATION.name,
            id: event.id.to_string(),
            root_id: event.root_id.to_string(),
            subject: event.subject,
            deliveries: event.deliveries,
            time: event.time,
            at: now(),
        };
        // A test that has seen enough hears no more.
        drop(self.tell.send(seen.clone()));
        (self.act)(ctx, &seen).await
    }
}

/// The clock of [`Seen::at`].
pub fn now() -> Duration {
    static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::default);
    CLOCK.monotonic()
}

impl Heard {
    /// The next delivery.
    pub async fn next(&self) -> Seen {
        let next = tokio::time::timeout(SOON, async { self.0.lock().await.recv().await }).await;
        next.expect("a handler should have been called").expect("the service should be there")
    }

    /// The next `count` deliveries.
    pub async fn take(&self, count: usize) -> Vec<Seen> {
        let mut seen = Vec::new();
        while seen.len() < count {
            seen.push(self.next().await);
        }
        seen
    }

    /// Their numbers.
    pub async fn numbers(&self, count: usize) -> Vec<u64> {
        self.take(count).await.into_iter().map(|seen| seen.number).collect()
    }

    /// What was heard and not asked for yet.
    pub async fn rest(&self) -> Vec<Seen> {
        let mut hear = self.0.lock().await;
        std::iter::from_fn(|| hear.try_recv().ok()).collect()
    }
}

impl<D: TestDb> Service for Reader<D> {
    type Ctx = NotesCtx<D>;
}

impl<D: TestDb> On<Added> for Reader<D> {
    async fn on(&self, ctx: &NotesCtx<D>, event: Received<Added>) -> Handled {
        let number = event.payload.number;
        self.saw(ctx, event, number).await
    }
}

impl<D: TestDb> On<Moved> for Reader<D> {
    async fn on(&self, ctx: &NotesCtx<D>, event: Received<Moved>) -> Handled {
        let step = event.payload.step;
        self.saw(ctx, event, step).await
    }
}

/// A host on this database and server, with nothing mounted yet.
pub fn host<D: TestDb>(
    bed: &Bed<D>,
    nats: &Nats,
    reader: &Reader<D>,
) -> HostBuilder<Reader<D>, notes::Contract, D> {
    host_of(bed.outbox(), nats, reader)
}

pub fn host_of<D: TestDb>(
    outbox: SqlOutbox<D>,
    nats: &Nats,
    reader: &Reader<D>,
) -> HostBuilder<Reader<D>, notes::Contract, D> {
    Host::builder(reader.clone(), outbox).client(nats.client.clone()).streams(small())
}

/// Streams that fit on any disk.
pub fn small() -> StreamConfig {
    StreamConfig { max_bytes: 64 << 20, ..StreamConfig::default() }
}

/// A group that is quick to try again.
pub fn quick() -> GroupConfig {
    GroupConfig {
        ack_wait: Duration::from_secs(2),
        backoff_first: Duration::from_millis(50),
        backoff_longest: Duration::from_millis(200),
        ..GroupConfig::default()
    }
}

/// Commit one event per number.
pub async fn add<D: TestDb>(ctx: &NotesCtx<D>, numbers: impl IntoIterator<Item = u64>) {
    let done: Result<(), OutboxError> = ctx
        .transaction(async |tx| {
            for number in numbers {
                EVENT.notes.added.enqueue(tx, added(number)).await?;
            }
            Ok(())
        })
        .await;
    done.unwrap();
}
