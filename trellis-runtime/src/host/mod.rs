//! The host: runs one service with everything it needs, from the check of the server to the last drain.
mod builder;
mod error;
mod health;
mod server;
mod signal;
mod supervise;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, Service};

pub use builder::HostBuilder;
pub use error::{StartError, StartErrorKind};
pub use health::Health;

use crate::ctx::Ctx;
use crate::database::Database;
use crate::nats::Nats;
use crate::outbox::{Dispatcher, SqlOutbox};

/// How long handlers that were interrupted may take to give their events back.
const INTERRUPT_WAIT: Duration = Duration::from_secs(7);
/// How long the last acknowledgements may take to leave.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

/// A running service: its dispatcher, its consumer groups, its connection.
///
/// Made by [`Host::builder`]. Dropped without [`Host::stop`], it ends at once: nothing is lost, but
/// events under way come back only after their ack wait and rows after their lease.
pub struct Host<C: Contract, D: Database> {
    client: Client,
    nats: Nats,
    outbox: SqlOutbox<D>,
    dispatcher: Arc<Dispatcher>,
    groups: Vec<TaskState>,
    workers: Vec<TaskState>,
    tasks: Mutex<JoinSet<()>>,
    supervisor: Mutex<JoinSet<()>>,
    /// Nothing new is begun.
    stop: CancellationToken,
    /// Handlers that still run are given up.
    interrupt: CancellationToken,
    stop_timeout: Duration,
    drain_timeout: Duration,
    provisioned: watch::Receiver<Option<String>>,
    contract: std::marker::PhantomData<fn() -> C>,
}

/// What health is told of one group or worker.
struct TaskState {
    name: String,
    problem: watch::Receiver<Option<String>>,
}

impl<C: Contract, D: Database> Host<C, D> {
    /// Set up `service`, whose state and outbox are in `outbox`.
    pub fn builder<S>(service: S, outbox: SqlOutbox<D>) -> HostBuilder<S, C, D>
    where
        S: Service<Ctx = Ctx<C, D>>,
    {
        HostBuilder::new(service, outbox)
    }

    /// A context for code outside of handlers.
    pub fn ctx(&self) -> Ctx<C, D> {
        Ctx::new(self.nats.clone(), self.outbox.clone(), None)
    }

    /// What the dispatcher did and whether it is paused.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// Run until the process is told to end (SIGINT or SIGTERM; Ctrl-C and its like on Windows),
    /// then [`stop`](Host::stop).
    ///
    /// Cancel safety: dropped, the service goes on running.
    pub async fn run(&self) {
        self.asked_to_end().await;
        self.stop().await;
    }

    /// Ready when the process is told to end. For a service with work of its own: end that work
    /// between this and [`stop`](Host::stop), so that nothing new is enqueued while the outbox is drained.
    ///
    /// Cancel safety: may be dropped and called again.
    pub async fn asked_to_end(&self) {
        let asked = signal::asked_to_end();
        // From here on a signal is heard: whoever starts the process may wait for this line.
        tracing::info!(contract = C::ID, "running until asked to end");
        asked.await;
        tracing::info!(contract = C::ID, "asked to end");
    }

    /// Stop: pull nothing more, finish handlers, send what is in the outbox, let the last
    /// acknowledgements leave. Each step is bounded: handlers by `stop_timeout` (then their events
    /// go back to the broker), the outbox by `drain_timeout` (then its rows wait for the next start).
    ///
    /// Idempotent. Cancel safety: called again, it goes on where it was.
    pub async fn stop(&self) {
        self.stop.cancel();
        let mut tasks = self.tasks.lock().await;
        if tokio::time::timeout(self.stop_timeout, ended(&mut tasks)).await.is_err() {
            tracing::warn!("handlers did not end in time, their events go back");
            self.interrupt.cancel();
            if tokio::time::timeout(INTERRUPT_WAIT, ended(&mut tasks)).await.is_err() {
                tracing::warn!("handlers were aborted, their events come back after their ack wait");
                tasks.shutdown().await;
            }
        }
        self.dispatcher.stop(self.drain_timeout).await;
        self.supervisor.lock().await.shutdown().await;
        if self.client.connection_state() == async_nats::connection::State::Connected {
            match tokio::time::timeout(FLUSH_WAIT, self.client.flush()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "the connection could not be flushed"),
                Err(_) => tracing::debug!("the connection could not be flushed in time"),
            }
        }
    }
}

impl<C: Contract, D: Database> Drop for Host<C, D> {
    fn drop(&mut self) {
        self.stop.cancel();
        self.interrupt.cancel();
    }
}

impl<C: Contract, D: Database> std::fmt::Debug for Host<C, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("contract", &C::ID).finish_non_exhaustive()
    }
}

async fn ended(tasks: &mut JoinSet<()>) {
    while let Some(task) = tasks.join_next().await {
        if let Err(error) = task {
            tracing::error!(%error, "a task of the host panicked");
        }
    }
}
