//! One claimed page: publish it, and find what becomes of each row.
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::broker::{Ack, Broker, First, Outgoing, PublishError};
use crate::outbox::dispatcher::decide::{Own, Standing, Verdict, decide};
use crate::outbox::dispatcher::verdict::UNKNOWN;
use crate::outbox::job::{check_append, tree_filter};
use crate::outbox::outcome::SubmissionOutcome;
use crate::outbox::row::{ClaimedRow, Kind, check_subject, decode_headers};
use crate::wire::APPEND_ID;

/// Reads of logs that are under way at once.
const READS: usize = 32;

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
    /// Its first send is too long ago to send it again.
    expired: bool,
}

impl PageRow {
    /// A claimed row. `longest_ms` is how long ago a job's first send may be.
    pub(crate) fn new(mut row: ClaimedRow, longest_ms: i64) -> Self {
        let expired = row.kind == Kind::Job && row.sent_ago_ms > longest_ms;
        let body = Bytes::from(std::mem::take(&mut row.body));
        Self { row, body, expired }
    }

    fn outgoing(&self) -> Result<Outgoing, String> {
        check_subject(&self.row.subject)?;
        let headers = decode_headers(&self.row.headers)?;
        if self.row.kind == Kind::Job {
            check_append(&self.row.subject, &headers)?;
        }
        Ok(Outgoing { subject: self.row.subject.clone(), headers, body: self.body.clone() })
    }

    fn decide(&self, standing: Standing, first: Option<&First>) -> Verdict {
        let headers = decode_headers(&self.row.headers).unwrap_or_default();
        let append_id = headers.get(APPEND_ID).map(async_nats::HeaderValue::as_str);
        decide(Own { append_id, body: &self.body }, standing, first)
    }
}

/// A row that was not acknowledged.
pub(crate) struct Suspect {
    /// Its place in the page.
    pub(crate) at: usize,
    /// What was said.
    pub(crate) reason: String,
    /// The broker may have it, by a send of this claim.
    pub(crate) sent: bool,
}

/// What became of the rows of a page, by their place in it.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Events that the broker has.
    pub(crate) sent: Vec<(usize, Ack)>,
    /// Jobs of which is decided what became of them, and whether the broker had them before.
    pub(crate) decided: Vec<(usize, SubmissionOutcome, bool)>,
    /// The failure is the row's.
    pub(crate) failed: Vec<Suspect>,
    /// Nothing more can be found out.
    pub(crate) lost: Vec<(usize, String)>,
    /// The failure is not the row's: no attempt is used.
    pub(crate) released: Vec<Suspect>,
    /// Why nothing more of this kind should be claimed now.
    pub(crate) unavailable: Option<String>,
}

impl Page {
    /// Publish all rows; returns what became of them, and the suspects, for [`Page::judge`].
    pub(crate) async fn publish(
        &self,
        broker: &Arc<dyn Broker>,
        in_time: &(dyn Fn() -> bool + Sync),
    ) -> (Outcome, Vec<Suspect>) {
        let mut outcome = Outcome::default();
        let fresh = |at: usize| Suspect { at, reason: String::new(), sent: false };
        let all = (0..self.rows.len()).map(fresh).collect();
        let suspects = self.attempt(broker, all, &mut outcome, in_time).await;
        (outcome, suspects)
    }

    /// The kind of the row `at`.
    pub(crate) fn kind(&self, at: usize) -> Option<Kind> {
        self.rows.get(at).map(|row| row.row.kind)
    }

    /// Publish rows, or read what became of them; returns those that failed without need to be guilty.
    pub(super) async fn attempt(
        &self,
        broker: &Arc<dyn Broker>,
        rows: Vec<Suspect>,
        outcome: &mut Outcome,
        in_time: &(dyn Fn() -> bool + Sync),
    ) -> Vec<Suspect> {
        let mut sending = Vec::with_capacity(rows.len());
        let mut messages = Vec::with_capacity(rows.len());
        let mut reading = Vec::new();
        for suspect in rows {
            let Some(row) = self.rows.get(suspect.at) else { continue };
            if row.expired {
                reading.push((suspect, row, Standing::Expired));
                continue;
            }
            match row.outgoing() {
                Ok(message) => {
                    sending.push((suspect, row));
                    messages.push(message);
                }
                Err(reason) => outcome.failed.push(Suspect { reason, ..suspect }),
            }
        }
        let mut suspects = Vec::new();
        let answers = if messages.is_empty() { Vec::new() } else { broker.publish(messages).await };
        let no_answer = || Err(PublishError::Unavailable("the broker gave no answer".to_owned()));
        let answers = answers.into_iter().chain(std::iter::repeat_with(no_answer));
        for ((suspect, row), answer) in sending.into_iter().zip(answers) {
            let at = suspect.at;
            match (answer, row.row.kind) {
                (Ok(ack), Kind::Event) => outcome.sent.push((at, ack)),
                (Ok(_), Kind::Job) => {
                    let verdict = row.decide(Standing::Stored, None);
                    suspects.extend(outcome.record(suspect, row, verdict));
                }
                (Err(PublishError::Occupied(_)), Kind::Job) => {
                    reading.push((suspect, row, Standing::Occupied));
                }
                (Err(PublishError::Refused(reason) | PublishError::Occupied(reason)), _) => {
                    outcome.failed.push(Suspect { reason, ..suspect });
                }
                (Err(PublishError::NotSent(reason)), _) => suspects.push(Suspect { reason, ..suspect }),
                (Err(PublishError::Unavailable(reason)), _) => {
                    suspects.push(Suspect { reason, sent: true, ..suspect });
                }
            }
        }
        self.read(broker, reading, outcome, &mut suspects, in_time).await;
        suspects
    }

    /// Read what is first in the logs of jobs, and decide by it. After the first read that fails, and
    /// when time is up, the others are not read.
    async fn read(
        &self,
        broker: &Arc<dyn Broker>,
        reading: Vec<(Suspect, &PageRow, Standing)>,
        outcome: &mut Outcome,
        suspects: &mut Vec<Suspect>,
        in_time: &(dyn Fn() -> bool + Sync),
    ) {
        let mut reading = reading.into_iter();
        let mut unread: Option<String> = None;
        loop {
            let some: Vec<_> = reading.by_ref().take(READS).collect();
            if some.is_empty() {
                return;
            }
            if unread.is_none() && !in_time() {
                unread = Some("no time was left to read its log".to_owned());
            }
            if let Some(reason) = &unread {
                let unread = |suspect| Suspect { reason: reason.clone(), ..suspect };
                suspects.extend(some.into_iter().map(|(suspect, ..)| unread(suspect)));
                continue;
            }
            let firsts = some.iter().map(|(_, row, _)| broker.first(tree_filter(&row.row.subject)));
            let firsts = futures_util::future::join_all(firsts).await;
            for ((suspect, row, standing), first) in some.into_iter().zip(firsts) {
                match first {
                    Ok(first) => {
                        let verdict = row.decide(standing, first.as_ref());
                        suspects.extend(outcome.record(suspect, row, verdict));
                    }
                    Err(error) => {
                        let reason = error.to_string();
                        unread.get_or_insert_with(|| reason.clone());
                        suspects.push(Suspect { reason, ..suspect });
                    }
                }
            }
        }
    }
}

impl Outcome {
    /// Note a verdict; gives the row back if it has to be tried again.
    fn record(&mut self, suspect: Suspect, row: &PageRow, verdict: Verdict) -> Option<Suspect> {
        match verdict {
            Verdict::Decided { outcome, repeated } => self.decided.push((suspect.at, outcome, repeated)),
            Verdict::Again(reason) => return Some(Suspect { reason, ..suspect }),
            Verdict::Unknown(why) => {
                let ago = Duration::from_millis(row.row.sent_ago_ms.unsigned_abs());
                let reason = format!("{UNKNOWN}: it was first sent {}s ago, {why}", ago.as_secs());
                self.lost.push((suspect.at, reason));
            }
        }
        None
    }
}
