//! An outbox in memory, for functions that are generic over the outbox port.
use trellis::{Event, Message, MessageId};

use crate::outbox::{NewRow, OutboxConfig, OutboxError, Validators, prepare_message};
use crate::ports::Ports;
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
    rows: Vec<(NewRow, Message)>,
    validators: Validators,
    ports: Ports,
    config: OutboxConfig,
}

impl MemoryOutbox {
    /// With other limits.
    pub fn new(config: OutboxConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// How many messages were enqueued.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The payloads of all enqueued `E`, in order.
    pub fn enqueued<E: Event>(&self) -> Vec<E::Payload> {
        let of_event = self.rows.iter().filter(|(_, message)| message.declaration == E::DECLARATION);
        of_event.filter_map(|(_, message)| serde_json::from_slice(&message.body).ok()).collect()
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
        let there = self.rows.iter().map(|(row, _)| {
            format!("\n  {} on {}: {}", row.name, row.subject, String::from_utf8_lossy(&row.body))
        });
        let there: String = there.collect();
        let there = if there.is_empty() { " nothing".to_owned() } else { there };
        panic!("no `{}` as expected was enqueued; enqueued was:{there}", E::DECLARATION.name);
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
        let kept = message.clone();
        let (id, row) = prepare_message(message, &self.validators, &self.ports, &Environment::NONE, limit)?;
        let same = |stored: &NewRow| NewRow { headers: row.headers.clone(), ..stored.clone() } == row;
        match self.rows.iter().find(|(stored, _)| stored.id == row.id) {
            Some((stored, _)) if same(stored) => Ok(id),
            Some((stored, _)) => Err(OutboxError::DuplicateId { id: row.id, stored: stored.name.to_owned() }),
            None => {
                self.rows.push((row, kept));
                Ok(id)
            }
        }
    }
}

impl std::fmt::Debug for MemoryOutbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryOutbox").field("subjects", &self.subjects()).finish_non_exhaustive()
    }
}
