//! The inbox: one effect per consumer and root id, however often it is delivered.
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::database::{Database, Store};
use crate::outbox::SqlOutbox;
use crate::outbox::error::OutboxError;
use crate::outbox::tx::Tx;

impl<D: Database> SqlOutbox<D> {
    /// Run `work` in a transaction unless `consumer` has already committed its effect for
    /// `root_id`; then return what it stored.
    ///
    /// Two at the same time take turns: the second waits for the first to commit or roll back.
    ///
    /// # Errors
    /// What `work` returned, or the database refused.
    pub async fn once<T, E, F>(&self, consumer: &str, root_id: &str, work: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        F: AsyncFnOnce(&mut Tx<D>) -> Result<T, E>,
        E: From<OutboxError>,
    {
        let mut tx = self.begin().await?;
        let first = tx.record(consumer, root_id).await?;
        let done = if first { work(&mut tx).await } else { Ok(tx.stored(consumer, root_id).await?) };
        let done = match done {
            Ok(done) if first => done,
            other => {
                if let Err(error) = tx.rollback().await {
                    tracing::debug!(%error, "a rollback failed; the database undoes the transaction by itself");
                }
                return other;
            }
        };
        tx.store(consumer, root_id, &done).await?;
        tx.commit().await?;
        Ok(done)
    }
}

impl<D: Database> Tx<D> {
    async fn record(&mut self, consumer: &str, root_id: &str) -> Result<bool, OutboxError> {
        let shared = std::sync::Arc::clone(self.shared());
        let offset = shared.db_clock.offset_ms();
        let first =
            <D as Store>::inbox_insert(self.connection(), &shared.sql, consumer, root_id, offset).await;
        first.map_err(|error| shared.error(error))
    }

    async fn stored<T: DeserializeOwned>(&mut self, consumer: &str, root_id: &str) -> Result<T, OutboxError> {
        let shared = std::sync::Arc::clone(self.shared());
        let stored = <D as Store>::inbox_result(self.connection(), &shared.sql, consumer, root_id).await;
        let stored = stored.map_err(|error| shared.error(error))?;
        serde_json::from_str(stored.as_deref().unwrap_or(NOTHING)).map_err(OutboxError::StoredResult)
    }

    async fn store<T: Serialize>(
        &mut self,
        consumer: &str,
        root_id: &str,
        result: &T,
    ) -> Result<(), OutboxError> {
        let result = serde_json::to_string(result).map_err(OutboxError::EncodeResult)?;
        if result == NOTHING {
            return Ok(());
        }
        let shared = std::sync::Arc::clone(self.shared());
        let stored =
            <D as Store>::inbox_store(self.connection(), &shared.sql, consumer, root_id, &result).await;
        stored.map_err(|error| shared.error(error))
    }
}

/// What `()` is in JSON. A row without a result means this, which saves most consumers a statement.
const NOTHING: &str = "null";
