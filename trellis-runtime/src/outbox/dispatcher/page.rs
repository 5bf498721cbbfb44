//! One claimed page: publish it, and decide what becomes of each row.
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::broker::{Ack, Broker, Outgoing, PublishError};
use crate::outbox::row::{ClaimedRow, check_subject, decode_headers};

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
    /// Publish all rows. A failure that the row need not be guilty of is put to the test: the
    /// broker is probed, and if it is well, the row is tried once more and the broker probed
    /// again. Only a row that fails between two good probes is guilty.
    pub(crate) async fn publish(&self, broker: &Arc<dyn Broker>, in_time: impl Fn() -> bool) -> Outcome {
        let mut outcome = Outcome::default();
        if !in_time() {
            return outcome;
        }
        let suspects = self.attempt(broker, (0..self.rows.len()).collect(), &mut outcome).await;
        if suspects.is_empty() {
            return outcome;
        }
        if let Err(reason) = broker.probe().await {
            outcome.release(suspects, reason);
            return outcome;
        }
        if !in_time() {
            outcome.released.extend(suspects.into_iter().map(|(at, _)| at));
            return outcome;
        }
        let again = suspects.into_iter().map(|(at, _)| at).collect();
        let suspects = self.attempt(broker, again, &mut outcome).await;
        if suspects.is_empty() {
            return outcome;
        }
        match broker.probe().await {
            Err(reason) => outcome.release(suspects, reason),
            Ok(()) => outcome.failed.extend(suspects),
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
        for (at, answer) in sending.into_iter().zip(broker.publish(messages).await) {
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
    fn release(&mut self, suspects: Vec<(usize, String)>, reason: String) {
        self.released.extend(suspects.into_iter().map(|(at, _)| at));
        self.unavailable = Some(reason);
    }
}
