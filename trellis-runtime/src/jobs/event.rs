//! One entry of a job's log as it is stored: format 1.
use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use trellis::{LogLevel, Progress, WaitTarget};

use crate::jobs::state::JobState;

/// The format this version writes.
pub(crate) const VERSION: u32 = 1;

/// What happened. The word is the last token of the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventType {
    Created,
    Started,
    Retry,
    /// An owner gave the job back without having used a try.
    HandedBack,
    /// The job has no delivery and is to get one.
    Ready,
    /// Progress, log lines and waits: observations that decide nothing.
    Progress,
    Completed,
    Failed,
    Cancelled,
    Expired,
    Skipped,
    Stale,
    Dead,
    Dismissed,
    /// A redrive.
    Retried,
}

impl EventType {
    pub(crate) const ALL: [Self; 15] = [
        Self::Created,
        Self::Started,
        Self::Retry,
        Self::HandedBack,
        Self::Ready,
        Self::Progress,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
        Self::Skipped,
        Self::Stale,
        Self::Dead,
        Self::Dismissed,
        Self::Retried,
    ];

    /// The last token of its subject.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Started => "started",
            Self::Retry => "retry",
            Self::HandedBack => "handed_back",
            Self::Ready => "ready",
            Self::Progress => "progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Skipped => "skipped",
            Self::Stale => "stale",
            Self::Dead => "dead",
            Self::Dismissed => "dismissed",
            Self::Retried => "retried",
        }
    }

    pub(crate) fn of_token(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.token() == token)
    }

    /// Whether a run begins with it.
    pub(crate) fn opens(self) -> bool {
        matches!(self, Self::Created | Self::Retried)
    }

    /// Whether a worker is woken by it.
    pub(crate) fn is_signal(self) -> bool {
        matches!(self, Self::Created | Self::Retried | Self::Ready)
    }
}

/// The body of one entry. Field names are those of the protocol.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry<'a> {
    pub(crate) v: u32,
    #[serde(borrow)]
    pub(crate) job_id: Cow<'a, str>,
    /// Identity of the owning contract.
    #[serde(borrow)]
    pub(crate) service: Cow<'a, str>,
    /// Logical name of the declaration.
    #[serde(borrow)]
    pub(crate) job_type: Cow<'a, str>,
    pub(crate) event_type: EventType,
    pub(crate) state: JobState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous_state: Option<JobState>,
    pub(crate) tries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_tries: Option<u32>,
    /// RFC 3339.
    #[serde(borrow)]
    pub(crate) timestamp: Cow<'a, str>,
    /// RFC 3339.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<Context>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<Trigger>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lineage: Option<Lineage>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<&'a RawValue>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Cow<'a, str>>,
    /// On `retry` and `handed_back`: how long until the next start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delay_ms: Option<u64>,
    /// On `started`: who.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) instance: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Progress>,
    /// Only the new lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) logs: Vec<LogEntry>,
    /// Waits that began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting: Vec<WaitEdge>,
    /// Ids of waits that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resumed: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) admin_action: Option<AdminAction>,
}

/// Where a job comes from, for tracing. Constant for its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Context {
    /// One per submission, shared by the jobs it leads to.
    pub request_id: String,
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// W3C trace context.
    pub traceparent: String,
    /// W3C trace state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// What made a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TriggerKind {
    /// A schedule.
    Schedule,
    /// An operation.
    Operation,
    /// An RPC.
    Rpc,
    /// An event.
    Event,
    /// An operator's redrive.
    ManualReplay,
    /// Code of the service outside of any handler.
    ServiceCode,
    /// The handler of another job.
    ParentJob,
}

/// What made a job, and which one of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trigger {
    /// What kind of thing.
    pub kind: TriggerKind,
    /// Its identity, for events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The subject of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The job whose handler did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_job_id: Option<String>,
}

/// The jobs that a job descends from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Lineage {
    /// The job whose handler made it.
    pub parent_job_id: String,
    /// The first of its ancestors.
    pub root_job_id: String,
}

/// A line of a job's log, with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogEntry {
    /// RFC 3339.
    pub timestamp: String,
    /// How much it matters.
    pub level: LogLevel,
    /// What happened.
    pub message: String,
}

/// What a job waits for, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WaitEdge {
    /// Names this wait.
    pub id: String,
    /// What for.
    pub target: WaitTarget,
    /// RFC 3339.
    pub started_at: String,
}

/// Why an operator did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AdminAction {
    /// In their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why an entry cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A later version of this library wrote it.
    Newer(u32),
    /// Nobody can read it.
    Broken(String),
}

impl<'a> Entry<'a> {
    pub(crate) fn decode(body: &'a [u8]) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        match serde_json::from_slice::<Self>(body) {
            Ok(entry) if entry.v == VERSION => Ok(entry),
            Ok(entry) => Err(Unreadable::Newer(entry.v)),
            Err(error) => match serde_json::from_slice::<Version>(body) {
                Ok(Version { v }) if v > VERSION => Err(Unreadable::Newer(v)),
                _ => Err(Unreadable::Broken(format!("no entry of a job's log: {error}"))),
            },
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        // Every part of it is a string, a number or JSON already.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, EventType, Unreadable};
    use crate::jobs::state::JobState;

    /// Stored entries of format 1 that must always be readable.
    const FIXTURE: &str = include_str!("../../tests/fixtures/job_log_v1.jsonl");

    #[test]
    fn format_1_is_read_and_written_as_ever() {
        let mut seen = Vec::new();
        for line in FIXTURE.lines() {
            let entry = Entry::decode(line.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(entry.encode()).unwrap(), line);
            seen.push(entry.event_type);
        }
        assert_eq!(seen, EventType::ALL, "one fixture for each");
    }

    #[test]
    fn a_later_format_is_told_from_rubbish() {
        let newer = FIXTURE.lines().next().unwrap().replacen("\"v\":1", "\"v\":2", 1);
        assert_eq!(Entry::decode(newer.as_bytes()).unwrap_err(), Unreadable::Newer(2));
        assert_eq!(Entry::decode(br#"{"v":3,"everything":"else"}"#).unwrap_err(), Unreadable::Newer(3));
        for broken in ["", "[]", "{}", r#"{"v":1}"#, "\u{0}", r#"{"v":-1}"#] {
            assert!(matches!(Entry::decode(broken.as_bytes()), Err(Unreadable::Broken(_))), "{broken:?}");
        }
    }

    #[test]
    fn a_token_names_its_event() {
        for event in EventType::ALL {
            assert_eq!(EventType::of_token(event.token()), Some(event));
            assert_eq!(serde_json::to_string(&event).unwrap(), format!("\"{}\"", event.token()));
        }
        assert_eq!(EventType::of_token("nonsense"), None);
        assert!(JobState::Pending.is_open());
    }
}
