//! Upkeep of one queue, by one of its instances at a time: jobs without a delivery get one, ended
//! jobs that are no longer kept go.
mod rescue;
mod retention;
mod survey;

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config as PullConfig;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use tokio_util::sync::CancellationToken;
use trellis::JobDeclaration;

pub(crate) use survey::survey;

use crate::causes::chain;
use crate::jobs::consumer::Consumers;
use crate::jobs::worker::JobRetention;
use crate::wire;

/// Metadata key of the upkeep's consumer: which instance is at it.
const INSTANCE: &str = "trellis.instance";

/// The upkeep of one queue.
pub(crate) struct Upkeep {
    pub(crate) consumers: Consumers,
    pub(crate) declaration: JobDeclaration,
    pub(crate) instance: String,
    pub(crate) retention: JobRetention,
    pub(crate) every: Duration,
    pub(crate) stop: CancellationToken,
}

impl Upkeep {
    /// Look after the queue until the stop.
    pub(crate) async fn run(self) {
        let mut more = false;
        loop {
            let jitter = &self.consumers.log.ports.jitter;
            let pause = if more { Duration::ZERO } else { self.every / 2 + jitter.full(self.every) };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.cancelled() => return,
            }
            tokio::select! {
                done = self.once() => more = done.unwrap_or_else(|error| {
                    tracing::warn!(queue = wire::worker(&self.declaration), error, "upkeep did not come to its end");
                    false
                }),
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// One pass, if it is this instance's turn. Whether there is more than one pass removes.
    async fn once(&self) -> Result<bool, String> {
        let Some(turn) = self.take_turn().await? else { return Ok(false) };
        let queue = self.consumers.environment.job_queue(&self.declaration);
        let found = survey(&self.consumers.log, &queue, Some(turn), self.retention.at_least).await?;
        let more = found.is_cut();
        self.rescue(&queue, &found).await?;
        let removed = self.remove(&queue, found).await?;
        Ok(more && removed > 0)
    }

    /// The survey's consumer is the turn: the server lets one instance make it, and forgets it when
    /// nobody has pulled from it for as long as upkeep waits.
    async fn take_turn(&self) -> Result<Option<PullConfig>, String> {
        let log = &self.consumers.log;
        let name = format!("{}--upkeep", wire::worker(&self.declaration));
        let stream = log.context.get_stream_no_info(&log.stream).await.map_err(|error| chain(&error))?;
        if let Ok(info) = stream.consumer_info(&name).await {
            if info.config.metadata.get(INSTANCE) != Some(&self.instance) {
                return Ok(None);
            }
            stream.delete_consumer(&name).await.map_err(|error| chain(&error))?;
        }
        Ok(Some(PullConfig {
            name: Some(name),
            inactive_threshold: self.every,
            metadata: HashMap::from([(INSTANCE.to_owned(), self.instance.clone())]),
            ..survey_config(&self.consumers.environment.job_queue(&self.declaration))
        }))
    }
}

/// A consumer that reads the heads of a queue's messages once.
pub(crate) fn survey_config(queue: &str) -> PullConfig {
    PullConfig {
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::None,
        filter_subject: format!("{queue}.>"),
        headers_only: true,
        memory_storage: true,
        num_replicas: 1,
        inactive_threshold: Duration::from_secs(30),
        ..PullConfig::default()
    }
}
