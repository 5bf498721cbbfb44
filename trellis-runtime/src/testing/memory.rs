//! An outbox in memory, for functions that are generic over the outbox port.
use trellis::{Event, EventDeclaration, Job, JobDeclaration, JobId, Message, MessageId, Submission};

use crate::outbox::{NewRow, OutboxConfig, OutboxError, prepare_message, prepare_submission};
use crate::ports::Ports;
use crate::validate::Validators;
use crate::wire::Environment;

/// Takes messages as the real outbox does, with the same checks, and keeps them.
///
/// ```
/// # use trellis::Outbox;
/// # use trellis_runtime::testing::MemoryOutbox;
/// async fn place(tx: &mut impl Outbox) { /* … */ }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let mut outbox = MemoryOutbox::default();
/// place(&mut outbox).await;
/// assert_eq!(outbox.len(), 0);
/// # }
/// ```
#[derive(Default)]
pub struct MemoryOutbox {
    rows: Vec<(NewRow, Content)>,
    validators: Validators,
    ports: Ports,
    config: OutboxConfig,
}

/// What was enqueued, by its declaration: the payload.
enum Content {
    Event(EventDeclaration, Vec<u8>),
    Job(JobDeclaration, Vec<u8>),
}

impl MemoryOutbox {
    /// With other limits.
    pub fn new(config: OutboxConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// How many messages were enqueued, jobs included.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The payloads of all enqueued `E`, in order.
    pub fn enqueued<E: Event>(&self) -> Vec<E::Payload> {
        let of_event = |content: &Content| match content {
            Content::Event(declaration, body) if *declaration == E::DECLARATION => {
                serde_json::from_slice(body).ok()
            }
            _ => None,
        };
        self.rows.iter().filter_map(|(_, content)| of_event(content)).collect()
    }

    /// The payloads of all created `J`, in order.
    pub fn created<J: Job>(&self) -> Vec<J::Payload> {
        let of_job = |content: &Content| match content {
            Content::Job(declaration, payload) if *declaration == J::DECLARATION => {
                serde_json::from_slice(payload).ok()
            }
            _ => None,
        };
        self.rows.iter().filter_map(|(_, content)| of_job(content)).collect()
    }

    /// Panics unless an `E` was enqueued that `expected` accepts; says what was enqueued instead.
    ///
    /// # Panics
    /// That is what it is for.
    #[track_caller]
    pub fn assert_enqueued<E: Event>(&self, expected: impl Fn(&E::Payload) -> bool) {
        if self.enqueued::<E>().iter().any(expected) {
            return;
        }
        panic!("no `{}` as expected was enqueued; enqueued was:{}", E::DECLARATION.name, self.there());
    }

    /// Panics unless a `J` was created that `expected` accepts; says what was enqueued instead.
    ///
    /// # Panics
    /// That is what it is for.
    #[track_caller]
    pub fn assert_created<J: Job>(&self, expected: impl Fn(&J::Payload) -> bool) {
        if self.created::<J>().iter().any(expected) {
            return;
        }
        panic!("no job `{}` as expected was created; enqueued was:{}", J::DECLARATION.name, self.there());
    }

    fn there(&self) -> String {
        let there = self.rows.iter().map(|(row, content)| {
            let (Content::Event(_, payload) | Content::Job(_, payload)) = content;
            format!("\n  {} on {}: {}", row.name, row.subject, String::from_utf8_lossy(payload))
        });
        let there: String = there.collect();
        if there.is_empty() { " nothing".to_owned() } else { there }
    }

    /// Keep the row, unless it is there already.
    fn keep(&mut self, row: NewRow, content: Content) -> Result<(), OutboxError> {
        let same = |stored: &NewRow| {
            (stored.kind, stored.name, &stored.subject, &stored.order_key)
                == (row.kind, row.name, &row.subject, &row.order_key)
                && row.kind.is_same_content(&stored.body, &row.body)
        };
        match self.rows.iter().find(|(stored, _)| stored.id == row.id) {
            Some((stored, _)) if same(stored) => Ok(()),
            Some((stored, _)) => Err(OutboxError::DuplicateId { id: row.id, stored: stored.name.to_owned() }),
            None => {
                self.rows.push((row, content));
                Ok(())
            }
        }
    }

    /// The ordering keys, one per message.
    pub fn order_keys(&self) -> Vec<Option<&str>> {
        self.rows.iter().map(|(row, _)| row.order_key.as_deref()).collect()
    }

    /// The subjects, one per message.
    pub fn subjects(&self) -> Vec<&str> {
        self.rows.iter().map(|(row, _)| row.subject.as_str()).collect()
    }
}

impl trellis::Outbox for MemoryOutbox {
    type Error = OutboxError;

    async fn append(&mut self, message: Message) -> Result<MessageId, OutboxError> {
        let limit = self.config.max_message_bytes;
        let content = Content::Event(message.declaration, message.body.clone());
        let (id, row) = prepare_message(message, &self.validators, &self.ports, &Environment::NONE, limit)?;
        self.keep(row, content)?;
        Ok(id)
    }

    async fn submit(&mut self, submission: Submission) -> Result<JobId, OutboxError> {
        let limit = self.config.max_message_bytes;
        let content = Content::Job(submission.declaration, submission.payload.clone());
        let (id, row) =
            prepare_submission(submission, &self.validators, &self.ports, &Environment::NONE, limit)?;
        match self.keep(row, content) {
            Ok(()) => Ok(id),
            Err(OutboxError::DuplicateId { stored, .. }) => {
                Err(OutboxError::DuplicateId { id: id.into(), stored })
            }
            Err(error) => Err(error),
        }
    }
}

impl std::fmt::Debug for MemoryOutbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryOutbox").field("subjects", &self.subjects()).finish_non_exhaustive()
    }
}
