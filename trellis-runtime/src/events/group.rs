//! One consumer group at work: pulls as much as it has slots for, delivers, survives the broker.
use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::PullConsumer;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, EventDeclaration, GroupDeclaration, Service};

use crate::causes::chain;
use crate::ctx::Ctx;
use crate::database::Database;
use crate::events::provision::{Provision, ProvisionError};
use crate::events::route::Route;
use crate::outbox::SqlOutbox;
use crate::ports::Ports;

/// How long an issued pull waits for messages. It is never cancelled, so this bounds a stop as well.
const PULL_EXPIRES: Duration = Duration::from_secs(1);
/// Longest time beyond that until a pull that the server forgot is given up.
const PULL_GRACE: Duration = Duration::from_secs(5);
/// Shortest and longest wait after a pull failed.
const TROUBLE_FIRST: Duration = Duration::from_millis(100);
const TROUBLE_LONGEST: Duration = Duration::from_secs(5);

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
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken, interrupt: CancellationToken) {
        let slots = Arc::new(Semaphore::new(self.config.concurrency.into()));
        let mut deliveries = JoinSet::new();
        let mut troubles = 0;
        let mut consumer = None;
        while !stop.is_cancelled() {
            let slot = tokio::select! {
                slot = Arc::clone(&slots).acquire_owned() => slot,
                () = stop.cancelled() => break,
            };
            let Ok(slot) = slot else { break };
            while deliveries.try_join_next().is_some() {}
            match self.pull(&mut consumer, slot, &slots, &mut deliveries, &stop, &interrupt).await {
                Ok(()) => {
                    troubles = 0;
                    self.problem.send_if_modified(|problem| problem.take().is_some());
                }
                Err(reason) => {
                    tracing::warn!(group = %self.consumer, reason, "events cannot be pulled, trying again");
                    self.problem.send_replace(Some(reason));
                    consumer = None;
                    let longest = TROUBLE_FIRST.saturating_mul(1 << troubles.min(8)).min(TROUBLE_LONGEST);
                    troubles += 1;
                    tokio::select! {
                        () = tokio::time::sleep(longest / 2 + self.ports().jitter.full(longest / 2)) => {}
                        () = stop.cancelled() => {}
                    }
                }
            }
        }
        while deliveries.join_next().await.is_some() {}
    }

    /// One pull, for as many events as there are free slots.
    async fn pull(
        self: &Arc<Self>,
        consumer: &mut Option<PullConsumer>,
        first: OwnedSemaphorePermit,
        slots: &Arc<Semaphore>,
        deliveries: &mut JoinSet<()>,
        stop: &CancellationToken,
        interrupt: &CancellationToken,
    ) -> Result<(), String> {
        let bound = match consumer {
            Some(bound) => bound,
            None => consumer.insert(self.bind().await.map_err(|error| chain(&error))?),
        };
        let mut free = vec![first];
        while let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
            free.push(slot);
        }
        let pull = bound.batch().max_messages(free.len()).expires(PULL_EXPIRES).messages().await;
        let mut pull = pull.map_err(|error| chain(&error))?;
        let mut got_any = false;
        loop {
            let next = tokio::time::timeout(PULL_EXPIRES + PULL_GRACE, pull.next()).await;
            match next.map_err(|_| "the server does not answer a pull".to_owned())? {
                Some(Ok(message)) if stop.is_cancelled() => give_back(message).await,
                Some(Ok(message)) => {
                    got_any = true;
                    let (runner, interrupt, slot) = (Arc::clone(self), interrupt.clone(), free.pop());
                    deliveries.spawn(async move {
                        runner.deliver(message, interrupt).await;
                        drop(slot);
                    });
                }
                Some(Err(error)) => return Err(chain(error.as_ref())),
                None if got_any => return Ok(()),
                // A pull that ends with nothing may have met no consumer at all: that is silent.
                None => return self.is_connected(),
            }
        }
    }

    fn is_connected(&self) -> Result<(), String> {
        match self.client.connection_state() {
            async_nats::connection::State::Connected => Ok(()),
            state => Err(format!("no connection to the server ({state})")),
        }
    }

    async fn bind(&self) -> Result<PullConsumer, ProvisionError> {
        self.provision.consumer(&self.declaration, self.members, &self.config).await
    }
}

/// A message that arrived after the stop goes back at once, for another instance.
async fn give_back(message: async_nats::jetstream::Message) {
    let nak = async_nats::jetstream::AckKind::Nak(None);
    if let Err(error) = message.ack_with(nak).await {
        tracing::debug!(error = %chain(error.as_ref()), "a late event could not be given back, its ack wait does it");
    }
}
