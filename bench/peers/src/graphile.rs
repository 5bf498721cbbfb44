//! graphile_worker.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, WorkerContext, WorkerOptions, WorkerUtils,
};
use sqlx::PgPool;

use crate::Result;
use crate::clock::now;
use crate::payload::Payload;
use crate::peer::{Handled, POLL, Peer, Workers};

/// What is chosen for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) local_queue: usize,
    pub(crate) concurrency: usize,
    /// Completions wait this long for each other; without it, each is a statement of its own.
    pub(crate) batch_delay: Option<Duration>,
}

impl Display for Settings {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { local_queue, concurrency, batch_delay } = self;
        write!(
            formatter,
            "local_queue {local_queue}, concurrency {concurrency}, LISTEN/NOTIFY, poll {POLL:?}"
        )?;
        batch_delay.map_or(Ok(()), |delay| write!(formatter, ", complete_job_batch_delay {delay:?}"))
    }
}

pub(crate) struct Graphile {
    pool: PgPool,
    settings: Settings,
    utils: WorkerUtils,
}

impl Peer for Graphile {
    type Settings = Settings;
    const CRATES: &'static [&'static str] = &["graphile_worker"];
    const LEFT: &'static str = "SELECT count(*) FROM graphile_worker._private_jobs";

    async fn prepare(pool: &PgPool, settings: Settings) -> Result<Self> {
        let worker = Box::pin(options(pool, settings).init()).await?;
        Ok(Self { pool: pool.clone(), settings, utils: worker.create_utils() })
    }

    async fn enqueue(&mut self) -> Result<()> {
        self.utils.add_job(Payload::new(), JobSpec::default()).await?;
        Ok(())
    }

    async fn enqueue_bulk(&mut self, jobs: usize) -> Result<()> {
        let spec = JobSpec::default();
        self.utils.add_jobs(&vec![(Payload::new(), &spec); jobs]).await?;
        Ok(())
    }

    async fn workers(&mut self, handled: Handled) -> Result<Workers> {
        let options = options(&self.pool, self.settings).add_extension(handled);
        let worker = Arc::new(Box::pin(options.init()).await?);
        let running = Arc::clone(&worker);
        Ok(Workers {
            run: Box::pin(async move { Ok(running.run().await?) }),
            stop: Box::new(move || {
                worker.request_shutdown();
                Ok(())
            }),
        })
    }
}

impl TaskHandler for Payload {
    const IDENTIFIER: &'static str = "bench";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let handled = context.get_ext::<Handled>().ok_or("nobody listens")?;
        handled.send(now()).map_err(|_| "nobody listens any more")
    }
}

fn options(pool: &PgPool, settings: Settings) -> WorkerOptions {
    let options = WorkerOptions::default()
        .pg_pool(pool.clone())
        .poll_interval(POLL)
        .concurrency(settings.concurrency)
        .local_queue(LocalQueueConfig::default().with_size(settings.local_queue))
        .define_job::<Payload>();
    match settings.batch_delay {
        Some(delay) => options.complete_job_batch_delay(delay),
        None => options,
    }
}
