//! One claimed page: publish it, and decide what becomes of each row.
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::broker::{Ack, Broker, Outgoing, PublishError};
use crate::outbox::row::{ClaimedRow, check_subject, decode_headers};

/// How long a connection that was cut may take to be back.
const RECOVERY: Duration = Duration::from_millis(1500);
const BETWEEN_PROBES: Duration = Duration::from_millis(250);

/// A page under a lease.
pub(crate) struct Page {
    pub(crate) token: String,
    pub(crate) rows: Vec<PageRow>,
    /// Monotonic time before the claim was made.
    pub(crate) claimed_at: Duration,
}

pub(crate) struct PageRow {
    pub(crate) row: ClaimedRow,
    body: Bytes,
}

impl From<ClaimedRow> for PageRow {
    fn from(mut row: ClaimedRow) -> Self {
        let body = Bytes::from(std::mem::take(&mut row.body));
        Self { row, body }
    }
}

impl PageRow {
    fn outgoing(&self) -> Result<Outgoing, String> {
        check_subject(&self.row.subject)?;
        let headers = decode_headers(&self.row.headers)?;
        Ok(Outgoing { subject: self.row.subject.clone(), headers, body: self.body.clone() })
    }
}

/// What became of the rows of a page, by their place in it.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) sent: Vec<(usize, Ack)>,
    /// The failure is the row's.
    pub(crate) failed: Vec<(usize, String)>,
    /// The failure is not the row's: no attempt is used.
    pub(crate) released: Vec<usize>,
    /// Why nothing more should be claimed now.
    pub(crate) unavailable: Option<String>,
}

impl Page {
    /// Publish all rows; returns what became of them, and the rows that failed without need to be
    /// guilty of it, for [`Page::judge`].
    pub(crate) async fn publish(&self, broker: &Arc<dyn Broker>) -> (Outcome, Vec<usize>) {
        let mut outcome = Outcome::default();
        let suspects = self.attempt(broker, (0..self.rows.len()).collect(), &mut outcome).await;
        (outcome, suspects.into_iter().map(|(at, _)| at).collect())
    }

    /// Put suspects to the test: the broker is probed, and if it is well, they are tried once more.
    /// Of several that fail again one may have spoilt the others' connection, so each is tried alone.
    /// Only a row that fails alone, between two good probes, is guilty.
    pub(crate) async fn judge(
        &self,
        broker: &Arc<dyn Broker>,
        suspects: Vec<usize>,
        in_time: impl Fn() -> bool,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if let Err(reason) = recovered(broker).await {
            outcome.release(suspects, Some(reason));
            return outcome;
        }
        if !in_time() {
            outcome.release(suspects, None);
            return outcome;
        }
        let alone = suspects.len() == 1;
        let mut failed: VecDeque<(usize, String)> = self.attempt(broker, suspects, &mut outcome).await.into();
        if !failed.is_empty()
            && let Err(reason) = recovered(broker).await
        {
            outcome.release(failed.into_iter().map(|(at, _)| at), Some(reason));
            return outcome;
        }
        if alone {
            outcome.failed.extend(failed);
            return outcome;
        }
        while let Some((at, _)) = failed.pop_front() {
            let rest = |failed: VecDeque<(usize, String)>| failed.into_iter().map(|(at, _)| at);
            if !in_time() {
                outcome.release(std::iter::once(at).chain(rest(failed)), None);
                return outcome;
            }
            let again = self.attempt(broker, vec![at], &mut outcome).await;
            if again.is_empty() {
                continue;
            }
            match recovered(broker).await {
                Ok(()) => outcome.failed.extend(again),
                Err(reason) => {
                    outcome.release(std::iter::once(at).chain(rest(failed)), Some(reason));
                    return outcome;
                }
            }
        }
        outcome
    }

    /// Publish the rows `at`; returns those that failed without being guilty, with what was said.
    async fn attempt(
        &self,
        broker: &Arc<dyn Broker>,
        at: Vec<usize>,
        outcome: &mut Outcome,
    ) -> Vec<(usize, String)> {
        let mut sending = Vec::with_capacity(at.len());
        let mut messages = Vec::with_capacity(at.len());
        for at in at {
            match self.rows.get(at).map(PageRow::outgoing) {
                Some(Ok(message)) => {
                    sending.push(at);
                    messages.push(message);
                }
                Some(Err(reason)) => outcome.failed.push((at, reason)),
                None => {}
            }
        }
        let mut suspects = Vec::new();
        let no_answer = || Err(PublishError::Unavailable("the broker gave no answer".to_owned()));
        let answers = broker.publish(messages).await.into_iter().chain(std::iter::repeat_with(no_answer));
        for (at, answer) in sending.into_iter().zip(answers) {
            match answer {
                Ok(ack) => outcome.sent.push((at, ack)),
                Err(PublishError::Refused(reason)) => outcome.failed.push((at, reason)),
                Err(PublishError::Unavailable(reason)) => suspects.push((at, reason)),
            }
        }
        suspects
    }
}

impl Outcome {
    fn release(&mut self, rows: impl IntoIterator<Item = usize>, unavailable: Option<String>) {
        self.released.extend(rows);
        self.unavailable = unavailable;
    }
}

/// Whether the broker is well, or is again after a moment: a message that makes the server cut the
/// connection must not pass for an outage.
async fn recovered(broker: &Arc<dyn Broker>) -> Result<(), String> {
    let mut limit = std::pin::pin!(tokio::time::sleep(RECOVERY));
    loop {
        let Err(reason) = broker.probe().await else { return Ok(()) };
        tokio::select! {
            biased;
            () = &mut limit => return Err(reason),
            () = tokio::time::sleep(BETWEEN_PROBES) => {}
        }
    }
}
