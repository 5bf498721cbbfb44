//! One pull of a group: bind to its consumer, ask for what there are slots for, hand it to deliveries.
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, Service};

use crate::causes::chain;
use crate::ctx::Ctx;
use crate::database::Database;
use crate::events::consumer::Position;
use crate::events::group::GroupRunner;

/// How long an issued pull waits for messages. It is never cancelled, for what the server gave away
/// in the meantime would be stuck until its ack wait; so this bounds a stop as well.
const EXPIRES: Duration = Duration::from_secs(1);
/// Longest time beyond that until a pull that the server forgot is given up. Shorter than the five
/// seconds after which the client ends it as if the server had answered.
const GRACE: Duration = Duration::from_secs(3);
/// How often the consumer is verified: whether it is there, and how far the group has come.
const VERIFY_EVERY: Duration = Duration::from_secs(5);
/// How often the connection is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a running group knows of its consumer.
#[derive(Debug, Default)]
pub(crate) struct Binding {
    consumer: Option<PullConsumer>,
    /// How far the group had come when last seen: survives the consumer.
    position: Option<Position>,
    verified_at: Duration,
}

impl Binding {
    pub(crate) fn at(position: Position) -> Self {
        Self { position: Some(position), ..Self::default() }
    }

    /// Verify again before the next pull.
    pub(crate) fn forget(&mut self) {
        self.consumer = None;
    }
}

impl<S, C, D> GroupRunner<S, C, D>
where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    /// One pull, for as many events as there are `free` slots.
    pub(crate) async fn pull(
        self: &Arc<Self>,
        binding: &mut Binding,
        mut free: Vec<OwnedSemaphorePermit>,
        deliveries: &mut JoinSet<()>,
        stop: &CancellationToken,
        interrupt: &CancellationToken,
    ) -> Result<(), String> {
        let bound = tokio::select! {
            bound = self.bind(binding) => bound?,
            () = stop.cancelled() => return Ok(()),
        };
        // A pull must end well within the ack wait of what it brings.
        let expires = EXPIRES.min(self.config.ack_wait / 4);
        let (asked, connects) = (self.ports().clock.monotonic(), self.connects());
        let pull = bound.batch().max_messages(free.len()).expires(expires).messages();
        let pull = tokio::time::timeout(GRACE, pull).await;
        let pull = pull.map_err(|_| "a pull could not be sent".to_owned())?;
        let mut pull = pull.map_err(|error| chain(&error))?;
        let mut given_up = pin!(self.given_up(expires, connects));
        loop {
            let next = tokio::select! {
                biased;
                next = pull.next() => next,
                why = &mut given_up => return Err(why.to_owned()),
            };
            match next {
                Some(Ok(message)) if stop.is_cancelled() => give_back(message).await,
                Some(Ok(message)) => {
                    let (runner, interrupt, slot) = (Arc::clone(self), interrupt.clone(), free.pop());
                    deliveries.spawn(async move {
                        runner.deliver(message, asked, interrupt).await;
                        drop(slot);
                    });
                }
                Some(Err(error)) => return Err(chain(error.as_ref())),
                None => return self.connected(),
            }
        }
    }

    /// The consumer, verified lately.
    async fn bind<'b>(&self, binding: &'b mut Binding) -> Result<&'b PullConsumer, String> {
        // The client would keep requests and pulls, and send them when nobody waits for them any more.
        self.connected()?;
        let now = self.ports().clock.monotonic();
        let verified = match binding.consumer.take() {
            Some(bound) if now.saturating_sub(binding.verified_at) < VERIFY_EVERY => bound,
            _ => {
                let wanted =
                    self.provision.consumer(&self.declaration, self.members, &self.config, binding.position);
                let (bound, position) = wanted.await.map_err(|error| chain(&error))?;
                (binding.position, binding.verified_at) = (Some(position), now);
                bound
            }
        };
        Ok(binding.consumer.insert(verified))
    }

    /// Why nothing more can come of a pull that was issued just now; ready when that is so.
    async fn given_up(&self, expires: Duration, connects: u64) -> &'static str {
        tokio::time::sleep(expires).await;
        let gone = async {
            while self.connected().is_ok() && self.connects() == connects {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        match tokio::time::timeout(GRACE, gone).await {
            Ok(()) => "the connection was lost during a pull",
            Err(_) => "the server does not answer a pull",
        }
    }

    fn connects(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    fn connected(&self) -> Result<(), String> {
        match self.client.connection_state() {
            State::Connected => Ok(()),
            state => Err(format!("no connection to the server ({state})")),
        }
    }
}

/// A message that arrived after the stop goes back at once, for another instance.
async fn give_back(message: Message) {
    if let Err(error) = message.ack_with(AckKind::Nak(None)).await {
        tracing::debug!(error = %chain(error.as_ref()), "a late event could not be given back, its ack wait does it");
    }
}
