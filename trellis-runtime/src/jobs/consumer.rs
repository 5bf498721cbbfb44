//! The durable consumer of a queue: made where it is missing, never taken away.
use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config as PullConfig;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, FromConsumer, Info};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::stream::Stream;
use trellis::JobDeclaration;

use crate::causes::chain;
use crate::jobs::event::EventType;
use crate::jobs::log::JobLog;
use crate::jobs::upkeep::survey;
use crate::wire::{self, Environment, MADE_BY};

/// Pulls that may wait at once.
const MAX_WAITING: i64 = 100_000;
/// How often a lost race with another instance is run again.
const TRIES: usize = 8;

/// The consumers of an environment's queues.
#[derive(Debug, Clone)]
pub(crate) struct Consumers {
    pub(crate) log: JobLog,
    pub(crate) environment: Environment,
}

impl Consumers {
    /// Make the consumer of `job` if it is missing, and bring its settings up to date. The ack wait
    /// that holds: instances may differ, and the longest counts.
    pub(crate) async fn bind(&self, job: &JobDeclaration, ack_wait: Duration) -> Result<Duration, String> {
        if let Err(error) = self.log.measure_clock().await {
            tracing::debug!(error, "the server's clock could not be read");
        }
        let name = wire::worker(job);
        let wanted = self.config(job, &name, ack_wait);
        let mut last = String::new();
        for _ in 0..TRIES {
            let stream = self.stream().await?;
            match stream.consumer_info(&name).await {
                Ok(info) => return self.follow(&info, &wanted, &name).await,
                Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {}
                Err(error) => {
                    return Err(format!("consumer `{name}` cannot be looked up: {}", chain(&error)));
                }
            }
            let start_sequence = self.start(job).await?;
            let config = PullConfig {
                deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
                ..wanted.clone()
            };
            match self.log.context.create_consumer_strict_on_stream(config, &self.log.stream).await {
                Ok(_) => {
                    tracing::info!(consumer = name, start_sequence, "consumer created");
                    return Ok(ack_wait);
                }
                Err(error) => last = chain(&error),
            }
        }
        Err(format!("consumer `{name}` cannot be made: {last}"))
    }

    /// Signals that the consumer `name` has not delivered yet.
    pub(crate) async fn waiting(&self, name: &str) -> Result<u64, String> {
        Ok(self.info(name).await?.num_pending)
    }

    /// Every signal up to this sequence number has been settled.
    pub(crate) async fn settled(&self, name: &str) -> Result<u64, String> {
        let info = self.info(name).await?;
        if info.num_ack_pending == 0 {
            // The server's floor follows acknowledgements only; what was delivered is all settled.
            return Ok(info.delivered.stream_sequence);
        }
        Ok(info.ack_floor.stream_sequence)
    }

    async fn info(&self, name: &str) -> Result<Info, String> {
        let info = self.stream().await?.consumer_info(name).await;
        info.map_err(|error| format!("consumer `{name}` cannot be looked up: {}", chain(&error)))
    }

    async fn stream(&self) -> Result<Stream<()>, String> {
        let stream = self.log.context.get_stream_no_info(&self.log.stream).await;
        stream.map_err(|error| format!("stream `{}` cannot be reached: {}", self.log.stream, chain(&error)))
    }

    /// Where a consumer begins that is made in a stream with jobs in it: at the oldest that is open.
    async fn start(&self, job: &JobDeclaration) -> Result<u64, String> {
        let queue = self.environment.job_queue(job);
        let found = survey(&self.log, &queue, None, Duration::MAX).await?;
        let oldest = found.open.values().map(|open| open.first).min();
        Ok(oldest.unwrap_or(found.last + 1))
    }

    async fn follow(&self, info: &Info, wanted: &PullConfig, name: &str) -> Result<Duration, String> {
        let found = PullConfig::try_from_consumer_config(info.config.clone());
        let found = found.map_err(|error| format!("consumer `{name}` is not one of ours: {error}"))?;
        let contract = |config: &PullConfig| {
            let made_by = config.metadata.get(MADE_BY).cloned().unwrap_or_default();
            made_by.split('@').next().unwrap_or_default().to_owned()
        };
        if contract(&found) != contract(wanted) || found.ack_policy != AckPolicy::Explicit {
            return Err(format!(
                "consumer `{name}` exists and is not one of ours: its metadata says `{MADE_BY}: {}`, its ack policy is {:?}",
                contract(&found),
                found.ack_policy
            ));
        }
        let ack_wait = found.ack_wait.max(wanted.ack_wait);
        // A later version may wait for more signals: nothing is taken from it.
        let mut filter_subjects = [found.filter_subjects.clone(), wanted.filter_subjects.clone()].concat();
        filter_subjects.sort_unstable();
        filter_subjects.dedup();
        let mut found_subjects = found.filter_subjects.clone();
        found_subjects.sort_unstable();
        let same = found.ack_wait == ack_wait
            && found.max_deliver == wanted.max_deliver
            && found.max_ack_pending == wanted.max_ack_pending
            && found.backoff.is_empty()
            && found_subjects == filter_subjects;
        if !same {
            let mut metadata = found.metadata.clone();
            metadata.retain(|key, _| !key.starts_with("_nats."));
            let target = PullConfig {
                ack_wait,
                filter_subjects,
                metadata,
                max_deliver: wanted.max_deliver,
                max_ack_pending: wanted.max_ack_pending,
                backoff: Vec::new(),
                ..found
            };
            let updated = self.log.context.update_consumer_on_stream(target, &self.log.stream).await;
            updated.map_err(|error| format!("consumer `{name}` cannot be changed: {}", chain(&error)))?;
        }
        Ok(ack_wait)
    }

    fn config(&self, job: &JobDeclaration, name: &str, ack_wait: Duration) -> PullConfig {
        let queue = self.environment.job_queue(job);
        let signals = EventType::ALL.into_iter().filter(|event| event.is_signal());
        PullConfig {
            durable_name: Some(name.to_owned()),
            name: Some(name.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait,
            // Tries are counted in the log: after the server's own limit a job would vanish silently.
            max_deliver: -1,
            // The default of 1000 stops a queue whose thousand jobs wait for their next try.
            max_ack_pending: -1,
            // Pulls of all instances. It cannot be changed later, and the default of 512 is soon reached.
            max_waiting: MAX_WAITING,
            filter_subjects: signals.map(|event| format!("{queue}.*.{}", event.token())).collect(),
            metadata: HashMap::from([(MADE_BY.to_owned(), job.contract.to_owned())]),
            ..PullConfig::default()
        }
    }
}
