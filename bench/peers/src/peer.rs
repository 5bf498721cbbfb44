//! What is asked of each queue.

use std::fmt::Display;
use std::pin::Pin;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::sync::mpsc::UnboundedSender;

use crate::Result;

/// How often a queue looks by itself, in case that a notification is missed.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// Where a handler tells when it was entered.
pub(crate) type Handled = UnboundedSender<Instant>;

/// A queue in a database.
pub(crate) trait Peer: Sized {
    /// The settings that are chosen; the rest is as it comes.
    type Settings: Copy + Display;
    /// The crates that it is made of, as they are called in the lock file.
    const CRATES: &'static [&'static str];
    /// Counts those of its jobs that are not done yet.
    const LEFT: &'static str;

    /// Makes its tables.
    async fn prepare(pool: &PgPool, settings: Self::Settings) -> Result<Self>;
    /// Enqueues one job.
    async fn enqueue(&mut self) -> Result<()>;
    /// Enqueues jobs together, in one statement.
    async fn enqueue_bulk(&mut self, jobs: usize) -> Result<()>;
    /// Workers that are ready to be started; each job tells when its handler was entered.
    async fn workers(&mut self, handled: Handled) -> Result<Workers>;
}

/// The workers of one start.
pub(crate) struct Workers {
    /// Works until it is told to stop.
    pub(crate) run: Pin<Box<dyn Future<Output = Result<()>> + Send>>,
    /// Tells it to stop in good order.
    pub(crate) stop: Box<dyn Fn() -> Result<()>>,
}
