//! Submission → the first entry of a job's log: pure, and frozen from here on.
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;
use trellis::{JobDeclaration, JobId, PayloadError, Submission};

use crate::jobs::event::{Context, Entry, EventType, Lineage, Trigger, VERSION};
use crate::jobs::state::JobState;
use crate::outbox::{MAX_SUBJECT_BYTES, header_bytes, rfc3339};
use crate::validate::{Invalid, Validators};
use crate::wire::{self, Environment};

/// Why a job cannot be submitted, whatever the way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmissionError {
    /// The payload cannot be encoded, or the chosen id cannot be one.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The payload violates its schema.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The message would be larger than the configured limit.
    #[error("job `{name}` makes a message of {size} bytes with its headers, the limit is {limit}")]
    TooLarge {
        /// The declaration.
        name: &'static str,
        /// Bytes, headers included.
        size: usize,
        /// `max_message_bytes`.
        limit: usize,
    },
    /// The subject would be longer than servers take.
    #[error("job `{name}` has a subject of {size} bytes, the limit is {limit}")]
    SubjectTooLong {
        /// The declaration.
        name: &'static str,
        /// Bytes.
        size: usize,
        /// The limit.
        limit: usize,
    },
}

/// What the engine adds to a submission.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    pub(crate) id: JobId,
    /// Names this append, however often it is sent.
    pub(crate) append_id: String,
    pub(crate) time: SystemTime,
    pub(crate) context: Context,
    pub(crate) trigger: Trigger,
    pub(crate) lineage: Option<Lineage>,
}

/// A submission that can be sent as it is, again and again.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) id: JobId,
    /// `<tree>.created`
    pub(crate) subject: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// Decide everything about the first entry of the job's log.
pub(crate) fn prepare(
    submission: Submission,
    stamp: Stamp,
    validators: &Validators,
    environment: &Environment,
    max_message_bytes: usize,
) -> Result<Prepared, SubmissionError> {
    let JobDeclaration { contract, name, retry, deadline, .. } = submission.declaration;
    validators.check((contract, name), submission.schema, &submission.payload)?;
    let tree = environment.job_tree(&submission.declaration, &stamp.id);
    let subject = format!("{tree}.{}", EventType::Created.token());
    if subject.len() > MAX_SUBJECT_BYTES {
        return Err(SubmissionError::SubjectTooLong { name, size: subject.len(), limit: MAX_SUBJECT_BYTES });
    }
    let payload: &RawValue = serde_json::from_slice(&submission.payload)
        .map_err(|source| PayloadError::Encode { name, source })?;
    let mut headers = vec![
        (wire::APPEND_ID, stamp.append_id),
        (wire::EXPECTED_SEQUENCE, "0".to_owned()),
        (wire::EXPECTED_SUBJECT, format!("{tree}.>")),
        (wire::TRACEPARENT, stamp.context.traceparent.clone()),
    ];
    headers.extend(stamp.context.tracestate.clone().map(|state| (wire::TRACESTATE, state)));
    let entry = Entry {
        max_tries: Some(retry.tries.max(1)),
        deadline: deadline.map(|after| rfc3339(end_of(stamp.time, after)).into()),
        context: Some(stamp.context),
        trigger: Some(stamp.trigger),
        lineage: stamp.lineage,
        payload: Some(payload),
        ..Entry::bare(stamp.id.as_str(), contract, name, EventType::Created, JobState::Pending, stamp.time)
    };
    let body = entry.encode();
    let pairs: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let size = body.len() + header_bytes(&pairs);
    if size > max_message_bytes {
        return Err(SubmissionError::TooLarge { name, size, limit: max_message_bytes });
    }
    Ok(Prepared { id: stamp.id, subject, headers, body })
}

/// A time that calendars cannot write is no deadline anybody waits for.
pub(crate) fn end_of(start: SystemTime, after: Duration) -> SystemTime {
    start.checked_add(after.min(Duration::from_secs(366 * 24 * 3600))).unwrap_or(start)
}

impl<'a> Entry<'a> {
    /// An entry with what every one has, and nothing else.
    pub(crate) fn bare(
        job_id: &'a str,
        service: &'a str,
        job_type: &'a str,
        event_type: EventType,
        state: JobState,
        time: SystemTime,
    ) -> Self {
        Self {
            v: VERSION,
            job_id: job_id.into(),
            service: service.into(),
            job_type: job_type.into(),
            event_type,
            state,
            previous_state: None,
            tries: 0,
            max_tries: None,
            timestamp: rfc3339(time).into(),
            deadline: None,
            context: None,
            trigger: None,
            lineage: None,
            payload: None,
            result: None,
            error: None,
            delay_ms: None,
            instance: None,
            progress: None,
            logs: Vec::new(),
            waiting: Vec::new(),
            resumed: Vec::new(),
            admin_action: None,
        }
    }
}
