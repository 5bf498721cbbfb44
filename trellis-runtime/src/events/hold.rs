//! A delivery that is ours: renewed while its handler runs, settled once, silent when it is lost.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::AckKind;
use async_nats::{Client, Request, Subject};
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::causes::chain;
use crate::ports::Clock;

/// How long the broker may take to confirm a settlement, and all tries of one together.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Wait between two tries.
const SETTLE_AGAIN: Duration = Duration::from_millis(100);

/// Where a delivery is settled, and since when it is ours.
pub(crate) struct Terms {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ack_wait: Duration,
    /// A moment, on the monotonic clock, before the broker gave the delivery away.
    pub(crate) given_after: Duration,
    /// Where the broker listens for what becomes of it.
    pub(crate) reply: Subject,
}

/// Holds a delivery. Dropped unsettled, it comes back after its ack wait.
pub(crate) struct Hold {
    shared: Arc<Shared>,
    keeper: JoinSet<()>,
}

struct Shared {
    terms: Terms,
    /// When it was ours for certain, in milliseconds of the monotonic clock.
    ours_at: AtomicU64,
    lost: CancellationToken,
}

impl Hold {
    /// Begin to renew it. A task of its own does so, because a handler may block its thread.
    pub(crate) async fn begin(terms: Terms) -> Self {
        let ours_at = AtomicU64::new(ms(terms.given_after));
        let shared = Arc::new(Shared { terms, ours_at, lost: CancellationToken::new() });
        let mut keeper = JoinSet::new();
        keeper.spawn(Arc::clone(&shared).keep());
        // Its first step: a task that was never polled waits behind a handler that blocks this thread.
        tokio::task::yield_now().await;
        Self { shared, keeper }
    }

    /// Whether the broker may have given the delivery to another one: then nothing more may be said
    /// on it, for what a late owner says hits the new owner's delivery.
    pub(crate) fn is_lost(&self) -> bool {
        self.shared.is_lost()
    }

    /// Ready when it is lost.
    pub(crate) async fn lost(&self) {
        self.shared.lost.cancelled().await;
    }

    /// Tell the broker what became of it. What it does not confirm brings the event back, which the
    /// inbox is for.
    pub(crate) async fn settle(mut self, kind: AckKind) {
        // A renewal after a negative acknowledgement would take its delay away.
        self.keeper.shutdown().await;
        let settled = tokio::time::timeout(SETTLE_TIMEOUT, self.shared.settle(kind)).await;
        if let Err(error) = settled.unwrap_or_else(|_| Err("not confirmed in time".to_owned())) {
            tracing::debug!(reply = %self.shared.terms.reply, error, "a delivery was not settled, it comes back");
        }
    }
}

impl Shared {
    async fn keep(self: Arc<Self>) {
        let pause = self.terms.ack_wait / 4;
        while !self.is_lost() {
            tokio::time::sleep(pause).await;
            let before = self.terms.clock.monotonic();
            if self.is_lost() {
                break;
            }
            match tokio::time::timeout(pause, self.say(AckKind::Progress)).await {
                Ok(Ok(())) => self.ours_at.store(ms(before), Ordering::Release),
                Ok(Err(error)) => tracing::debug!(error, "a delivery could not be renewed"),
                Err(_) => tracing::debug!("the renewal of a delivery was not confirmed in time"),
            }
        }
        self.lost.cancel();
    }

    async fn settle(&self, kind: AckKind) -> Result<(), String> {
        loop {
            if self.is_lost() {
                return Err("it was held longer than its ack wait and is somebody else's now".to_owned());
            }
            let connected = self.is_connected();
            match self.say(kind).await {
                Ok(()) => return Ok(()),
                // It may have been heard, and a second one would hit the next delivery.
                Err(error) if connected && matches!(kind, AckKind::Nak(_)) => return Err(error),
                Err(_) => tokio::time::sleep(SETTLE_AGAIN).await,
            }
        }
    }

    /// Say something, and hear that it was understood.
    async fn say(&self, kind: AckKind) -> Result<(), String> {
        // The client would keep it and say it late.
        if !self.is_connected() {
            return Err("no connection to the server".to_owned());
        }
        let request = Request::new().payload(Bytes::from(kind));
        let answer = self.terms.client.send_request(self.terms.reply.clone(), request).await;
        answer.map(drop).map_err(|error| chain(&error))
    }

    fn is_connected(&self) -> bool {
        self.terms.client.connection_state() == State::Connected
    }

    fn is_lost(&self) -> bool {
        let held = ms(self.terms.clock.monotonic()).saturating_sub(self.ours_at.load(Ordering::Acquire));
        self.lost.is_cancelled() || held >= ms(self.terms.ack_wait)
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
