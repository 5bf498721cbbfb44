//! One message or job into one open transaction.
use trellis::{JobId, Message, MessageId, PayloadError, Submission};

use crate::database::{Database, Store};
use crate::jobs::submission;
use crate::outbox::error::OutboxError;
use crate::outbox::job::job_row_id;
use crate::outbox::prepare::{Stamp, prepare};
use crate::outbox::row::{Kind, NewRow, encode_headers};
use crate::outbox::shared::Shared;
use crate::ports::Ports;
use crate::trace::TraceContext;
use crate::validate::Validators;
use crate::wire::Environment;

/// An insert loses only to a row that a dispatcher removes at that moment.
const INSERT_TRIES: usize = 3;

// Not generic over the payload: one copy, however many events a contract declares.
pub(crate) async fn append<D: Database>(
    connection: &mut <D as sqlx::Database>::Connection,
    shared: &Shared<D>,
    message: Message,
) -> Result<MessageId, OutboxError> {
    let (ports, limit) = (&shared.ports, shared.config.max_message_bytes);
    let (id, row) = prepare_message(message, &shared.validators, ports, &shared.environment, limit)?;
    insert(connection, shared, row).await?;
    Ok(id)
}

/// The same for a job: a row whose body is the first entry of its log.
pub(crate) async fn submit<D: Database>(
    connection: &mut <D as sqlx::Database>::Connection,
    shared: &Shared<D>,
    submission: Submission,
) -> Result<JobId, OutboxError> {
    let (ports, limit) = (&shared.ports, shared.config.max_message_bytes);
    let (id, row) = prepare_submission(submission, &shared.validators, ports, &shared.environment, limit)?;
    match insert(connection, shared, row).await {
        Ok(()) => Ok(id),
        // By the name it was chosen under.
        Err(OutboxError::DuplicateId { stored, .. }) => {
            Err(OutboxError::DuplicateId { id: id.into(), stored })
        }
        Err(error) => Err(error),
    }
}

/// Insert the row, or find that it is there already.
async fn insert<D: Database>(
    connection: &mut <D as sqlx::Database>::Connection,
    shared: &Shared<D>,
    row: NewRow,
) -> Result<(), OutboxError> {
    if !sqlx::Connection::is_in_transaction(connection) {
        return Err(OutboxError::NotInTransaction);
    }
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
            return Ok(());
        }
        match <D as Store>::find(connection, &shared.sql, &row.id).await.map_err(failed)? {
            Some(stored) if stored.is_same_message(&row) => return Ok(()),
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
    let declared = (message.declaration.contract, message.declaration.name);
    validators.check(declared, message.schema, &message.body)?;
    let id = match &message.id {
        Some(id) => id.clone(),
        None => MessageId::new(ports.ulid())
            .map_err(|source| PayloadError::Id { name: message.declaration.name, source })?,
    };
    let stamp = Stamp { id: id.clone(), time: ports.clock.now(), trace: TraceContext::next(&*ports.ids) };
    Ok((id, prepare(message, stamp, environment, max_message_bytes)?))
}

/// The same for a job.
pub(crate) fn prepare_submission(
    submission: Submission,
    validators: &Validators,
    ports: &Ports,
    environment: &Environment,
    max_message_bytes: usize,
) -> Result<(JobId, NewRow), OutboxError> {
    let name = submission.declaration.name;
    let stamp = submission::Stamp::new(&submission, ports)?;
    let prepared = submission::prepare(submission, stamp, validators, environment, max_message_bytes)?;
    let headers: Vec<(&str, &str)> =
        prepared.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let row = NewRow {
        id: job_row_id(name, &prepared.id),
        kind: Kind::Job,
        name,
        headers: encode_headers(&headers),
        subject: prepared.subject,
        body: prepared.body,
        order_key: None,
    };
    Ok((prepared.id, row))
}
