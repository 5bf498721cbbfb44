//! One consumer group at work: pulls as much as it has slots for, delivers, survives the broker.
use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, EventDeclaration, GroupDeclaration, Service};

use crate::ctx::Ctx;
use crate::database::Database;
use crate::events::provision::Provision;
use crate::events::pull::Binding;
use crate::events::route::Route;
use crate::nats::Nats;
use crate::outbox::SqlOutbox;
use crate::ports::Ports;

/// Shortest and longest wait after a pull failed.
const TROUBLE_FIRST: Duration = Duration::from_millis(100);
const TROUBLE_LONGEST: Duration = Duration::from_secs(2);

/// How a group handles its events.
///
/// Fields may be added: write `GroupConfig { .., ..Default::default() }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// Handlers at work at once, per process. Default 1. Order is not kept beyond 1.
    pub concurrency: u16,
    /// Deliveries after which a failing event becomes a dead letter. Default 10.
    pub max_deliveries: u64,
    /// Delay after the first failed delivery. Default 1 s; it doubles with each further one.
    pub backoff_first: Duration,
    /// The longest delay. Default 5 min.
    pub backoff_longest: Duration,
    /// How long a delivery may go without a sign of life before another instance gets it.
    /// Default 30 s; signs of life are automatic while a handler runs.
    pub ack_wait: Duration,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self {
            concurrency: 1,
            max_deliveries: 10,
            backoff_first: Duration::from_secs(1),
            backoff_longest: Duration::from_secs(300),
            ack_wait: Duration::from_secs(30),
        }
    }
}

impl GroupConfig {
    /// What is wrong with it, if anything is.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.concurrency == 0 {
            Some("`concurrency` must be at least 1")
        } else if self.max_deliveries == 0 {
            Some("`max_deliveries` must be at least 1")
        } else if self.ack_wait < Duration::from_secs(1) {
            Some("`ack_wait` must be at least 1 s")
        } else if self.backoff_first > self.backoff_longest {
            Some("`backoff_first` must not exceed `backoff_longest`")
        } else {
            None
        }
    }
}

/// A mounted group.
pub(crate) struct Group<S: Service> {
    pub(crate) declaration: GroupDeclaration,
    pub(crate) members: &'static [EventDeclaration],
    pub(crate) config: GroupConfig,
    pub(crate) routes: Vec<Route<S>>,
}

/// A group and all that its deliveries need.
pub(crate) struct GroupRunner<S: Service, C: Contract, D: Database> {
    pub(crate) service: Arc<S>,
    pub(crate) client: Client,
    pub(crate) nats: Nats,
    pub(crate) context: Context,
    pub(crate) outbox: SqlOutbox<D>,
    pub(crate) provision: Arc<Provision>,
    pub(crate) stream: String,
    pub(crate) consumer: Arc<str>,
    pub(crate) declaration: GroupDeclaration,
    pub(crate) members: &'static [EventDeclaration],
    pub(crate) config: GroupConfig,
    pub(crate) routes: Vec<Route<S>>,
    /// Why no events are pulled now.
    pub(crate) problem: watch::Sender<Option<String>>,
    /// Something may be missing on the server.
    pub(crate) doubt: Arc<Notify>,
    pub(crate) contract: std::marker::PhantomData<fn() -> C>,
}

impl<S, C, D> GroupRunner<S, C, D>
where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    pub(crate) fn ports(&self) -> &Ports {
        &self.outbox.0.ports
    }

    /// Work until `stop`; then finish the handlers that run, or give their events back on `interrupt`.
    pub(crate) async fn run(
        self: Arc<Self>,
        mut binding: Binding,
        stop: CancellationToken,
        interrupt: CancellationToken,
    ) {
        let slots = Arc::new(Semaphore::new(self.config.concurrency.into()));
        let mut deliveries = JoinSet::new();
        let mut troubles = 0;
        while !stop.is_cancelled() {
            let slot = tokio::select! {
                slot = Arc::clone(&slots).acquire_owned() => slot,
                () = stop.cancelled() => break,
            };
            let Ok(slot) = slot else { break };
            reap(&mut deliveries);
            let mut free = vec![slot];
            while let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
                free.push(slot);
            }
            match self.pull(&mut binding, free, &mut deliveries, &stop, &interrupt).await {
                Ok(()) => {
                    troubles = 0;
                    self.problem.send_if_modified(|problem| problem.take().is_some());
                }
                Err(reason) => {
                    tracing::warn!(group = %self.consumer, reason, "events cannot be pulled, trying again");
                    self.problem.send_replace(Some(reason));
                    binding.forget();
                    let longest = TROUBLE_FIRST.saturating_mul(1 << troubles.min(8)).min(TROUBLE_LONGEST);
                    troubles += 1;
                    tokio::select! {
                        () = tokio::time::sleep(longest / 2 + self.ports().jitter.full(longest / 2)) => {}
                        () = stop.cancelled() => {}
                    }
                }
            }
        }
        while let Some(ended) = deliveries.join_next().await {
            told(ended);
        }
    }
}

/// Forget deliveries that have ended.
fn reap(deliveries: &mut JoinSet<()>) {
    while let Some(ended) = deliveries.try_join_next() {
        told(ended);
    }
}

fn told(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a delivery broke off, its event comes back after its ack wait");
    }
}
