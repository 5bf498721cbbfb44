//! Destinations that are away: lanes leave their rows alone, and a task of its own looks after each,
//! so that a stream which does not answer holds up no row of another one.
use std::time::Duration;

use crate::broker::Destination;
use crate::database::Database;
use crate::outbox::dispatcher::lane::Worker;
use crate::outbox::row::Kind;

/// Shortest and longest wait between two probes.
const PROBE_FIRST: Duration = Duration::from_millis(100);
const PROBE_LONGEST: Duration = Duration::from_secs(2);

impl<D: Database> Worker<D> {
    /// Claim nothing for `destination` until it is back.
    pub(super) fn pause_for(&self, destination: Destination, reason: String) {
        tracing::warn!(?destination, reason, "the broker is not available, dispatching pauses");
        self.control.away.send_modify(|away| drop(away.insert(destination, reason)));
    }

    /// Which kinds can be sent, in the order of [`Kind::ALL`].
    pub(super) fn reachable(&self) -> [bool; Kind::ALL.len()] {
        let away = self.control.away.borrow();
        Kind::ALL.map(|kind| !away.contains_key(&kind.destination()))
    }

    /// Probe what is away, once; whether any of it is back.
    pub(super) async fn any_is_back(&self) -> bool {
        let away: Vec<Destination> = self.control.away.borrow().keys().copied().collect();
        let probed = futures_util::future::join_all(away.into_iter().map(|away| self.is_back(away))).await;
        probed.contains(&true)
    }

    async fn is_back(&self, destination: Destination) -> bool {
        match self.broker.probe(destination).await {
            Ok(()) => {
                tracing::info!(?destination, "the broker is back, dispatching goes on");
                self.control.away.send_modify(|away| drop(away.remove(&destination)));
                self.shared.wake.notify_one();
                true
            }
            Err(reason) => {
                self.control.away.send_modify(|away| drop(away.insert(destination, reason)));
                false
            }
        }
    }

    /// Look after `destination` whenever it is away, until the dispatcher drains: then lanes do.
    pub(super) async fn look_after(&self, destination: Destination) {
        let mut away = self.control.away.subscribe();
        let mut probes: u32 = 0;
        loop {
            let longest = PROBE_FIRST.saturating_mul(1 << probes.min(8)).min(PROBE_LONGEST);
            tokio::select! {
                () = self.control.drain.cancelled() => return,
                () = self.control.halt.cancelled() => return,
                seen = away.wait_for(|away| away.contains_key(&destination)) => {
                    if seen.is_err() {
                        return;
                    }
                }
            }
            tokio::select! {
                () = self.control.drain.cancelled() => return,
                () = self.control.halt.cancelled() => return,
                () = tokio::time::sleep(longest / 2 + self.shared.ports.jitter.full(longest / 2)) => {}
            }
            probes = if self.is_back(destination).await { 0 } else { probes.saturating_add(1) };
        }
    }
}
