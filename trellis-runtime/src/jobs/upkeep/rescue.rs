//! Jobs that are open and have no delivery get one.
use std::time::Duration;

use async_nats::HeaderMap;
use trellis::JobDeclaration;

use crate::jobs::event::{Entry, EventType};
use crate::jobs::log::{Append, AppendError};
use crate::jobs::upkeep::Upkeep;
use crate::jobs::upkeep::survey::Survey;
use crate::wire;

/// How long one append may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl Upkeep {
    /// An open job whose last signal the consumer has settled has nobody who works on it: give it
    /// a signal. One that has a delivery never is: its delivery holds the floor back.
    pub(super) async fn rescue(&self, queue: &str, found: &Survey) -> Result<(), String> {
        let settled = self.consumers.settled(&wire::worker(&self.declaration)).await?;
        for (id, _) in found.open.iter().filter(|(_, open)| open.signal <= settled) {
            self.signal(&format!("{queue}.{id}"), id, settled).await?;
        }
        Ok(())
    }

    async fn signal(&self, tree: &str, id: &str, settled: u64) -> Result<(), String> {
        let log = &self.consumers.log;
        let Some(read) = log.tree(tree).await.map_err(|error| error.to_string())? else { return Ok(()) };
        let Ok(Some(record)) = read.fold() else { return Ok(()) };
        if record.state.is_terminal() || record.signal > settled {
            return Ok(());
        }
        let JobDeclaration { contract, name, .. } = self.declaration;
        let entry = Entry {
            previous_state: Some(record.state),
            tries: record.tries,
            ..Entry::bare(id, contract, name, EventType::Ready, record.state, log.ports.clock.now())
        };
        let append = Append {
            tree: tree.to_owned(),
            token: EventType::Ready.token(),
            expected: record.last,
            id: log.ports.ulid(),
            headers: HeaderMap::new(),
            body: entry.encode().into(),
        };
        match log.append(&append, PATIENCE).await {
            Ok(_) => {
                tracing::warn!(job = id, state = %record.state, "a job without a delivery was given one");
            }
            // Somebody works on it after all.
            Err(AppendError::Moved(_)) => {}
            Err(error) => return Err(format!("job `{id}` cannot be given a delivery: {error:?}")),
        }
        Ok(())
    }
}
