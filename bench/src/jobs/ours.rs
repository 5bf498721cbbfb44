//! Ours: a job with a payload as large as the raw loop's, a service that does nothing with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqlitePoolOptions;
use testbed::Stopwatch;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};
use trellis::{ActiveJob, JobError, Service, Work};
use trellis_runtime::{Ctx, Host, Nats, SqlOutbox, WorkerConfig, migrate};

use crate::Result;
use crate::jobs::{Backlog, Queue, pause};
use crate::latencies::Latencies;
use crate::message::payload;
use crate::setting::Setting;

/// Creations under way at once.
const PIPELINED: usize = 1_024;
/// Far longer than a backlog takes.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Messages of a job that is done: created, started, completed.
const MESSAGES: u64 = 3;
const STREAM: &str = "TRELLIS_JOBS";

#[trellis::contract(id = "acme.orders@v1")]
mod orders {
    use super::{Deserialize, JsonSchema, Serialize};

    /// Does nothing, or comes back much later.
    #[job("orders.send_receipt")]
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub(crate) struct SendReceipt {
        pub(crate) order: u64,
        pub(crate) note: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub(crate) later: bool,
    }
}

use orders::{JOB, SendReceipt};

pub(crate) struct Ours {
    js: jetstream::Context,
    url: String,
    outbox: SqlOutbox<sqlx::Sqlite>,
    receipt: SendReceipt,
}

/// Counts, and tells when it is entered.
struct Receipts {
    entered: Arc<Entered>,
}

#[derive(Default)]
struct Entered {
    count: AtomicU64,
    /// When the first handler was entered.
    first: Mutex<Option<Stopwatch>>,
    tell: Option<mpsc::UnboundedSender<()>>,
}

type OrdersCtx = Ctx<orders::Contract, sqlx::Sqlite>;
type OrdersHost = Host<orders::Contract, sqlx::Sqlite>;

impl Service for Receipts {
    type Ctx = OrdersCtx;
}

impl Work<SendReceipt> for Receipts {
    async fn work(&self, _: &OrdersCtx, job: ActiveJob<SendReceipt>) -> std::result::Result<(), JobError> {
        if job.payload.later {
            self.entered.count.fetch_add(1, Ordering::Relaxed);
            return Err(JobError::retry_after(Duration::from_secs(3600), "later"));
        }
        if self.entered.count.fetch_add(1, Ordering::Relaxed) == 0 {
            *self.entered.first.lock().await = Some(Stopwatch::start());
        }
        if let Some(tell) = &self.entered.tell {
            tell.send(()).map_err(|_| JobError::fail("nobody listens"))?;
        }
        Ok(())
    }
}

impl Ours {
    pub(crate) async fn new(setting: &Setting) -> Result<Self> {
        // The engine wants one; no job of this benchmark goes through it.
        let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
        migrate(&pool).await?;
        let placed: serde_json::Value = serde_json::to_value(payload())?;
        Ok(Self {
            js: setting.jetstream().await?,
            url: setting.nats_url(),
            outbox: SqlOutbox::new(pool)?,
            receipt: serde_json::from_value(placed)?,
        })
    }

    async fn work(&self, entered: &Arc<Entered>, slots: usize) -> Result<OrdersHost> {
        let config = WorkerConfig { concurrency: u16::try_from(slots)?, ..WorkerConfig::default() };
        let service = Receipts { entered: Arc::clone(entered) };
        let host = Host::builder(service, self.outbox.clone()).connect(&self.url);
        Ok(host.work_with::<SendReceipt>(config).start().await?)
    }

    /// A queue where nothing was yet, with its consumer.
    async fn fresh(&self) -> Result<Nats> {
        if self.js.get_stream(STREAM).await.is_ok() {
            self.js.delete_stream(STREAM).await?;
        }
        let host = self.work(&Arc::default(), 1).await?;
        let nats = host.ctx().nats;
        host.stop().await;
        Ok(nats)
    }

    async fn create(&self, nats: &Nats, jobs: u32, receipt: &SendReceipt) -> Result<()> {
        let creating = (0..jobs).map(|_| JOB.orders.send_receipt.create(nats, receipt.clone()).into_future());
        let mut creating = futures_util::stream::iter(creating).buffer_unordered(PIPELINED);
        while let Some(created) = creating.next().await {
            created?;
        }
        Ok(())
    }

    /// Wait until the log has so many messages.
    async fn stored(&self, messages: u64) -> Result<()> {
        let waiting = async {
            loop {
                let state = self.js.get_stream(STREAM).await?.cached_info().state.clone();
                if state.messages >= messages {
                    return Ok(state.messages);
                }
                sleep(LOOK_EVERY).await;
            }
        };
        let found = timeout(PATIENCE, waiting).await.map_err(|_| "ours: jobs were left undone")?;
        let found: std::result::Result<u64, jetstream::context::GetStreamError> = found;
        let found = found?;
        if found == messages {
            return Ok(());
        }
        Err(format!("ours: {found} messages where there should be {messages}").into())
    }

    /// The latency of a fresh job beside jobs of its queue that wait for a retry much later.
    pub(crate) async fn pick_up_beside(&self, delayed: u32, samples: u32) -> Result<Latencies> {
        let nats = self.fresh().await?;
        let later = SendReceipt { later: true, ..self.receipt.clone() };
        self.create(&nats, delayed, &later).await?;
        let (tell, mut told) = mpsc::unbounded_channel();
        let entered = Arc::new(Entered { tell: Some(tell), ..Entered::default() });
        let host = self.work(&entered, 256).await?;
        self.stored(MESSAGES * u64::from(delayed)).await?;
        let latencies = self.measure(&nats, samples, &mut told).await;
        host.stop().await;
        Latencies::of(latencies?)
    }

    async fn measure(
        &self,
        nats: &Nats,
        samples: u32,
        told: &mut mpsc::UnboundedReceiver<()>,
    ) -> Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        for _ in 0..samples {
            pause().await;
            let stopwatch = Stopwatch::start();
            let creating = JOB.orders.send_receipt.create(nats, self.receipt.clone()).into_future();
            let entered = async {
                told.recv().await;
                stopwatch.elapsed()
            };
            let (created, latency) = tokio::join!(creating, entered);
            created?;
            latencies.push(latency);
        }
        Ok(latencies)
    }
}

impl Queue for Ours {
    async fn backlog(&self, jobs: u32, in_flight: usize) -> Result<Backlog> {
        let nats = self.fresh().await?;
        let stopwatch = Stopwatch::start();
        self.create(&nats, jobs, &self.receipt).await?;
        let enqueued = stopwatch.elapsed();

        let entered = Arc::new(Entered::default());
        let host = self.work(&entered, in_flight).await?;
        self.stored(MESSAGES * u64::from(jobs)).await?;
        // What was checked and made before the first pull is no part of it.
        let done =
            entered.first.lock().await.as_ref().map(Stopwatch::elapsed).ok_or("ours: nothing was done")?;
        host.stop().await;
        if entered.count.load(Ordering::Relaxed) != u64::from(jobs) {
            return Err("ours: some jobs were done more than once".into());
        }
        Ok(Backlog { enqueued, done })
    }

    async fn pick_up(&self, samples: u32) -> Result<Latencies> {
        self.pick_up_beside(0, samples).await
    }
}
