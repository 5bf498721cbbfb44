//! How many jobs have ended, heard from their stream as it grows.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_nats::jetstream;
use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use futures_util::StreamExt;
use tokio::task::JoinSet;
use trellis_runtime::wire::Environment;

use crate::Error;
use crate::seen::ENDS;

/// Counts ends in a task of its own, which ends with this.
#[derive(Debug)]
pub(super) struct Ends {
    counts: Arc<Counts>,
    listening: JoinSet<Error>,
}

#[derive(Debug, Default)]
struct Counts {
    completed: AtomicU64,
    otherwise: AtomicU64,
}

impl Ends {
    pub(super) async fn listen(nats: &str) -> Result<Self, Error> {
        let context = jetstream::new(async_nats::connect(nats).await?);
        let stream = context.get_stream(Environment::NONE.job_stream()).await?;
        let config = OrderedConfig {
            deliver_policy: DeliverPolicy::All,
            filter_subjects: ENDS.map(|end| format!("trellis.jobs.*.*.*.{end}")).into(),
            headers_only: true,
            ..OrderedConfig::default()
        };
        let messages = stream.create_consumer(config).await?.messages().await?;
        let counts = Arc::new(Counts::default());
        let mut listening = JoinSet::new();
        listening.spawn(count(messages, Arc::clone(&counts)));
        Ok(Self { counts, listening })
    }

    /// Jobs that are completed, and jobs that have ended in any other way.
    pub(super) fn counts(&mut self) -> Result<(u64, u64), Error> {
        if let Some(ended) = self.listening.try_join_next() {
            return Err(ended?);
        }
        let Counts { completed, otherwise } = &*self.counts;
        Ok((completed.load(Ordering::Relaxed), otherwise.load(Ordering::Relaxed)))
    }

    pub(super) async fn close(&mut self) {
        self.listening.shutdown().await;
    }
}

/// Why it cannot go on.
async fn count(mut messages: jetstream::consumer::pull::Ordered, counts: Arc<Counts>) -> Error {
    while let Some(message) = messages.next().await {
        match message {
            Ok(message) => {
                let completed = message.subject.ends_with(".completed");
                let count = if completed { &counts.completed } else { &counts.otherwise };
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => return error.into(),
        }
    }
    "the stream of jobs ended".into()
}
