//! The process that works on the proof's jobs: this program, started again with other variables.
use std::error::Error;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::Postgres;
use trellis::{ActiveJob, JobError, Service, Work};
use trellis_runtime::{Ctx, Host, OutboxError, SqlOutbox, WorkerConfig};

/// Tells this program that it is a worker: the NATS server's address.
pub(crate) const NATS: &str = "TRELLIS_PROVE_NATS";
/// The database's address.
pub(crate) const DATABASE: &str = "TRELLIS_PROVE_DATABASE";
/// The ack wait, in milliseconds.
pub(crate) const ACK_WAIT: &str = "TRELLIS_PROVE_ACK_WAIT_MS";
/// Slots.
pub(crate) const CONCURRENCY: &str = "TRELLIS_PROVE_CONCURRENCY";
/// What a worker says when it is at work.
pub(crate) const READY: &str = "running until asked to end";

#[trellis::contract(id = "prove.work@v1")]
pub(crate) mod work {
    use super::{Deserialize, JsonSchema, Serialize};

    /// Has one effect, after as many errors and pauses as it says.
    #[job("work.task", result = u64, retry(tries = 6, first = "50ms", longest = "400ms"))]
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub(crate) struct Task {
        pub(crate) number: u64,
        /// Tries that end with an error.
        pub(crate) errors: u32,
        /// The last try ends the job as failed instead.
        pub(crate) fails: bool,
        /// Ends its process in each try.
        pub(crate) kills: bool,
        /// How long each try takes, in milliseconds; the last one counts for all later tries.
        pub(crate) pauses_ms: Vec<u64>,
    }

    /// Does nothing.
    #[job("work.noop")]
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub(crate) struct Noop {
        pub(crate) number: u64,
    }
}

struct Tasks;

impl Service for Tasks {
    type Ctx = Ctx<work::Contract, Postgres>;
}

impl Work<work::Task> for Tasks {
    async fn work(&self, ctx: &Self::Ctx, job: ActiveJob<work::Task>) -> Result<u64, JobError> {
        let task = &job.payload;
        let at = usize::try_from(job.facts.tries - 1)?;
        let pause = task.pauses_ms.get(at).or(task.pauses_ms.last()).copied().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if task.kills {
            // As a kernel out of memory would: nothing is cleaned up.
            std::process::abort();
        }
        if job.facts.tries <= task.errors {
            return Err(JobError::retry("asked to fail"));
        }
        if task.fails {
            return Err(JobError::fail("asked to fail for good"));
        }
        let number = task.number;
        ctx.once(async |tx| {
            let effect = sqlx::query("INSERT INTO effects (number) VALUES ($1)");
            effect.bind(number.cast_signed()).execute(&mut **tx).await.map_err(OutboxError::Database)?;
            Ok::<_, OutboxError>(number)
        })
        .await
        .map_err(JobError::from)
    }
}

impl Work<work::Noop> for Tasks {
    async fn work(&self, _: &Self::Ctx, _: ActiveJob<work::Noop>) -> Result<(), JobError> {
        Ok(())
    }
}

/// Work until asked to end.
pub(crate) async fn run(nats: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(16)
        .acquire_timeout(Duration::from_secs(60))
        .connect(&variable(DATABASE)?)
        .await?;
    let config = WorkerConfig {
        concurrency: variable(CONCURRENCY)?.parse()?,
        ack_wait: Duration::from_millis(variable(ACK_WAIT)?.parse()?),
        ..WorkerConfig::default()
    };
    let host = Host::builder(Tasks, SqlOutbox::new(pool)?).connect(nats);
    let host = host.work_with::<work::Task>(config.clone()).work_with::<work::Noop>(config).start().await?;
    host.run().await;
    Ok(())
}
