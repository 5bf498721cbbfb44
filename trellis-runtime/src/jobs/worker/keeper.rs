//! Keeps the deliveries at work alive, and notices those that are lost or cancelled.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use trellis::{Cancellation, JobId};

use crate::jobs::event::EventType;
use crate::jobs::state::JobState;
use crate::jobs::worker::live::Live;

/// When the log is asked after a cancellation was heard.
const ASKED_AFTER: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(50), Duration::from_millis(200)];

/// The deliveries at work in one queue of one process. Bounded by the queue's slots.
#[derive(Default)]
pub(crate) struct Keeper {
    next: AtomicU64,
    live: Mutex<HashMap<u64, Arc<Live>>>,
}

/// Holds a delivery in the keeper.
pub(crate) struct Kept<'a> {
    keeper: &'a Keeper,
    key: u64,
}

impl Keeper {
    /// Keep `live` until what is returned is dropped.
    pub(crate) fn keep(&self, live: Arc<Live>) -> Kept<'_> {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        self.table().insert(key, live);
        Kept { keeper: self, key }
    }

    /// Ask the log whether the job `id` was cancelled: others hear an append also when it is refused,
    /// and before it is stored.
    pub(crate) async fn ask(&self, id: &JobId) {
        // A lost try of it may be left beside a new one.
        let all: Vec<Arc<Live>> = self.table().values().filter(|live| live.id == *id).cloned().collect();
        for pause in ASKED_AFTER {
            tokio::time::sleep(pause).await;
            for live in &all {
                look_for_cancellation(live).await;
            }
            if all.iter().all(|live| live.reason() >= Some(Cancellation::Job)) {
                return;
            }
        }
    }

    /// Raise it in all.
    pub(crate) fn cancel_all(&self, reason: Cancellation) {
        for live in self.table().values() {
            live.cancel(reason);
        }
    }

    /// Renew for ever. A task of its own does so, because a handler may block its thread.
    pub(crate) async fn run(&self, ack_wait: Duration) {
        let tick = (ack_wait / 8).clamp(Duration::from_millis(50), Duration::from_secs(2));
        loop {
            tokio::time::sleep(tick).await;
            let all: Vec<Arc<Live>> = self.table().values().cloned().collect();
            let mut renewals = FuturesUnordered::new();
            for live in &all {
                if live.is_lost() {
                    live.cancel(Cancellation::LeaseLost);
                } else if live.held_for() >= ack_wait / 4 {
                    // Neither may keep the next renewals waiting.
                    let look = tokio::time::timeout(ack_wait / 4, look_for_cancellation(live));
                    renewals.push(async { tokio::join!(live.renew(), look) });
                }
            }
            while renewals.next().await.is_some() {}
        }
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.keeper.table().remove(&self.key);
    }
}

/// The live message of a cancellation can be lost; the log has it all the same. And a server that has
/// forgotten renewals may have given the job to another one, whose try is in the log then.
async fn look_for_cancellation(live: &Live) {
    let started = format!("{}.{}", live.tree, EventType::Started.token());
    if let Some(fence) = live.fence()
        && let Ok(Some(_)) = live.queue.log.next(&started, fence + 1).await
    {
        return live.cancel(Cancellation::LeaseLost);
    }
    let filter = format!("{}.{}", live.tree, EventType::Cancelled.token());
    let log = &live.queue.log;
    // An entry is not yet one that was accepted.
    if let Ok(Some(_)) = log.next(&filter, live.signal).await
        && let Ok(Some(tree)) = log.tree(&live.tree).await
        && tree.fold().ok().flatten().is_some_and(|record| record.state == JobState::Cancelled)
    {
        live.cancel(Cancellation::Job);
    }
}
