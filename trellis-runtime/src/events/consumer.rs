//! The durable consumer of a group: made where it is missing, changed with the declaration, never narrowed under others.
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::consumer::pull::Config as PullConfig;
use async_nats::jetstream::consumer::{
    AckPolicy, DeliverPolicy, FromConsumer, Info as ConsumerInfo, PullConsumer,
};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use trellis::{EventDeclaration, GroupDeclaration, Replay};

use crate::causes::chain;
use crate::events::group::GroupConfig;
use crate::events::provision::{Provision, ProvisionError, TRIES, server, verified};
use crate::wire::{self, MADE_BY};

/// How often, and how long in between, a consumer is looked at before something is taken from it.
const LOOKS: usize = 50;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

impl Provision {
    /// The durable consumer of a group, and how far the group has come. A group that knew its
    /// position and has lost its consumer goes on from there.
    pub(crate) async fn consumer(
        &self,
        group: &GroupDeclaration,
        members: &[EventDeclaration],
        config: &GroupConfig,
        known: Option<Position>,
    ) -> Result<(PullConsumer, Position), ProvisionError> {
        let (stream, name) = (self.environment.event_stream(), wire::consumer(group));
        let what = || format!("set up consumer `{name}` on stream `{stream}`");
        let wanted = self.consumer_config(&name, group, members, config);
        let mut last = String::new();
        for _ in 0..TRIES {
            let handle = self.context.get_stream(&stream).await.map_err(|error| server(what(), &error))?;
            let handle = verified(handle, &self.environment.event_stream_subjects())?;
            let here = handle.cached_info();
            match handle.consumer_info(&name).await {
                Ok(info) => {
                    let floor = floor(&info, here.state.last_sequence);
                    let position = Position { stream_made: here.created.into(), floor };
                    let consumer = self.follow(group, info, &wanted, known.is_none()).await?;
                    return Ok((consumer, position));
                }
                Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {}
                Err(error) => return Err(server(what(), &error)),
            }
            let made = (here.created.into(), here.state.last_sequence);
            let config = PullConfig { deliver_policy: start(group.replay, known, made), ..wanted.clone() };
            match self.context.create_consumer_strict_on_stream(config, &stream).await {
                Ok(_) => tracing::info!(consumer = name, stream, "consumer created"),
                Err(error) => last = chain(&error),
            }
        }
        Err(ProvisionError::Server { what: what(), reason: last })
    }

    /// The consumer that is there, changed where the declaration has changed.
    async fn follow(
        &self,
        group: &GroupDeclaration,
        info: ConsumerInfo,
        wanted: &PullConfig,
        starting: bool,
    ) -> Result<PullConsumer, ProvisionError> {
        let stream = self.environment.event_stream();
        let found = PullConfig::try_from_consumer_config(info.config.clone());
        let found = found.map_err(|error| self.foreign(group, chain(error.as_ref())))?;
        if let Some(why) = foreign_consumer(&found, wanted) {
            return Err(self.foreign(group, why));
        }
        let (shared, own) = (target(&found, wanted, false), target(&found, wanted, true));
        // Only what would take something away needs to know that nobody else is at work.
        let takes_away = starting && !same(&shared, &own);
        let target = if takes_away && self.is_alone(group).await { own } else { shared };
        if same(&found, &target) {
            return Ok(PullConsumer::new(found, info, self.context.clone()));
        }
        let updated = self.context.update_consumer_on_stream(target, &stream).await;
        updated.map_err(|error| {
            server(format!("change consumer `{}` on stream `{stream}`", wire::consumer(group)), &error)
        })
    }

    /// Whether nobody else works on the group's consumer: looked at for long enough that an idle
    /// instance, which pulls all the time, is seen between two of its pulls.
    async fn is_alone(&self, group: &GroupDeclaration) -> bool {
        tracing::info!(
            consumer = wire::consumer(group),
            "the group takes less than before: looking whether others still need it"
        );
        for _ in 0..LOOKS {
            let stream = self.context.get_stream_no_info(self.environment.event_stream()).await;
            let Ok(stream) = stream else { return false };
            match stream.consumer_info(wire::consumer(group)).await {
                Ok(info) if info.num_waiting == 0 && info.num_ack_pending == 0 => {}
                _ => return false,
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        true
    }

    fn foreign(&self, group: &GroupDeclaration, why: String) -> ProvisionError {
        ProvisionError::ForeignConsumer {
            stream: self.environment.event_stream(),
            consumer: wire::consumer(group),
            why,
        }
    }

    fn consumer_config(
        &self,
        name: &str,
        group: &GroupDeclaration,
        members: &[EventDeclaration],
        config: &GroupConfig,
    ) -> PullConfig {
        PullConfig {
            durable_name: Some(name.to_owned()),
            name: Some(name.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: config.ack_wait,
            // The delivery limit is ours: after the server's own, an event would vanish silently.
            max_deliver: -1,
            // The default of 1000 stops a group whose thousand events wait for their next delivery.
            max_ack_pending: -1,
            filter_subjects: members.iter().map(|event| self.environment.event_filter(event)).collect(),
            metadata: HashMap::from([(MADE_BY.to_owned(), group.contract.to_owned())]),
            ..PullConfig::default()
        }
    }
}

/// How far a group has come in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// When the stream was made, which tells it from a later one of its name.
    stream_made: SystemTime,
    /// Everything up to this sequence number is settled.
    floor: u64,
}

/// How far a group has come, by what was said of its consumer after `last_sequence` was read.
fn floor(info: &ConsumerInfo, last_sequence: u64) -> u64 {
    if info.num_pending == 0 && info.num_ack_pending == 0 {
        return last_sequence;
    }
    // The server counts from nothing until the first acknowledgement, wherever the consumer began.
    let began = match info.config.deliver_policy {
        DeliverPolicy::ByStartSequence { start_sequence } => start_sequence.saturating_sub(1),
        _ => 0,
    };
    info.ack_floor.stream_sequence.max(began)
}

/// Where a consumer begins that is made in a stream, made then and with this last sequence number.
/// By number where possible, so that its configuration tells where it began.
fn start(replay: Replay, known: Option<Position>, (made, last_sequence): (SystemTime, u64)) -> DeliverPolicy {
    let after = |sequence| DeliverPolicy::ByStartSequence { start_sequence: sequence + 1 };
    match (known, replay) {
        // A crash of the server can take the end of a stream away.
        (Some(known), _) if known.stream_made == made => after(known.floor.min(last_sequence)),
        // The stream that the group worked on is gone: all that is in this one came after.
        (Some(_), _) | (None, Replay::All) => DeliverPolicy::All,
        (None, Replay::New) => after(last_sequence),
    }
}

/// Why a consumer cannot be used, if so.
fn foreign_consumer(found: &PullConfig, wanted: &PullConfig) -> Option<String> {
    let made_by = |config: &PullConfig| config.metadata.get(MADE_BY).cloned().unwrap_or_default();
    let contract_name = |config| made_by(config).split('@').next().unwrap_or_default().to_owned();
    if contract_name(found) != contract_name(wanted) {
        return Some(format!("its metadata says `{MADE_BY}: {}`", made_by(found)));
    }
    (found.ack_policy != AckPolicy::Explicit).then(|| "its ack policy is not explicit".to_owned())
}

/// What the consumer is to be. Unless this instance is alone, others may be at work with an older or
/// a newer declaration: nothing that they need is taken from them. What a filter leaves out for a
/// while is never delivered.
fn target(found: &PullConfig, wanted: &PullConfig, alone: bool) -> PullConfig {
    let mut target = PullConfig { deliver_policy: found.deliver_policy, ..wanted.clone() };
    if !alone {
        target.filter_subjects = [wanted.filter_subjects.clone(), filters(found)].concat();
        target.ack_wait = wanted.ack_wait.max(found.ack_wait);
        target.metadata.clone_from(&found.metadata);
        target.metadata.retain(|key, _| !key.starts_with("_nats."));
    }
    target.filter_subjects = filters(&target);
    target
}

fn same(found: &PullConfig, target: &PullConfig) -> bool {
    filters(found) == filters(target)
        && found.ack_wait == target.ack_wait
        && found.max_deliver == target.max_deliver
        && found.max_ack_pending == target.max_ack_pending
        && found.metadata.get(MADE_BY) == target.metadata.get(MADE_BY)
        && found.backoff.is_empty()
}

/// The subjects a consumer takes, each once, in order.
fn filters(config: &PullConfig) -> Vec<String> {
    let mut filters = config.filter_subjects.clone();
    if !config.filter_subject.is_empty() {
        filters.push(config.filter_subject.clone());
    }
    filters.sort_unstable();
    filters.dedup();
    filters
}

#[cfg(test)]
mod tests {
    use super::{Position, PullConfig, same, start, target};
    use async_nats::jetstream::consumer::DeliverPolicy;
    use std::time::{Duration, SystemTime};
    use trellis::Replay;

    #[test]
    fn a_consumer_that_is_made_again_begins_where_the_group_was() {
        let made = SystemTime::UNIX_EPOCH;
        let known = Some(Position { stream_made: made, floor: 7 });
        let from = |start_sequence| DeliverPolicy::ByStartSequence { start_sequence };
        assert_eq!(start(Replay::New, None, (made, 9)), from(10));
        assert_eq!(start(Replay::All, None, (made, 9)), DeliverPolicy::All);
        assert_eq!(start(Replay::New, known, (made, 9)), from(8));
        assert_eq!(start(Replay::New, known, (made, 3)), from(4), "the stream lost its end");
        let later = made + Duration::from_secs(1);
        assert_eq!(start(Replay::New, known, (later, 9)), DeliverPolicy::All, "another stream");
    }

    #[test]
    fn only_who_is_alone_takes_something_away() {
        let config = |filters: &[&str], seconds| PullConfig {
            filter_subjects: filters.iter().map(|&filter| filter.to_owned()).collect(),
            ack_wait: Duration::from_secs(seconds),
            ..PullConfig::default()
        };
        let (found, wanted) = (config(&["b", "a"], 30), config(&["c", "b"], 5));
        let beside = target(&found, &wanted, false);
        assert!(same(&beside, &config(&["a", "b", "c"], 30)), "{beside:?}");
        assert!(same(&target(&beside, &found, false), &beside), "two versions do not fight");
        assert!(same(&target(&beside, &wanted, true), &wanted));
    }
}
