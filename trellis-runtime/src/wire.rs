//! Every subject, stream, consumer, header and metadata name, spelled once.
use std::fmt;

use trellis::{EventDeclaration, GroupDeclaration, JobDeclaration, JobId};

/// Header: the message's identity, which JetStream de-duplicates by.
pub const MESSAGE_ID: &str = "Nats-Msg-Id";
/// Header: when the event was enqueued, RFC 3339 in UTC.
pub const EVENT_TIME: &str = "Trellis-Event-Time";
/// Header: which event this is and in which format, see [`Descriptor`].
pub const EVENT_DESCRIPTOR: &str = "Trellis-Event-Descriptor";
/// Header: W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
/// Header: W3C trace state.
pub const TRACESTATE: &str = "tracestate";
/// Header: identity of the first message of this content, kept by every redrive.
pub const ROOT_ID: &str = "Trellis-Root-Id";
/// Header of a dead letter: why it is one.
pub const DEAD_REASON: &str = "Trellis-Dead-Reason";
/// Header of a dead letter: how often the event was delivered.
pub const DEAD_DELIVERIES: &str = "Trellis-Deliveries";
/// Header of a dead letter: the subject the event came on.
pub const DEAD_SUBJECT: &str = "Trellis-Dead-Subject";

/// Header of a dead letter: the event's place in the event stream.
pub const DEAD_SEQUENCE: &str = "Trellis-Dead-Sequence";

/// Header of every append to a job's log: tells one's own append from another's.
pub const APPEND_ID: &str = "Trellis-Append-Id";
/// Header of every append to a job's log: the sequence number of the last message on
/// [`EXPECTED_SUBJECT`], 0 for none; otherwise the server refuses the append.
pub const EXPECTED_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
/// Header of every append to a job's log: all subjects of the job.
pub const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// Metadata key on a stream or consumer: who made it.
pub(crate) const MADE_BY: &str = "trellis.made_by";
/// Metadata value under [`MADE_BY`] on streams: the format of what is in them.
pub(crate) const STREAM_FORMAT: &str = "trellis.v1";
/// Metadata keys on the event stream begin so: the owner of a base subject.
pub(crate) const OWNER_PREFIX: &str = "trellis.owner.";

/// The optional first token of every subject, so that several environments share one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Environment(Option<String>);

/// A text that cannot name an environment.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("environment {0:?} must be one lower-case word: letters, digits and `_`, beginning with a letter")]
pub struct InvalidEnvironment(pub String);

impl Environment {
    /// No environment token at all.
    pub const NONE: Self = Self(None);

    /// The environment `name`.
    ///
    /// # Errors
    /// `name` is no lower-case word, or is one of the words that subjects begin with.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidEnvironment> {
        const RESERVED: [&str; 8] =
            ["events", "dead", "redrive", "rpc", "operations", "feeds", "trellis", "transfer"];
        let name = name.into();
        let mut chars = name.chars();
        let first = chars.next().is_some_and(|c| c.is_ascii_lowercase());
        let word = first && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if word && name.len() <= 32 && !RESERVED.contains(&name.as_str()) {
            Ok(Self(Some(name)))
        } else {
            Err(InvalidEnvironment(name))
        }
    }

    fn subject(&self, rest: fmt::Arguments<'_>) -> String {
        match &self.0 {
            Some(name) => format!("{name}.{rest}"),
            None => rest.to_string(),
        }
    }

    fn stream(&self, rest: &str) -> String {
        match &self.0 {
            Some(name) => format!("{}_{rest}", name.to_ascii_uppercase()),
            None => rest.to_owned(),
        }
    }

    /// The stream of all events.
    pub fn event_stream(&self) -> String {
        self.stream("TRELLIS_EVENTS")
    }

    /// What the stream of all events holds.
    pub fn event_stream_subjects(&self) -> String {
        self.subject(format_args!("events.>"))
    }

    /// The stream of dead letters.
    pub fn dead_stream(&self) -> String {
        self.stream("TRELLIS_DEAD")
    }

    /// What the stream of dead letters holds.
    pub fn dead_stream_subjects(&self) -> String {
        self.subject(format_args!("dead.>"))
    }

    /// The stream of all jobs' logs.
    pub fn job_stream(&self) -> String {
        self.stream("TRELLIS_JOBS")
    }

    /// What the stream of all jobs' logs holds.
    pub fn job_stream_subjects(&self) -> String {
        self.subject(format_args!("trellis.jobs.>"))
    }

    /// What the subjects of all jobs of one declaration begin with: its queue.
    pub fn job_queue(&self, job: &JobDeclaration) -> String {
        self.subject(format_args!("trellis.jobs.{}.{}", owner(job.contract), job.name.replace('.', "-")))
    }

    /// What all subjects of one job begin with: its tree.
    pub fn job_tree(&self, job: &JobDeclaration, id: &JobId) -> String {
        format!("{}.{id}", self.job_queue(job))
    }

    /// Where the updates of all jobs of one declaration go, by id.
    pub fn job_updates(&self, job: &JobDeclaration) -> String {
        self.subject(format_args!(
            "trellis.job_updates.{}.{}",
            owner(job.contract),
            job.name.replace('.', "-")
        ))
    }

    /// An event's subject before its parameters.
    pub fn event_base(&self, event: &EventDeclaration) -> String {
        self.subject(format_args!("events.v1.{}", event.name))
    }

    /// The subject of one event.
    pub fn event_subject(&self, event: &EventDeclaration, params: &[String]) -> String {
        let mut subject = self.event_base(event);
        for param in params {
            subject.push('.');
            subject.push_str(param);
        }
        subject
    }

    /// The subject filter that covers all of an event's parameters.
    pub fn event_filter(&self, event: &EventDeclaration) -> String {
        let mut filter = self.event_base(event);
        for _ in event.params {
            filter.push_str(".*");
        }
        filter
    }

    /// What an event's subject says behind the words that all of them begin with: its logical name,
    /// and its parameters.
    pub(crate) fn event_name<'s>(&self, subject: &'s str) -> Option<&'s str> {
        subject.strip_prefix(&self.subject(format_args!("events.v1.")))
    }

    /// The subject of a group's dead letters of one event.
    pub fn dead_subject(&self, group: &GroupDeclaration, event: &str) -> String {
        self.subject(format_args!("dead.v1.{}.{}.{event}", owner(group.contract), group.name))
    }
}

/// A contract's name in a subject or consumer name: without `@vN`, with `-` for the dots.
pub fn owner(contract: &str) -> String {
    let name = contract.split_once('@').map_or(contract, |(name, _)| name);
    name.replace('.', "-")
}

/// A group's durable consumer, which is also its name in the inbox.
pub fn consumer(group: &GroupDeclaration) -> String {
    format!("{}--{}", owner(group.contract), group.name)
}

/// The durable consumer of a queue, which is also its name in the inbox.
pub fn worker(job: &JobDeclaration) -> String {
    format!("{}--{}", owner(job.contract), job.name.replace('.', "-"))
}

/// The metadata key under which the event stream records who owns a base subject.
pub(crate) fn owner_key(event: &EventDeclaration) -> String {
    format!("{OWNER_PREFIX}events.v1.{}", event.name)
}

/// What [`EVENT_DESCRIPTOR`] says: `v1 <contract> <event> <number of parameters>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor<'a> {
    /// Identity of the owning contract.
    pub contract: &'a str,
    /// Logical name of the event.
    pub event: &'a str,
    /// How many subject tokens follow the base subject.
    pub params: usize,
}

impl<'a> Descriptor<'a> {
    /// The descriptor of a declared event.
    pub fn of(event: &'a EventDeclaration) -> Self {
        Self { contract: event.contract, event: event.name, params: event.params.len() }
    }

    /// Whether both mean one event. The contract's version does not matter: its payload is read by
    /// shape, so that a provider's next version does not bury its events for the consumers of this one.
    pub fn is_same_event(&self, other: &Descriptor<'_>) -> bool {
        owner(self.contract) == owner(other.contract)
            && self.event == other.event
            && self.params == other.params
    }

    /// Read a header's value. `None` when it is none, or of a format that this version does not know.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.split(' ');
        let (version, contract, event, params) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let known = version == "v1" && words.next().is_none();
        known.then_some(Self { contract, event, params: params.parse().ok()? })
    }
}

impl fmt::Display for Descriptor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1 {} {} {}", self.contract, self.event, self.params)
    }
}

#[cfg(test)]
mod tests {
    use super::{Descriptor, Environment, consumer, owner};
    use trellis::{EventDeclaration, GroupDeclaration};

    const EVENT: EventDeclaration =
        EventDeclaration::new("acme.orders@v1", "orders.created").params(&["region", "sku"]);
    const GROUP: GroupDeclaration = GroupDeclaration::new("acme.ware_house@v12", "stock");

    #[test]
    fn names_are_what_the_design_says() {
        let none = Environment::NONE;
        assert_eq!(
            none.event_subject(&EVENT, &["eu".into(), "a~2E~b".into()]),
            "events.v1.orders.created.eu.a~2E~b"
        );
        assert_eq!(none.event_filter(&EVENT), "events.v1.orders.created.*.*");
        assert_eq!(none.event_stream(), "TRELLIS_EVENTS");
        assert_eq!(
            none.dead_subject(&GROUP, "orders.created"),
            "dead.v1.acme-ware_house.stock.orders.created"
        );
        let prod = Environment::new("prod").unwrap();
        assert_eq!(prod.event_base(&EVENT), "prod.events.v1.orders.created");
        assert_eq!(prod.event_name("prod.events.v1.a.b"), Some("a.b"));
        assert_eq!(prod.event_name("events.v1.a.b"), None);
        assert_eq!(prod.event_stream(), "PROD_TRELLIS_EVENTS");
        assert_eq!(prod.dead_stream_subjects(), "prod.dead.>");
        assert_eq!(consumer(&GROUP), "acme-ware_house--stock");
        assert_eq!(owner("acme.a.b@v1"), "acme-a-b");
    }

    #[test]
    fn a_job_has_one_tree() {
        let job = trellis::JobDeclaration::new("acme.orders@v1", "orders.send_receipt");
        let id = trellis::JobId::new("01J-7").unwrap();
        let prod = Environment::new("prod").unwrap();
        assert_eq!(
            Environment::NONE.job_tree(&job, &id),
            "trellis.jobs.acme-orders.orders-send_receipt.01J-7"
        );
        assert_eq!(prod.job_queue(&job), "prod.trellis.jobs.acme-orders.orders-send_receipt");
        assert_eq!(prod.job_updates(&job), "prod.trellis.job_updates.acme-orders.orders-send_receipt");
        assert_eq!(prod.job_stream(), "PROD_TRELLIS_JOBS");
        assert_eq!(super::worker(&job), "acme-orders--orders-send_receipt");
    }

    #[test]
    fn an_environment_is_one_word_and_not_one_of_ours() {
        for bad in ["", "Prod", "a.b", "a b", "1a", "*", "events", "a-b"] {
            assert!(Environment::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_descriptor_reads_back() {
        let text = Descriptor::of(&EVENT).to_string();
        assert_eq!(text, "v1 acme.orders@v1 orders.created 2");
        assert_eq!(Descriptor::parse(&text), Some(Descriptor::of(&EVENT)));
        let next = Descriptor::parse("v1 acme.orders@v2 orders.created 2").unwrap();
        assert!(next.is_same_event(&Descriptor::of(&EVENT)));
        for other in [
            "v1 acme.billing@v1 orders.created 2",
            "v1 acme.orders@v1 orders.paid 2",
            "v1 acme.orders@v1 orders.created 1",
        ] {
            assert!(!Descriptor::parse(other).unwrap().is_same_event(&Descriptor::of(&EVENT)), "{other}");
        }
        for bad in ["", "v2 a b 1", "v1 a b", "v1 a b x", "v1 a b 1 c"] {
            assert_eq!(Descriptor::parse(bad), None, "{bad:?}");
        }
    }
}
