//! The fold: from the entries of a job's log to what the job is now. Pure.
//!
//! Source of the rules: the transition table below, one row per event. An entry is accepted when its
//! `previousState` is the state so far and the table has a row for it; everything else changes nothing.
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;
use trellis::Progress;

use crate::jobs::event::{Context, Entry, EventType, Lineage, LogEntry, Trigger, WaitEdge};
use crate::jobs::state::JobState;
use crate::outbox::parse_rfc3339;

/// Log lines that are kept in a record: the latest.
const MAX_LOGS: usize = 1000;

/// What a job is: the fold of its log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobRecord {
    /// Its identity.
    pub id: String,
    /// Identity of the contract that owns its declaration.
    pub service: String,
    /// Logical name of its declaration.
    pub name: String,
    /// Its state.
    pub state: JobState,
    /// Where it comes from, for tracing.
    pub context: Option<Context>,
    /// JSON of its payload.
    pub payload: Option<Box<RawValue>>,
    /// JSON of its result.
    pub result: Option<Box<RawValue>>,
    /// When it was submitted, by the submitter's clock.
    pub created_at: SystemTime,
    /// When the last accepted entry was written, by its writer's clock.
    pub updated_at: SystemTime,
    /// When the latest try began.
    pub started_at: Option<SystemTime>,
    /// When it ended.
    pub completed_at: Option<SystemTime>,
    /// Tries of this run.
    pub tries: u32,
    /// Most tries of a run.
    pub max_tries: u32,
    /// Why the last try failed, or the job ended.
    pub last_error: Option<String>,
    /// When it must have ended.
    pub deadline: Option<SystemTime>,
    /// How far it is.
    pub progress: Option<Progress>,
    /// The latest lines of its log.
    pub logs: Vec<LogEntry>,
    /// What made it.
    pub trigger: Option<Trigger>,
    /// The jobs it descends from.
    pub lineage: Option<Lineage>,
    /// What it waits for.
    pub waiting_on: Vec<WaitEdge>,
    /// The instance that began the latest try.
    pub instance: Option<String>,
    /// When the next start is due, by the broker's clock.
    pub due_at: Option<SystemTime>,
    /// Sequence number of what opened the current run.
    pub run: u64,
    /// Sequence number of the last entry, accepted or not: what the next append expects.
    pub last: u64,
    /// Sequence number of the last entry that wakes a worker.
    pub(crate) signal: u64,
    /// Sequence number of the `started` that the latest try began with: its fence.
    pub(crate) fence: u64,
}

/// The state after `event` in state `current`; `None` where the table has no row.
#[expect(clippy::match_same_arms, reason = "one row for each event, as in the table")]
pub(crate) fn transition(current: Option<JobState>, event: EventType, unstarted: bool) -> Option<JobState> {
    use EventType as E;
    use JobState::{
        Active, Cancelled, Completed, Dead, Dismissed, Expired, Failed, Pending, Retry, Skipped, Stale,
    };
    let Some(current) = current else {
        return match event {
            E::Created => Some(Pending),
            E::Skipped => Some(Skipped),
            // What came before cannot be read.
            E::Dead => Some(Dead),
            // The run's beginning was removed while a redrive was on its way.
            E::Retried => Some(Pending),
            _ => None,
        };
    };
    match (event, current) {
        (E::Started, Pending | Retry | Active) => Some(Active),
        (E::Retry, Active) => Some(Retry),
        (E::HandedBack, Active) => Some(Pending),
        (E::Ready, open) if open.is_open() => Some(open),
        (E::Progress, Active) => Some(Active),
        (E::Completed, Active) => Some(Completed),
        (E::Failed, Active) => Some(Failed),
        (E::Cancelled, Pending | Retry | Active) => Some(Cancelled),
        (E::Expired, Pending | Retry | Active) => Some(Expired),
        (E::Skipped, Pending | Retry) => Some(Skipped),
        (E::Stale, Active) => Some(Stale),
        (E::Stale, Pending) if unstarted => Some(Stale),
        (E::Dead, Pending | Active | Retry | Failed | Expired) => Some(Dead),
        (E::Dismissed, Dead) => Some(Dismissed),
        (E::Retried, Failed | Dead) => Some(Pending),
        _ => None,
    }
}

impl JobRecord {
    /// Add one entry, stored as number `sequence` at `stored_at`, to the fold so far. Whether it was accepted.
    pub(crate) fn apply(
        record: &mut Option<Self>,
        sequence: u64,
        stored_at: SystemTime,
        entry: &Entry<'_>,
    ) -> bool {
        let current = record.as_ref().map(|record| record.state);
        let opens = current.is_none();
        let is_next = opens || entry.previous_state == current;
        let belongs =
            record.as_ref().is_none_or(|record| record.id == entry.job_id && record.name == entry.job_type);
        let unstarted = entry.tries == 0 && record.as_ref().is_none_or(|record| record.tries == 0);
        let Some(next) = transition(current, entry.event_type, unstarted).filter(|_| is_next && belongs)
        else {
            if let Some(record) = record {
                record.last = sequence;
            }
            return false;
        };
        let record = record.get_or_insert_with(|| Self::open(sequence, stored_at, entry));
        record.last = sequence;
        record.take(next, sequence, stored_at, entry);
        true
    }

    /// What an owner decides on.
    pub(crate) fn decides(&self) -> (JobState, u32, Option<SystemTime>, [u64; 4]) {
        (self.state, self.tries, self.due_at, [self.run, self.signal, self.fence, self.last])
    }

    fn open(sequence: u64, stored_at: SystemTime, entry: &Entry<'_>) -> Self {
        let created_at = parse_rfc3339(&entry.timestamp).unwrap_or(stored_at);
        Self {
            id: entry.job_id.clone().into_owned(),
            service: entry.service.clone().into_owned(),
            name: entry.job_type.clone().into_owned(),
            state: entry.state,
            context: entry.context.clone(),
            payload: None,
            result: None,
            created_at,
            updated_at: created_at,
            started_at: None,
            completed_at: None,
            tries: 0,
            max_tries: 1,
            last_error: None,
            deadline: None,
            progress: None,
            logs: Vec::new(),
            trigger: None,
            lineage: None,
            waiting_on: Vec::new(),
            instance: None,
            due_at: None,
            run: sequence,
            last: sequence,
            signal: sequence,
            fence: 0,
        }
    }

    fn take(&mut self, next: JobState, sequence: u64, stored_at: SystemTime, entry: &Entry<'_>) {
        let written = parse_rfc3339(&entry.timestamp).unwrap_or(stored_at);
        self.state = next;
        self.updated_at = written;
        self.observe(entry);
        if entry.event_type == EventType::Progress {
            // It tells of the job, and decides nothing.
            return;
        }
        self.tries = entry.tries;
        let text =
            |text: &Option<std::borrow::Cow<'_, str>>| text.as_ref().map(|text| text.clone().into_owned());
        if let Some(max_tries) = entry.max_tries {
            self.max_tries = max_tries;
        }
        if let Some(deadline) = entry.deadline.as_deref().and_then(parse_rfc3339) {
            self.deadline = Some(deadline);
        }
        self.trigger = entry.trigger.clone().or(self.trigger.take());
        self.lineage = entry.lineage.clone().or(self.lineage.take());
        if let Some(payload) = entry.payload {
            self.payload = Some(payload.to_owned());
        }
        if entry.event_type.is_signal() {
            self.signal = sequence;
        }
        match entry.event_type {
            EventType::Started => {
                self.started_at = Some(written);
                self.instance = text(&entry.instance);
                self.due_at = None;
                self.fence = sequence;
                // Of a try that never ended.
                self.waiting_on.clear();
            }
            EventType::Retry | EventType::HandedBack => {
                if let Some(error) = text(&entry.error) {
                    self.last_error = Some(error);
                }
                self.due_at = entry.delay_ms.and_then(|ms| stored_at.checked_add(Duration::from_millis(ms)));
                self.waiting_on.clear();
            }
            EventType::Retried => {
                self.run = sequence;
                (self.result, self.started_at, self.completed_at) = (None, None, None);
                (self.last_error, self.progress, self.due_at) = (None, None, None);
                self.logs.clear();
                self.waiting_on.clear();
                // The deadline of an earlier run would end this one at once.
                self.deadline = entry.deadline.as_deref().and_then(parse_rfc3339);
            }
            EventType::Created | EventType::Ready | EventType::Progress => {}
            EventType::Completed => {
                self.result = entry.result.map(ToOwned::to_owned);
                self.end(written);
            }
            EventType::Failed
            | EventType::Cancelled
            | EventType::Expired
            | EventType::Skipped
            | EventType::Stale
            | EventType::Dead
            | EventType::Dismissed => {
                if let Some(error) = text(&entry.error) {
                    self.last_error = Some(error);
                }
                self.end(written);
            }
        }
    }

    fn observe(&mut self, entry: &Entry<'_>) {
        if entry.progress.is_some() {
            self.progress.clone_from(&entry.progress);
        }
        self.logs.extend(entry.logs.iter().cloned());
        let surplus = self.logs.len().saturating_sub(MAX_LOGS);
        self.logs.drain(..surplus);
        if entry.event_type != EventType::Progress {
            return;
        }
        for edge in &entry.waiting {
            self.waiting_on.retain(|known| known.id != edge.id);
            self.waiting_on.push(edge.clone());
        }
        self.waiting_on.retain(|edge| !entry.resumed.contains(&edge.id));
    }

    fn end(&mut self, at: SystemTime) {
        self.completed_at = Some(at);
        self.due_at = None;
        self.waiting_on.clear();
    }
}

#[cfg(test)]
mod tests;
