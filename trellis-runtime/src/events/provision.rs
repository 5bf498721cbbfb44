//! Streams and consumers: created where missing, verified where there, never destroyed.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::consumer::pull::Config as PullConfig;
use async_nats::jetstream::consumer::{
    AckPolicy, DeliverPolicy, FromConsumer, Info as ConsumerInfo, PullConsumer,
};
use async_nats::jetstream::context::{ConsumerInfoErrorKind, CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, Info, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use trellis::{EventDeclaration, GroupDeclaration, Replay};

use crate::causes::chain;
use crate::events::group::GroupConfig;
use crate::ports::Jitter;
use crate::wire::{self, Environment, MADE_BY, STREAM_FORMAT};

/// How often a lost race with another instance is run again.
const TRIES: usize = 8;
/// Longer than another instance needs from its read of the metadata to its write.
const READ_BACK_AFTER: Duration = Duration::from_millis(150);

/// How streams are made. Streams that exist are left as they are.
///
/// Fields may be added: write `StreamConfig { .., ..Default::default() }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamConfig {
    /// Copies of each stream. Default 1: on one server a power cut can lose acknowledged messages
    /// of the last two minutes unless it runs with `sync_interval: always`.
    pub replicas: usize,
    /// How long events and dead letters are kept. Default 7 days.
    pub max_age: Duration,
    /// Most bytes of a stream; the oldest messages go first. Default 1 GiB.
    pub max_bytes: i64,
    /// How long a stream remembers message ids. Default 2 min.
    pub duplicate_window: Duration,
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            replicas: 1,
            max_age: Duration::from_secs(7 * 24 * 3600),
            max_bytes: 1 << 30,
            duplicate_window: Duration::from_secs(120),
        }
    }
}

/// Why streams or consumers are not as they must be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProvisionError {
    /// A stream of this name was made by something else.
    #[error(
        "stream `{stream}` exists and is not one of ours: {why}; choose an environment, or give it metadata `trellis.made_by: trellis.v1` if it is meant to be used"
    )]
    ForeignStream {
        /// Its name.
        stream: String,
        /// What is different.
        why: String,
    },
    /// A consumer of this name was made by something else.
    #[error("consumer `{consumer}` on stream `{stream}` exists and is not one of ours: {why}")]
    ForeignConsumer {
        /// Its stream.
        stream: String,
        /// Its name.
        consumer: String,
        /// What is different.
        why: String,
    },
    /// Two contracts claim one subject.
    #[error(
        "`{contract}` declares event `{event}`, but its subject belongs to `{owner}`: rename the event, or consume the other contract's"
    )]
    SubjectTaken {
        /// Who wants it.
        contract: String,
        /// The event.
        event: String,
        /// Who has it, and which event.
        owner: String,
    },
    /// The server refused or did not answer.
    #[error("cannot {what}: {reason}")]
    Server {
        /// What was attempted.
        what: String,
        /// What was said.
        reason: String,
    },
}

/// Makes and verifies what events need on the server.
pub(crate) struct Provision {
    pub(crate) context: Context,
    pub(crate) environment: Environment,
    pub(crate) config: StreamConfig,
    /// Events of the service's own contract.
    pub(crate) events: Vec<EventDeclaration>,
    pub(crate) jitter: Arc<dyn Jitter>,
}

impl Provision {
    /// Both streams, and the ownership of the contract's subjects. The smallest message size limit
    /// among the streams, if there is one.
    pub(crate) async fn streams(&self) -> Result<Option<usize>, ProvisionError> {
        let environment = &self.environment;
        let events = self.stream(environment.event_stream(), environment.event_stream_subjects()).await?;
        self.stream(environment.dead_stream(), environment.dead_stream_subjects()).await?;
        self.own_subjects().await?;
        Ok(usize::try_from(events.cached_info().config.max_message_size).ok().filter(|limit| *limit > 0))
    }

    async fn stream(&self, name: String, subjects: String) -> Result<Stream, ProvisionError> {
        let mut last = String::new();
        for _ in 0..TRIES {
            match self.context.get_stream(&name).await {
                Ok(stream) => return verified(stream, &subjects),
                Err(error) if is_missing(&error.kind()) => {}
                Err(error) => return Err(server(format!("look up stream `{name}`"), &error)),
            }
            match self.context.create_stream(self.stream_config(&name, &subjects)).await {
                Ok(_) => tracing::info!(stream = name, "stream created"),
                Err(error) if is_overlap(&error.kind()) => {
                    let holder = self.context.stream_by_subject(subjects.clone()).await.unwrap_or_default();
                    return Err(ProvisionError::ForeignStream {
                        stream: holder,
                        why: format!("it holds subjects of `{subjects}`, which stream `{name}` is for"),
                    });
                }
                // Another instance was faster, or the server is still busy with one that went away.
                Err(error) => last = chain(&error),
            }
        }
        Err(ProvisionError::Server { what: format!("create stream `{name}`"), reason: last })
    }

    fn stream_config(&self, name: &str, subjects: &str) -> Config {
        Config {
            name: name.to_owned(),
            subjects: vec![subjects.to_owned()],
            storage: StorageType::File,
            retention: RetentionPolicy::Limits,
            num_replicas: self.config.replicas,
            max_age: self.config.max_age,
            max_bytes: self.config.max_bytes,
            duplicate_window: self.config.duplicate_window,
            allow_direct: true,
            metadata: HashMap::from([(MADE_BY.to_owned(), STREAM_FORMAT.to_owned())]),
            ..Config::default()
        }
    }

    /// Record in the event stream's metadata who owns each base subject. Two services that do so at
    /// once can overwrite each other, so it is read back when the other's write must have been seen,
    /// and done again at each connect.
    async fn own_subjects(&self) -> Result<(), ProvisionError> {
        let name = self.environment.event_stream();
        for _ in 0..TRIES {
            let stream = self.context.get_stream(&name).await;
            let stream = stream.map_err(|error| server(format!("look up stream `{name}`"), &error))?;
            let mut config = stream.cached_info().config.clone();
            config.metadata.retain(|key, _| !key.starts_with("_nats."));
            if !claim(&mut config.metadata, &self.events)? {
                return Ok(());
            }
            let updated = self.context.update_stream(&config).await;
            updated.map_err(|error| {
                server(format!("record the owners of subjects on stream `{name}`"), &error)
            })?;
            tokio::time::sleep(READ_BACK_AFTER + self.jitter.full(READ_BACK_AFTER)).await;
        }
        Err(ProvisionError::Server {
            what: format!("record the owners of subjects on stream `{name}`"),
            reason: "other services keep overwriting it".to_owned(),
        })
    }

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
        let alone = starting && info.num_waiting == 0 && info.num_ack_pending == 0;
        let target = target(&found, wanted, alone);
        if same(&found, &target) {
            return Ok(PullConsumer::new(found, info, self.context.clone()));
        }
        let updated = self.context.update_consumer_on_stream(target, &stream).await;
        updated.map_err(|error| {
            server(format!("change consumer `{}` on stream `{stream}`", wire::consumer(group)), &error)
        })
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

/// Put the events into the metadata. Whether that changed anything.
fn claim(
    metadata: &mut HashMap<String, String>,
    events: &[EventDeclaration],
) -> Result<bool, ProvisionError> {
    let mut changed = false;
    for event in events {
        let taken = |owner: String| ProvisionError::SubjectTaken {
            contract: event.contract.to_owned(),
            event: event.name.to_owned(),
            owner,
        };
        let name_of = |contract: &str| contract.split('@').next().unwrap_or_default().to_owned();
        for (key, value) in metadata.iter() {
            let Some(base) = key.strip_prefix(&format!("{}events.v1.", wire::OWNER_PREFIX)) else { continue };
            let (owner, params) = value.split_once(' ').unwrap_or((value, "0"));
            let params = params.parse().unwrap_or(0);
            if name_of(owner) != name_of(event.contract)
                && overlap((base, params), (event.name, event.params.len()))
            {
                return Err(taken(format!("{owner}` as `{base}")));
            }
        }
        let value = format!("{} {}", event.contract, event.params.len());
        let before = metadata.insert(wire::owner_key(event), value.clone());
        changed |= before.as_ref() != Some(&value);
    }
    Ok(changed)
}

/// Whether one subject can be both: a base with so many parameters behind it.
fn overlap(one: (&str, usize), other: (&str, usize)) -> bool {
    let tokens = |(base, params): (&str, usize)| {
        let base: Vec<Option<String>> = base.split('.').map(|token| Some(token.to_owned())).collect();
        [base, vec![None; params]].concat()
    };
    let (one, other) = (tokens(one), tokens(other));
    let meet = |(a, b): (&Option<String>, &Option<String>)| a.is_none() || b.is_none() || a == b;
    one.len() == other.len() && one.iter().zip(&other).all(meet)
}

fn verified(stream: Stream, subjects: &str) -> Result<Stream, ProvisionError> {
    match foreign(stream.cached_info(), subjects) {
        Some(why) => {
            Err(ProvisionError::ForeignStream { stream: stream.cached_info().config.name.clone(), why })
        }
        None => Ok(stream),
    }
}

/// Why the stream cannot be used, if so.
fn foreign(info: &Info, subjects: &str) -> Option<String> {
    let config = &info.config;
    if !config.subjects.iter().any(|subject| subject == subjects) {
        return Some(format!("it holds {:?}, not `{subjects}`", config.subjects));
    }
    match config.metadata.get(MADE_BY).map(String::as_str) {
        Some(STREAM_FORMAT) => {}
        Some(other) => return Some(format!("its metadata says `{MADE_BY}: {other}`")),
        None => return Some(format!("its metadata has no `{MADE_BY}`")),
    }
    if config.retention != RetentionPolicy::Limits {
        return Some("its retention is not `limits`, so one group could take events from another".to_owned());
    }
    (config.no_ack).then(|| "it does not acknowledge".to_owned())
}

fn is_overlap(kind: &CreateStreamErrorKind) -> bool {
    matches!(kind, CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_SUBJECT_OVERLAP)
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn server(what: String, error: &(dyn std::error::Error + 'static)) -> ProvisionError {
    ProvisionError::Server { what, reason: chain(error) }
}

#[cfg(test)]
mod tests {
    use super::{Position, PullConfig, claim, overlap, same, start, target};
    use async_nats::jetstream::consumer::DeliverPolicy;
    use std::collections::HashMap;
    use std::time::{Duration, SystemTime};
    use trellis::{EventDeclaration, Replay};

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

    #[test]
    fn a_subject_has_one_owner() {
        let mut metadata = HashMap::new();
        let mine = [EventDeclaration::new("acme.orders@v1", "orders.created").params(&["region"])];
        assert!(claim(&mut metadata, &mine).unwrap());
        assert!(!claim(&mut metadata, &mine).unwrap());
        let next_version = [EventDeclaration::new("acme.orders@v2", "orders.created").params(&["region"])];
        assert!(claim(&mut metadata, &next_version).unwrap());
        for name in ["orders.created", "orders.created.eu"] {
            let params: &[&str] = if name == "orders.created" { &["sku"] } else { &[] };
            let other = [EventDeclaration::new("acme.billing@v1", name).params(params)];
            let error = claim(&mut metadata, &other).unwrap_err().to_string();
            assert!(error.contains("belongs to `acme.orders@v2` as `orders.created`"), "{error}");
        }
        let beside = [EventDeclaration::new("acme.billing@v1", "orders.created")];
        assert!(claim(&mut metadata, &beside).unwrap(), "no parameter, so no overlap");
    }

    #[test]
    fn parameters_stand_for_any_token() {
        assert!(overlap(("a.b", 1), ("a.b.c", 0)));
        assert!(overlap(("a", 2), ("a.b", 1)));
        assert!(!overlap(("a.b", 1), ("a.b", 0)));
        assert!(!overlap(("a.b", 1), ("a.c", 1)));
    }
}
