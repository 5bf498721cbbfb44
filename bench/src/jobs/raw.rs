//! The raw loop: each job is one message, two more are appended by comparison when it starts and when
//! it is done, then the first one is acknowledged.
//!
//! It does what a job queue on a log must and nothing else: no retries, no deadlines, no rescue of
//! jobs whose worker died, no record for others to read.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{self, AckPolicy, PullConsumer};
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::{self, stream};
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, TryStreamExt};
use testbed::Stopwatch;
use tokio::time::{sleep, timeout};
use trellis_runtime::ports::{Clock, Ids, RandomIds, SystemClock};

use crate::Result;
use crate::jobs::{Backlog, Queue, pause};
use crate::latencies::Latencies;
use crate::message::payload;
use crate::setting::Setting;

/// Appends whose acknowledgements are under way.
const PIPELINED: usize = 1_024;
/// Far longer than the server takes to read the last acknowledgements.
const SETTLED: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Messages of a job that is done: created, started, completed.
const MESSAGES: u64 = 3;

const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
const EXPECTED_OF: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

pub(crate) struct Raw {
    js: jetstream::Context,
    body: bytes::Bytes,
}

/// A fresh stream of jobs.
struct Log {
    js: jetstream::Context,
    body: bytes::Bytes,
    stream: stream::Stream,
    name: String,
    queue: String,
}

impl Raw {
    pub(crate) async fn new(setting: &Setting) -> Result<Self> {
        Ok(Self { js: setting.jetstream().await?, body: serde_json::to_vec(&payload())?.into() })
    }

    async fn log(&self) -> Result<Log> {
        static LOGS: AtomicU32 = AtomicU32::new(0);
        let number = LOGS.fetch_add(1, Ordering::Relaxed);
        let (name, queue) =
            (format!("RAW_JOBS_{number}"), format!("raw{number}.jobs.acme-orders.send_receipt"));
        let stream = self.js.create_stream(stream::Config {
            name: name.clone(),
            subjects: vec![format!("{queue}.>")],
            allow_direct: true,
            ..stream::Config::default()
        });
        let stream = stream.await?;
        Ok(Log { js: self.js.clone(), body: self.body.clone(), stream, name, queue })
    }
}

impl Queue for Raw {
    async fn backlog(&self, jobs: u32, in_flight: usize) -> Result<Backlog> {
        let log = self.log().await?;
        let enqueued = log.enqueue(jobs).await?;
        let mut consumer = log.consumer().await?;
        let done = log.process(&consumer, jobs, in_flight).await?;
        log.end(&mut consumer, jobs).await?;
        Ok(Backlog { enqueued, done })
    }

    async fn pick_up(&self, samples: u32) -> Result<Latencies> {
        let log = self.log().await?;
        let mut jobs = log.consumer().await?.messages().await?;
        let mut latencies = Vec::new();
        for _ in 0..samples {
            pause().await;
            let stopwatch = Stopwatch::start();
            let stored = log.append(&log.tree(), "created", 0).await?;
            let job = jobs.next().await.ok_or("the consumer ended")??;
            latencies.push(stopwatch.elapsed());
            stored.await?;
            job.ack().await?;
        }
        drop(jobs);
        log.js.delete_stream(&log.name).await?;
        Latencies::of(latencies)
    }
}

impl Log {
    async fn enqueue(&self, jobs: u32) -> Result<Duration> {
        let stopwatch = Stopwatch::start();
        let mut in_flight = FuturesUnordered::new();
        for _ in 0..jobs {
            if in_flight.len() == PIPELINED {
                in_flight.try_next().await?;
            }
            in_flight.push(self.append(&self.tree(), "created", 0).await?.into_future());
        }
        while in_flight.try_next().await?.is_some() {}
        Ok(stopwatch.elapsed())
    }

    async fn consumer(&self) -> Result<PullConsumer> {
        let config = consumer::pull::Config {
            durable_name: Some("workers".into()),
            ack_policy: AckPolicy::Explicit,
            max_ack_pending: -1,
            filter_subjects: vec![format!("{}.*.created", self.queue), format!("{}.*.retried", self.queue)],
            ..consumer::pull::Config::default()
        };
        Ok(self.stream.create_consumer(config).await?)
    }

    async fn process(&self, consumer: &PullConsumer, jobs: u32, in_flight: usize) -> Result<Duration> {
        let stopwatch = Stopwatch::start();
        let backlog = consumer.stream().max_messages_per_batch(in_flight).messages().await?;
        let worked = backlog.take(usize::try_from(jobs)?).map(|job| async { self.work(job?).await });
        worked.buffer_unordered(in_flight).try_collect::<()>().await?;
        // What was acknowledged is on its way, and this loop would end before it is sent.
        self.js.client().flush().await?;
        Ok(stopwatch.elapsed())
    }

    async fn work(&self, job: jetstream::Message) -> Result<()> {
        let created = job.info().map_err(|error| error.to_string())?.stream_sequence;
        let (tree, _) = job.subject.rsplit_once('.').ok_or("a job without an event")?;
        let started = self.append(tree, "started", created).await?.await?.sequence;
        self.append(tree, "completed", started).await?.await?;
        job.ack().await
    }

    /// Append an event to a job unless something else was appended since `last`.
    async fn append(&self, tree: &str, event: &str, last: u64) -> Result<PublishAckFuture> {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED, last.to_string());
        headers.insert(EXPECTED_OF, format!("{tree}.>"));
        Ok(self.js.publish_with_headers(format!("{tree}.{event}"), headers, self.body.clone()).await?)
    }

    /// A new job.
    fn tree(&self) -> String {
        format!("{}.{}", self.queue, RandomIds.ulid(SystemClock::default().now()))
    }

    /// End the round; an error unless each job was done once and no delivery is left.
    async fn end(mut self, consumer: &mut PullConsumer, jobs: u32) -> Result<()> {
        let settled = timeout(SETTLED, settled(consumer)).await;
        let stored = self.stream.info().await?.state.messages;
        self.js.delete_stream(&self.name).await?;
        settled.map_err(|_| "raw: deliveries were left unsettled")??;
        if stored == MESSAGES * u64::from(jobs) {
            return Ok(());
        }
        Err(format!("raw: {jobs} jobs left {stored} messages").into())
    }
}

/// The server takes acknowledgements in its own time: nobody waits for an answer to them.
async fn settled(consumer: &mut PullConsumer) -> Result<()> {
    loop {
        let left = consumer.info().await?;
        if left.num_pending == 0 && left.num_ack_pending == 0 {
            return Ok(());
        }
        sleep(LOOK_EVERY).await;
    }
}
