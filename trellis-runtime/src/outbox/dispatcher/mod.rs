//! The dispatcher: claims rows, publishes them, settles them. Several share a table.
//!
//! A few lanes run the same loop: claim a page, publish it, settle it. One lane claims at a time,
//! so that while one page is being claimed another is published and a third settled. Events and jobs
//! go to streams of their own: while one is away, the rows for it are not claimed.
mod away;
mod decide;
mod judge;
mod lane;
mod page;
mod settle;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::broker::{Broker, Destination};
use crate::database::Database;
use crate::outbox::SqlOutbox;
use crate::outbox::row::Kind;
use crate::outbox::shared::Shared;
use lane::Task;

pub(crate) use verdict::UNKNOWN;

/// Pages under way at once: one claimed, one published, one settled.
const LANES: usize = 3;
/// How long lanes that were told to halt may finish the page they hold.
const HALT_WAIT: Duration = Duration::from_secs(20);

/// Relays the committed rows of one outbox to the broker until it is stopped.
///
/// Dropped without [`Dispatcher::stop`], it ends at once; rows it held are sent again by another
/// dispatcher when their lease ends.
#[derive(Debug)]
pub struct Dispatcher {
    lanes: Mutex<JoinSet<()>>,
    control: Arc<Control>,
    stopped: AtomicBool,
}

/// What a dispatcher has done since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatcherStats {
    /// Messages that the broker has acknowledged, and jobs that it has.
    pub sent: u64,
    /// Those of them that the broker had already.
    pub duplicates: u64,
    /// Jobs that were refused for good, because their id is taken by other content.
    pub rejected: u64,
    /// Failures that were the row's.
    pub failed: u64,
    /// Rows that became dead.
    pub dead: u64,
    /// Rows given back because the broker was not available.
    pub released: u64,
}

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    duplicates: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
    released: AtomicU64,
}

/// What lanes and their owner share.
#[derive(Debug)]
struct Control {
    /// Stop once nothing is left to claim.
    drain: CancellationToken,
    /// Claim nothing more.
    halt: CancellationToken,
    /// Why nothing is claimed for these until they are back.
    away: watch::Sender<BTreeMap<Destination, String>>,
    /// Why the last claim or mark failed.
    trouble: watch::Sender<Option<String>>,
    /// Marks that the database has refused so far. Nothing is claimed while there are any.
    owed: AtomicUsize,
    counters: Counters,
}

impl Dispatcher {
    /// Start relaying. Does not wait.
    pub fn start<D: Database>(outbox: &SqlOutbox<D>, broker: Arc<dyn Broker>) -> Self {
        let control = Arc::new(Control {
            drain: CancellationToken::new(),
            halt: CancellationToken::new(),
            away: watch::Sender::default(),
            trouble: watch::Sender::new(None),
            owed: AtomicUsize::new(0),
            counters: Counters::default(),
        });
        let worker = Arc::new(lane::Worker {
            shared: Arc::<Shared<D>>::clone(&outbox.0),
            broker,
            control: Arc::clone(&control),
            claiming: Mutex::new(lane::Upkeep::default()),
        });
        let mut lanes = JoinSet::new();
        for _ in 0..LANES {
            lanes.spawn(Arc::clone(&worker).run(Task::Lane));
        }
        for kind in Kind::ALL {
            lanes.spawn(Arc::clone(&worker).run(Task::LookAfter(kind.destination())));
        }
        Self { lanes: Mutex::new(lanes), control, stopped: AtomicBool::new(false) }
    }

    /// Send what is left, for at most `drain`; then finish the pages under way and end.
    ///
    /// Idempotent. Cancel safety: called again, it goes on where it was.
    pub async fn stop(&self, drain: Duration) {
        self.control.drain.cancel();
        let mut lanes = self.lanes.lock().await;
        let drained = tokio::time::timeout(drain, ended(&mut lanes)).await;
        self.control.halt.cancel();
        if drained.is_err() && tokio::time::timeout(HALT_WAIT, ended(&mut lanes)).await.is_err() {
            tracing::warn!(
                "dispatcher lanes did not end in time and were aborted; their rows are sent again after the lease"
            );
            lanes.shutdown().await;
        }
        if !self.stopped.swap(true, Ordering::AcqRel) {
            tracing::info!(stats = ?self.stats(), "dispatcher stopped");
        }
    }

    /// What was done so far.
    pub fn stats(&self) -> DispatcherStats {
        let counters = &self.control.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DispatcherStats {
            sent: read(&counters.sent),
            duplicates: read(&counters.duplicates),
            rejected: read(&counters.rejected),
            failed: read(&counters.failed),
            dead: read(&counters.dead),
            released: read(&counters.released),
        }
    }

    /// Why nothing is sent at the moment, or nothing of one kind, if so: the broker or a stream is away,
    /// or the outbox cannot be read.
    pub fn paused(&self) -> Option<String> {
        let away = self.control.away.borrow().values().next().cloned();
        away.or_else(|| self.control.trouble.borrow().clone())
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.control.halt.cancel();
    }
}

async fn ended(lanes: &mut JoinSet<()>) {
    while let Some(lane) = lanes.join_next().await {
        if let Err(error) = lane {
            tracing::error!(%error, "a dispatcher lane panicked");
        }
    }
}
