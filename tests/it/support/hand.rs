//! A service that works on jobs, whose handlers are closures of the test.
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trellis::{ActiveJob, JobError, Service, Work};
use trellis_runtime::{Ctx, Host, HostBuilder, JobRetention, WorkerConfig};

use crate::support::nats::Nats;
use crate::support::{Bed, TestDb};

/// The jobs that most tests use.
#[trellis::contract(id = "test.work@v1")]
pub mod work {
    use super::{Deserialize, JsonSchema, Serialize};

    /// Adds up.
    #[job("work.sum", result = u64, update = Step, retry(tries = 3, first = "20ms", longest = "100ms"))]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Sum {
        #[schemars(range(max = 1_000_000))]
        pub number: u64,
        #[serde(default)]
        pub text: String,
    }

    /// How far a sum is.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Step {
        #[schemars(range(max = 100))]
        pub percent: u64,
    }

    /// Retries only when told to.
    #[job("work.explicit", payload = Sum, result = u64, retry(tries = 3, first = "20ms", longest = "20ms", explicit))]
    pub struct Explicit;

    /// Must end soon.
    #[job("work.timed", payload = Sum, result = u64, deadline = "1500ms")]
    pub struct Timed;
}

pub use work::{JOB, Sum};

pub type WorkCtx<D> = Ctx<work::Contract, D>;
type Handler<D, J> =
    Arc<dyn Fn(WorkCtx<D>, ActiveJob<J>) -> BoxFuture<'static, Result<u64, JobError>> + Send + Sync>;

/// The service. What a test does not set completes with the payload's number.
pub struct Hand<D: TestDb> {
    sum: Handler<D, work::Sum>,
    explicit: Handler<D, work::Explicit>,
    timed: Handler<D, work::Timed>,
}

// By hand: a derive would demand `D: Clone`.
impl<D: TestDb> Clone for Hand<D> {
    fn clone(&self) -> Self {
        let Self { sum, explicit, timed } = self;
        Self { sum: Arc::clone(sum), explicit: Arc::clone(explicit), timed: Arc::clone(timed) }
    }
}

impl<D: TestDb> Default for Hand<D> {
    fn default() -> Self {
        Self {
            sum: Arc::new(|_, job| Box::pin(async move { Ok(job.payload.number) })),
            explicit: Arc::new(|_, job| Box::pin(async move { Ok(job.payload.number) })),
            timed: Arc::new(|_, job| Box::pin(async move { Ok(job.payload.number) })),
        }
    }
}

impl<D: TestDb> Hand<D> {
    pub fn sum<F: Future<Output = Result<u64, JobError>> + Send + 'static>(
        handle: impl Fn(WorkCtx<D>, ActiveJob<work::Sum>) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { sum: Arc::new(move |ctx, job| Box::pin(handle(ctx, job))), ..Self::default() }
    }

    pub fn explicit<F: Future<Output = Result<u64, JobError>> + Send + 'static>(
        handle: impl Fn(WorkCtx<D>, ActiveJob<work::Explicit>) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { explicit: Arc::new(move |ctx, job| Box::pin(handle(ctx, job))), ..Self::default() }
    }

    pub fn timed<F: Future<Output = Result<u64, JobError>> + Send + 'static>(
        handle: impl Fn(WorkCtx<D>, ActiveJob<work::Timed>) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { timed: Arc::new(move |ctx, job| Box::pin(handle(ctx, job))), ..Self::default() }
    }
}

impl<D: TestDb> Service for Hand<D> {
    type Ctx = WorkCtx<D>;
}

impl<D: TestDb> Work<work::Sum> for Hand<D> {
    async fn work(&self, ctx: &WorkCtx<D>, job: ActiveJob<work::Sum>) -> Result<u64, JobError> {
        (self.sum)(ctx.clone(), job).await
    }
}

impl<D: TestDb> Work<work::Explicit> for Hand<D> {
    async fn work(&self, ctx: &WorkCtx<D>, job: ActiveJob<work::Explicit>) -> Result<u64, JobError> {
        (self.explicit)(ctx.clone(), job).await
    }
}

impl<D: TestDb> Work<work::Timed> for Hand<D> {
    async fn work(&self, ctx: &WorkCtx<D>, job: ActiveJob<work::Timed>) -> Result<u64, JobError> {
        (self.timed)(ctx.clone(), job).await
    }
}

/// A host of the service, on a connection of its own.
pub async fn host<D: TestDb>(
    bed: &Bed<D>,
    nats: &Nats,
    hand: &Hand<D>,
) -> HostBuilder<Hand<D>, work::Contract, D> {
    host_at(bed, &nats.server.url(), hand).await
}

/// The same, connected to `url`.
pub async fn host_at<D: TestDb>(
    bed: &Bed<D>,
    url: &str,
    hand: &Hand<D>,
) -> HostBuilder<Hand<D>, work::Contract, D> {
    Host::builder(hand.clone(), bed.outbox()).client(crate::support::nats::connect(url).await)
}

/// Everything happens soon.
pub fn quick() -> WorkerConfig {
    WorkerConfig {
        concurrency: 4,
        ack_wait: Duration::from_secs(2),
        cancel_grace: Duration::from_millis(300),
        observe_every: Duration::from_millis(50),
        retention: JobRetention::default(),
        ..WorkerConfig::default()
    }
}

pub fn number(number: u64) -> Sum {
    Sum { number, text: String::new() }
}

/// How long anything may take that is to happen at once.
pub const SOON: Duration = Duration::from_secs(20);

/// The tokens of a job's log, in order.
pub async fn tokens(nats: &Nats, id: &str) -> Vec<String> {
    let messages = nats.messages("TRELLIS_JOBS").await;
    let subjects = messages.iter().map(|message| message.subject.to_string());
    subjects
        .filter_map(|subject| {
            let mut tokens: Vec<&str> = subject.split('.').collect();
            let (token, of) = (tokens.pop()?, tokens.pop()?);
            (of == id).then(|| token.to_owned())
        })
        .collect()
}
