//! Suspects put to the test: whose failure is it, the row's or the broker's.
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::broker::{Broker, Destination};
use crate::outbox::dispatcher::page::{Outcome, Page, Suspect};
use crate::outbox::row::Kind;

/// How long a connection that was cut may take to be back.
const RECOVERY: Duration = Duration::from_millis(1500);
const BETWEEN_PROBES: Duration = Duration::from_millis(250);

impl Page {
    /// Put suspects of one kind to the test: the stream they are for is probed, and if it is well,
    /// they are tried once more. Of several that fail again one may have spoilt the others'
    /// connection, so each is tried alone. Only a row that fails alone, between two good probes, is
    /// guilty.
    pub(crate) async fn judge(
        &self,
        broker: &Arc<dyn Broker>,
        kind: Kind,
        suspects: Vec<Suspect>,
        in_time: &(dyn Fn() -> bool + Sync),
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let destination = kind.destination();
        if let Err(reason) = recovered(broker, destination).await {
            outcome.release(suspects, Some(reason));
            return outcome;
        }
        if !in_time() {
            outcome.release(suspects, None);
            return outcome;
        }
        let alone = suspects.len() == 1;
        let failed = self.attempt(broker, suspects, &mut outcome, in_time).await;
        if !failed.is_empty()
            && let Err(reason) = recovered(broker, destination).await
        {
            outcome.release(failed, Some(reason));
            return outcome;
        }
        if alone {
            outcome.fail(failed);
            return outcome;
        }
        let mut failed = VecDeque::from(failed);
        while let Some(suspect) = failed.pop_front() {
            if !in_time() {
                outcome.release(std::iter::once(suspect).chain(failed), None);
                return outcome;
            }
            let again = self.attempt(broker, vec![suspect], &mut outcome, in_time).await;
            if again.is_empty() {
                continue;
            }
            match recovered(broker, destination).await {
                Ok(()) => outcome.fail(again),
                Err(reason) => {
                    outcome.release(again.into_iter().chain(failed), Some(reason));
                    return outcome;
                }
            }
        }
        outcome
    }
}

impl Outcome {
    fn release(&mut self, rows: impl IntoIterator<Item = Suspect>, unavailable: Option<String>) {
        self.released.extend(rows);
        self.unavailable = unavailable;
    }

    fn fail(&mut self, rows: Vec<Suspect>) {
        self.failed.extend(rows);
    }
}

/// Whether the broker is well, or is again after a moment: a message that makes the server cut the
/// connection must not pass for an outage.
async fn recovered(broker: &Arc<dyn Broker>, destination: Destination) -> Result<(), String> {
    let mut limit = std::pin::pin!(tokio::time::sleep(RECOVERY));
    loop {
        let Err(reason) = broker.probe(destination).await else { return Ok(()) };
        tokio::select! {
            biased;
            () = &mut limit => return Err(reason),
            () = tokio::time::sleep(BETWEEN_PROBES) => {}
        }
    }
}
