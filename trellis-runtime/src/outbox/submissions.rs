//! Asking what became of a job that was created in a transaction.
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use trellis::{Job, JobId};

use crate::database::{Database, Store};
use crate::outbox::SqlOutbox;
use crate::outbox::error::OutboxError;
use crate::outbox::job::job_row_id;
use crate::outbox::outcome::{SubmissionOutcome, SubmissionState};
use crate::outbox::row::StoredSubmission;

/// How long the database is given for one look.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// The pause between two looks: it doubles from the first to the longest. A dispatcher of this outbox
/// cuts it short; one of another process cannot.
const LOOK_FIRST: Duration = Duration::from_millis(20);
const LOOK_LONGEST: Duration = Duration::from_secs(1);

impl<D: Database> SqlOutbox<D> {
    /// What became of the job `id` that was created through this outbox. The answer is there for
    /// [`OutboxConfig::job_outcome_retention`](crate::OutboxConfig::job_outcome_retention) after it
    /// was decided.
    ///
    /// Cancel safety: it only reads.
    ///
    /// # Errors
    /// The database failed, did not answer within 10 s, or has something that is no outcome.
    pub async fn job_submission_outcome<J: Job>(&self, id: &JobId) -> Result<SubmissionState, OutboxError> {
        self.submission(&job_row_id(J::DECLARATION.name, id)).await
    }

    /// Wait until it is decided what became of the job `id`, for at most `timeout`; yields
    /// [`SubmissionState::Pending`] if it is not by then, and [`SubmissionState::Unknown`] at once where
    /// there is no row: commit first.
    ///
    /// A dispatcher of this outbox or a clone of it wakes the call; one of another process is heard of
    /// by looking, at first often and then once a second.
    ///
    /// Cancel safety: it only reads.
    ///
    /// # Errors
    /// As [`job_submission_outcome`](Self::job_submission_outcome).
    pub async fn wait_outcome<J: Job>(
        &self,
        id: &JobId,
        timeout: Duration,
    ) -> Result<SubmissionState, OutboxError> {
        let row = job_row_id(J::DECLARATION.name, id);
        let waiter = self.0.waiters.wait_for(&row);
        let mut limit = pin!(tokio::time::sleep(timeout));
        let mut pause = LOOK_FIRST;
        loop {
            // Before the look: what is decided after it is heard.
            let mut told = pin!(waiter.told.notified());
            told.as_mut().enable();
            let state = self.submission(&row).await?;
            if state != SubmissionState::Pending {
                return Ok(state);
            }
            tokio::select! {
                biased;
                () = &mut limit => return Ok(state),
                () = told => {}
                () = tokio::time::sleep(pause / 2 + self.0.ports.jitter.full(pause / 2)) => {}
            }
            pause = pause.saturating_mul(2).min(LOOK_LONGEST);
        }
    }

    async fn submission(&self, row: &str) -> Result<SubmissionState, OutboxError> {
        let shared = &self.0;
        let asked = <D as Store>::submission(&shared.pool, &shared.sql, row);
        let stored = tokio::time::timeout(LOOK_LIMIT, asked).await;
        let stored = stored.map_err(|_| OutboxError::NoAnswer(LOOK_LIMIT))?;
        state(stored.map_err(|error| shared.error(error))?).map_err(OutboxError::StoredOutcome)
    }
}

/// What a row says of its submission.
fn state(stored: Option<StoredSubmission>) -> serde_json::Result<SubmissionState> {
    let Some(StoredSubmission { state, outcome, reason }) = stored else {
        return Ok(SubmissionState::Unknown);
    };
    Ok(match state.as_str() {
        "dispatched" => {
            SubmissionState::Decided(SubmissionOutcome::decode(outcome.as_deref().unwrap_or_default())?)
        }
        "dead" => SubmissionState::Decided(SubmissionOutcome::Dead { reason: reason.unwrap_or_default() }),
        _ => SubmissionState::Pending,
    })
}

/// Who in this process waits for which row.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<HashMap<String, Waited>>);

/// A row that somebody waits for.
#[derive(Debug, Default)]
struct Waited {
    by: usize,
    told: Arc<Notify>,
}

/// One who waits; forgotten when dropped.
#[derive(Debug)]
struct Waiter<'a> {
    waiters: &'a Waiters,
    row: String,
    told: Arc<Notify>,
}

impl Waiters {
    fn wait_for(&self, row: &str) -> Waiter<'_> {
        let mut waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = waiters.entry(row.to_owned()).or_default();
        waited.by += 1;
        Waiter { waiters: self, row: row.to_owned(), told: Arc::clone(&waited.told) }
    }

    /// Something was marked in these rows.
    pub(crate) fn tell<'a>(&self, rows: impl Iterator<Item = &'a str>) {
        let waiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiters.is_empty() {
            return;
        }
        for waited in rows.filter_map(|row| waiters.get(row)) {
            waited.told.notify_waiters();
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiters = self.waiters.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waited) = waiters.get_mut(&self.row) {
            waited.by -= 1;
            if waited.by == 0 {
                waiters.remove(&self.row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Waiters, state};
    use crate::outbox::outcome::{SubmissionOutcome, SubmissionState};
    use crate::outbox::row::StoredSubmission;

    #[test]
    fn a_row_says_how_far_its_submission_is() {
        let of = |name: &str, outcome: Option<&str>, reason: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let stored =
                StoredSubmission { state: name.to_owned(), outcome: owned(outcome), reason: owned(reason) };
            state(Some(stored))
        };
        assert_eq!(state(None).unwrap(), SubmissionState::Unknown);
        for waiting in ["pending", "leased", "failed"] {
            assert_eq!(of(waiting, None, Some("again")).unwrap(), SubmissionState::Pending);
        }
        let accepted = of("dispatched", Some(r#"{"v":1,"kind":"accepted"}"#), None).unwrap();
        assert!(accepted.outcome().is_some_and(SubmissionOutcome::is_accepted));
        let dead = SubmissionOutcome::Dead { reason: "why".to_owned() };
        assert_eq!(of("dead", None, Some("why")).unwrap(), SubmissionState::Decided(dead));
        assert!(of("dispatched", None, None).is_err());
    }

    #[test]
    fn nobody_is_remembered_who_no_longer_waits() {
        let waiters = Waiters::default();
        let (one, two) = (waiters.wait_for("a"), waiters.wait_for("a"));
        let other = waiters.wait_for("b");
        drop(one);
        assert_eq!(waiters.0.lock().unwrap().len(), 2);
        drop(two);
        drop(other);
        assert!(waiters.0.lock().unwrap().is_empty());
        waiters.tell(["a"].into_iter());
    }
}
