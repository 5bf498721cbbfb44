//! A job's log, read and written by hand.
use std::time::{Duration, SystemTime};

use async_nats::HeaderMap;
use serde_json::{Value, json};

use super::nats::Nats;

/// What the subjects of [`Sum`](super::hand::Sum) begin with.
pub const SUMS: &str = "trellis.jobs.test-work.work-sum";

/// One entry as the stream has it.
#[derive(Debug)]
pub struct Kept {
    pub token: String,
    /// When it was stored, by the server's clock.
    pub at: SystemTime,
    pub body: Value,
    pub headers: HeaderMap,
}

impl Kept {
    /// How long after another one it was stored.
    pub fn after(&self, other: &Self) -> Duration {
        self.at.duration_since(other.at).unwrap_or_default()
    }

    pub fn number(&self, field: &str) -> u64 {
        self.body[field].as_u64().unwrap()
    }
}

/// The log of the job `id`, in order. What is no JSON is read as `null`.
pub async fn log(nats: &Nats, id: impl std::fmt::Display) -> Vec<Kept> {
    let (mut kept, id) = (Vec::new(), id.to_string());
    for message in nats.messages("TRELLIS_JOBS").await {
        let mut tokens = message.subject.rsplit('.');
        let (token, of) = (tokens.next().unwrap().to_owned(), tokens.next().unwrap());
        if of != id {
            continue;
        }
        let info = message.info().unwrap();
        kept.push(Kept {
            token,
            at: info.published.into(),
            body: serde_json::from_slice(&message.payload).unwrap_or_default(),
            headers: message.headers.clone().unwrap_or_default(),
        });
    }
    kept
}

/// Those of its entries that end a job.
pub async fn ends(nats: &Nats, id: impl std::fmt::Display) -> Vec<String> {
    const ENDS: [&str; 8] =
        ["completed", "failed", "cancelled", "expired", "skipped", "stale", "dead", "dismissed"];
    let tokens = log(nats, id).await.into_iter().map(|kept| kept.token);
    tokens.filter(|token| ENDS.contains(&token.as_str())).collect()
}

/// An entry as another program might write it.
pub fn entry(id: &str, event: &str, state: &str, previous: Option<&str>) -> Value {
    let mut entry = json!({
        "v": 1, "jobId": id, "service": "test.work@v1", "jobType": "work.sum", "eventType": event,
        "state": state, "tries": 0, "timestamp": "2026-01-01T00:00:00Z",
    });
    if let Some(previous) = previous {
        entry["previousState"] = previous.into();
    }
    entry
}

/// The first entry of a sum with this payload.
pub fn created(id: &str, payload: Value) -> Value {
    let mut created = entry(id, "created", "pending", None);
    created["maxTries"] = 3.into();
    created["payload"] = payload;
    created
}

/// Store a message in the log; yields its number.
pub async fn append(nats: &Nats, subject: &str, body: impl ToString) -> u64 {
    let body = body.to_string();
    let stored = nats.context.publish(subject.to_owned(), body.into()).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), stored).await.unwrap().unwrap().sequence
}

/// The same, as the first of its job: with what our own appends carry.
pub async fn append_first(nats: &Nats, tree: &str, body: impl ToString) -> u64 {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
    headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", format!("{tree}.>"));
    let body = body.to_string();
    let stored = nats.context.publish_with_headers(format!("{tree}.created"), headers, body.into());
    tokio::time::timeout(Duration::from_secs(10), stored.await.unwrap()).await.unwrap().unwrap().sequence
}

/// What the server says of the consumer of the sums.
pub async fn worker(nats: &Nats) -> async_nats::jetstream::consumer::Info {
    let stream = nats.context.get_stream("TRELLIS_JOBS").await.unwrap();
    stream.consumer_info("test-work--work-sum").await.unwrap()
}
