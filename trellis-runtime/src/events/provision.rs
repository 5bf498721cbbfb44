//! Streams, and who owns which subject: created where missing, verified where there, never destroyed.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use trellis::EventDeclaration;

use crate::causes::chain;
use crate::ports::Jitter;
use crate::wire::{self, Environment, MADE_BY, STREAM_FORMAT};

/// How often a lost race with another instance is run again.
pub(crate) const TRIES: usize = 8;
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
    /// Whether it has to do with jobs.
    pub(crate) jobs: bool,
    pub(crate) jitter: Arc<dyn Jitter>,
}

impl Provision {
    /// The streams, and the ownership of the contract's subjects. The smallest message size limit
    /// among the streams, if there is one.
    pub(crate) async fn streams(&self) -> Result<Option<usize>, ProvisionError> {
        let environment = &self.environment;
        let config = |name, subjects| self.stream_config(name, subjects);
        let events = config(environment.event_stream(), environment.event_stream_subjects());
        let mut streams = vec![self.stream(events).await?];
        self.stream(config(environment.dead_stream(), environment.dead_stream_subjects())).await?;
        self.own_subjects().await?;
        if self.jobs {
            let jobs = config(environment.job_stream(), environment.job_stream_subjects());
            // What is kept of jobs is the upkeep's to decide: an open one never goes.
            let jobs = self.stream(Config { max_age: Duration::ZERO, max_bytes: -1, ..jobs }).await?;
            if let Some(why) = forgets(&jobs.cached_info().config) {
                return Err(ProvisionError::ForeignStream { stream: environment.job_stream(), why });
            }
            streams.push(jobs);
        }
        let limit = |stream: &Stream| usize::try_from(stream.cached_info().config.max_message_size).ok();
        Ok(streams.iter().filter_map(limit).filter(|limit| *limit > 0).min())
    }

    async fn stream(&self, config: Config) -> Result<Stream, ProvisionError> {
        let name = config.name.clone();
        let subjects = config.subjects.first().cloned().unwrap_or_default();
        let mut last = String::new();
        for _ in 0..TRIES {
            match self.context.get_stream(&name).await {
                Ok(stream) => return verified(stream, &subjects),
                Err(error) if is_missing(&error.kind()) => {}
                Err(error) => return Err(server(format!("look up stream `{name}`"), &error)),
            }
            match self.context.create_stream(config.clone()).await {
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

    fn stream_config(&self, name: String, subjects: String) -> Config {
        Config {
            name,
            subjects: vec![subjects],
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
            let meet = base == event.name || overlap((base, params), (event.name, event.params.len()));
            if name_of(owner) != name_of(event.contract) && meet {
                return Err(taken(format!("{owner}` as `{base}")));
            }
        }
        let value = format!("{} {}", event.contract, event.params.len());
        let recorded = metadata.get(&wire::owner_key(event));
        // Two versions of one contract run side by side: the later one has the word.
        let by_later = recorded.is_some_and(|recorded| version_of(recorded) > version_of(&value));
        if !by_later && recorded != Some(&value) {
            metadata.insert(wire::owner_key(event), value);
            changed = true;
        }
    }
    Ok(changed)
}

/// The version in `acme.orders@v2 1`.
fn version_of(owner: &str) -> u64 {
    let version = owner.split_once("@v").map_or("", |(_, rest)| rest.split(' ').next().unwrap_or_default());
    version.parse().unwrap_or_default()
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

pub(crate) fn verified(stream: Stream, subjects: &str) -> Result<Stream, ProvisionError> {
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

/// Why a stream would lose open jobs, if so.
fn forgets(config: &Config) -> Option<String> {
    let limits = [
        ("max_age", !config.max_age.is_zero()),
        ("max_bytes", config.max_bytes > 0 && config.discard != DiscardPolicy::New),
        ("max_msgs", config.max_messages > 0 && config.discard != DiscardPolicy::New),
        ("max_msgs_per_subject", config.max_messages_per_subject > 0),
        ("deny_purge", config.deny_purge),
    ];
    let (limit, _) = limits.into_iter().find(|(_, is_set)| *is_set)?;
    Some(format!("its `{limit}` is set, so open jobs could vanish, or ended ones never go"))
}

fn is_overlap(kind: &CreateStreamErrorKind) -> bool {
    matches!(kind, CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_SUBJECT_OVERLAP)
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

pub(crate) fn server(what: String, error: &(dyn std::error::Error + 'static)) -> ProvisionError {
    ProvisionError::Server { what, reason: chain(error) }
}

#[cfg(test)]
mod tests {
    use super::{claim, overlap};
    use std::collections::HashMap;
    use trellis::EventDeclaration;

    #[test]
    fn a_subject_has_one_owner() {
        let mut metadata = HashMap::new();
        let mine = [EventDeclaration::new("acme.orders@v1", "orders.created").params(&["region"])];
        assert!(claim(&mut metadata, &mine).unwrap());
        assert!(!claim(&mut metadata, &mine).unwrap());
        let next_version = [EventDeclaration::new("acme.orders@v2", "orders.created").params(&["region"])];
        assert!(claim(&mut metadata, &next_version).unwrap());
        assert!(!claim(&mut metadata, &mine).unwrap(), "the older version leaves the newer one's word");
        for (name, params) in
            [("orders.created", &["sku"][..]), ("orders.created", &[]), ("orders.created.eu", &[])]
        {
            let other = [EventDeclaration::new("acme.billing@v1", name).params(params)];
            let error = claim(&mut metadata, &other).unwrap_err().to_string();
            assert!(error.contains("belongs to `acme.orders@v2` as `orders.created`"), "{error}");
        }
        let beside = [EventDeclaration::new("acme.billing@v1", "orders.created.eu.north")];
        assert!(claim(&mut metadata, &beside).unwrap(), "two tokens where the other has one parameter");
    }

    #[test]
    fn parameters_stand_for_any_token() {
        assert!(overlap(("a.b", 1), ("a.b.c", 0)));
        assert!(overlap(("a", 2), ("a.b", 1)));
        assert!(!overlap(("a.b", 1), ("a.b", 0)));
        assert!(!overlap(("a.b", 1), ("a.c", 1)));
    }
}
