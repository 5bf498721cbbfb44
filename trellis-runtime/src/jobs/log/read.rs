//! Reads of one job's tree, answered by the leader of the stream.
use std::fmt;
use std::time::{Duration, SystemTime};

use async_nats::connection::State;
use async_nats::jetstream::stream::RawMessageErrorKind;
use bytes::Bytes;

use crate::causes::chain;
use crate::jobs::event::{Entry, EventType, Unreadable};
use crate::jobs::log::JobLog;
use crate::jobs::record::JobRecord;
use crate::wire;

/// How long the leader may take for one message.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Entries of one job that are read at most. Observations are trimmed long before.
const MAX_ENTRIES: usize = 20_000;

/// One message of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) sequence: u64,
    pub(crate) subject: String,
    pub(crate) at: SystemTime,
    pub(crate) append_id: Option<String>,
    pub(crate) body: Bytes,
}

/// Everything that the log has of one job; never empty.
#[derive(Debug, Clone)]
pub(crate) struct Tree(pub(crate) Vec<Stored>);

/// The leader did not say.
#[derive(Debug, Clone)]
pub(crate) struct ReadError(pub(crate) String);

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the log of the job cannot be read: {}", self.0)
    }
}

impl JobLog {
    /// All entries under `tree`. `None` when the leader knows of none.
    pub(crate) async fn tree(&self, tree: &str) -> Result<Option<Tree>, ReadError> {
        let filter = format!("{tree}.>");
        let (mut entries, mut from) = (Vec::new(), 1);
        while let Some(stored) = self.next(&filter, from).await? {
            from = stored.sequence + 1;
            entries.push(stored);
            if entries.len() > MAX_ENTRIES {
                return Err(ReadError(format!("it has more than {MAX_ENTRIES} entries")));
            }
        }
        Ok((!entries.is_empty()).then_some(Tree(entries)))
    }

    /// The first message at or after `from` on `filter`.
    pub(crate) async fn next(&self, filter: &str, from: u64) -> Result<Option<Stored>, ReadError> {
        if self.client.connection_state() != State::Connected {
            return Err(ReadError("no connection to the server".to_owned()));
        }
        let stream = self.context.get_stream_no_info(&self.stream).await;
        let stream = stream.map_err(|error| ReadError(chain(&error)))?;
        let asked = stream.get_first_raw_message_by_subject(filter, from);
        match tokio::time::timeout(READ_TIMEOUT, asked).await {
            Ok(Ok(message)) => Ok(Some(Stored {
                sequence: message.sequence,
                subject: message.subject.to_string(),
                at: message.time.into(),
                append_id: message.headers.get(wire::APPEND_ID).map(|id| id.as_str().to_owned()),
                body: message.payload,
            })),
            Ok(Err(error)) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Ok(Err(error)) => Err(ReadError(chain(&error))),
            Err(_) => Err(ReadError(format!("no answer within {READ_TIMEOUT:?}"))),
        }
    }
}

impl Stored {
    /// The last token but one of its subject.
    fn job_id(&self) -> Option<&str> {
        self.subject.rsplit('.').nth(1)
    }
}

impl Tree {
    /// The sequence number of the append `id`, if it is here.
    pub(crate) fn own(&self, id: &str) -> Option<u64> {
        self.0.iter().find(|stored| stored.append_id.as_deref() == Some(id)).map(|stored| stored.sequence)
    }

    /// Sequence number of the last entry: what the next append expects.
    pub(crate) fn last(&self) -> u64 {
        self.0.last().map_or(0, |stored| stored.sequence)
    }

    /// Whether the tree without these entries before the one numbered `before` says the same of what
    /// is to be done with the job.
    pub(crate) fn can_lose(&self, events: &[EventType], before: u64) -> bool {
        let loses = |stored: &&Stored| {
            let token = stored.subject.rsplit('.').next().and_then(EventType::of_token);
            stored.sequence < before && token.is_some_and(|event| events.contains(&event))
        };
        let rest = Self(self.0.iter().filter(|stored| !loses(stored)).cloned().collect());
        let decides = |tree: &Self| tree.fold().ok().flatten().map(|record| record.decides());
        rest.0.len() < self.0.len() && decides(&rest) == decides(self)
    }

    /// The fold. `None` when nothing in it opens a job; `Err` when a later version wrote in it.
    pub(crate) fn fold(&self) -> Result<Option<JobRecord>, Unreadable> {
        let mut record = None;
        for stored in &self.0 {
            match Entry::decode(&stored.body) {
                Ok(entry) if stored.job_id() != Some(&*entry.job_id) => {
                    tracing::debug!(stored.sequence, id = %entry.job_id, "an entry of another job is passed over");
                }
                Ok(entry) => {
                    JobRecord::apply(&mut record, stored.sequence, stored.at, &entry);
                }
                Err(Unreadable::Newer(v)) => return Err(Unreadable::Newer(v)),
                Err(Unreadable::Broken(reason)) => {
                    tracing::debug!(
                        sequence = stored.sequence,
                        reason,
                        "an entry of a job's log is passed over"
                    );
                }
            }
        }
        if let Some(record) = &mut record {
            record.last = self.last();
        }
        Ok(record)
    }
}
