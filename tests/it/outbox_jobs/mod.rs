//! Jobs that are created in a transaction: each becomes the first entry of its log, once, and it can be
//! asked what became of it.
mod age;
mod away;
mod decide;
mod fleet;
mod outcome;
mod port;
mod send;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, Message};
use trellis::JobId;
use trellis_runtime::ports::DbClock;
use trellis_runtime::wire::Environment;
use trellis_runtime::{OutboxConfig, OutboxError, SqlOutbox, SubmissionOutcome};

use crate::support::nats::Nats;
use crate::support::{Bed, TestDb};

const SOON: Duration = Duration::from_secs(20);
const STREAM: &str = "TRELLIS_JOBS";

#[trellis::contract(id = "test.post@v1")]
mod post {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// A letter is to be brought.
    #[job("post.letter", retry(tries = 3))]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Letter {
        #[schemars(range(max = 1_000_000))]
        pub number: u64,
    }
}

use post::{JOB, Letter};

fn letter(number: u64) -> Letter {
    Letter { number }
}

fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

/// Create a job in a transaction of its own.
async fn create<D: TestDb>(outbox: &SqlOutbox<D>, job: &str, number: u64) -> Result<JobId, OutboxError> {
    outbox.transaction(async |tx| JOB.post.letter.create(&mut *tx, letter(number)).id(job).await).await
}

/// A server with the streams of events and of jobs.
async fn nats() -> Nats {
    let nats = Nats::with_event_stream().await;
    create_job_stream(&nats).await;
    nats
}

async fn create_job_stream(nats: &Nats) {
    let none = Environment::NONE;
    let config = jetstream::stream::Config {
        name: none.job_stream(),
        subjects: vec![none.job_stream_subjects()],
        duplicate_window: Duration::from_millis(100),
        ..Default::default()
    };
    nats.context.create_stream(config).await.unwrap();
}

/// Append by hand, as a direct submission would.
async fn append(nats: &Nats, job: &str, token: &str, body: &str) {
    let (mut headers, subject) =
        (HeaderMap::new(), format!("trellis.jobs.test-post.post-letter.{job}.{token}"));
    headers.insert("Trellis-Append-Id", "by-hand");
    nats.context.publish_with_headers(subject, headers, body.to_owned().into()).await.unwrap().await.unwrap();
}

async fn purge(nats: &Nats) {
    nats.context.get_stream(STREAM).await.unwrap().purge().await.unwrap();
}

async fn outcome<D: TestDb>(outbox: &SqlOutbox<D>, job: &str) -> SubmissionOutcome {
    let state = outbox.wait_outcome::<Letter>(&id(job), SOON).await.unwrap();
    state.outcome().unwrap_or_else(|| panic!("{job}: {state:?}")).clone()
}

fn existing(outcome: &SubmissionOutcome) -> Option<bool> {
    match outcome {
        SubmissionOutcome::Accepted { existing, .. } => Some(*existing),
        _ => None,
    }
}

/// An outbox whose database clock is `offset` ahead.
fn ahead<D: TestDb>(bed: &Bed<D>, offset: &Arc<AtomicI64>, config: OutboxConfig) -> SqlOutbox<D> {
    let clock = DbClock::Offset(Arc::clone(offset));
    SqlOutbox::builder(bed.pool.clone()).config(config).db_clock(clock).build().unwrap()
}

/// Quick to try again and slow to give up.
fn patient() -> OutboxConfig {
    OutboxConfig {
        backoff_first: Duration::from_millis(20),
        backoff_longest: Duration::from_millis(50),
        poll: Duration::from_millis(50),
        ..OutboxConfig::default()
    }
}

fn hours(hours: i64) -> i64 {
    hours * 3600 * 1000
}

fn header<'m>(message: &'m Message, name: &str) -> Option<&'m str> {
    message.headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str)
}
