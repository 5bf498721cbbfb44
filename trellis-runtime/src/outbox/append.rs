//! One message into one open transaction.
use trellis::{Message, MessageId, PayloadError};

use crate::database::{Database, Store};
use crate::outbox::error::OutboxError;
use crate::outbox::prepare::{Stamp, prepare};
use crate::outbox::row::NewRow;
use crate::outbox::shared::Shared;
use crate::outbox::validate::Validators;
use crate::ports::Ports;
use crate::trace::TraceContext;
use crate::wire::Environment;

/// An insert loses only to a row that a dispatcher removes at that moment.
const INSERT_TRIES: usize = 3;

// Not generic over the payload: one copy, however many events a contract declares.
pub(crate) async fn append<D: Database>(
    connection: &mut <D as sqlx::Database>::Connection,
    shared: &Shared<D>,
    message: Message,
) -> Result<MessageId, OutboxError> {
    if !sqlx::Connection::is_in_transaction(connection) {
        return Err(OutboxError::NotInTransaction);
    }
    let (ports, limit) = (&shared.ports, shared.config.max_message_bytes);
    let (id, row) = prepare_message(message, &shared.validators, ports, &shared.environment, limit)?;
    let failed = |error| shared.error(error);
    if let Some(key) = &row.order_key {
        // In a statement of its own: the row's sequence number is drawn under the lock, so that
        // sequence order is commit order within the key.
        let lock = shared.tables.lock_id("key", key);
        <D as Store>::lock_key(connection, lock).await.map_err(failed)?;
    }
    for _ in 0..INSERT_TRIES {
        if <D as Store>::insert(connection, &shared.sql, &row, shared.db_clock.offset_ms())
            .await
            .map_err(failed)?
        {
            return Ok(id);
        }
        match <D as Store>::find(connection, &shared.sql, &row.id).await.map_err(failed)? {
            Some(stored) if stored.is_same_message(&row) => return Ok(id),
            Some(stored) => return Err(OutboxError::DuplicateId { id: row.id, stored: stored.name }),
            // Sent and removed between the two statements: the id is free again.
            None => {}
        }
    }
    Err(OutboxError::DuplicateId { id: row.id, stored: row.name.to_owned() })
}

/// All checks that need no database, and the row.
pub(crate) fn prepare_message(
    message: Message,
    validators: &Validators,
    ports: &Ports,
    environment: &Environment,
    max_message_bytes: usize,
) -> Result<(MessageId, NewRow), OutboxError> {
    validators.check(&message.declaration, message.schema, &message.body)?;
    let id = match &message.id {
        Some(id) => id.clone(),
        None => MessageId::new(ports.ulid())
            .map_err(|source| PayloadError::Id { name: message.declaration.name, source })?,
    };
    let stamp = Stamp { id: id.clone(), time: ports.clock.now(), trace: TraceContext::next(&*ports.ids) };
    Ok((id, prepare(message, stamp, environment, max_message_bytes)?))
}
