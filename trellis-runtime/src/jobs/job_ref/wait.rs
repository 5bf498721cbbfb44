//! Waiting for a job's end: listen first, read second, read again now and then.
use std::time::Duration;

use futures_util::StreamExt;
use trellis::{Job, WaitTarget};

use crate::causes::chain;
use crate::jobs::event::EventType;
use crate::jobs::job_ref::{JobRef, JobRefError, JobSnapshot};
use crate::jobs::record::transition;
use crate::jobs::state::JobState;
use crate::jobs::worker::current;

/// How often the log is read without having heard anything: the live message may be lost.
const READ_EVERY: Duration = Duration::from_secs(3);
/// How soon the log is read again after an end was heard and not read; it doubles.
const HEARD_AGAIN: Duration = Duration::from_millis(5);
/// The wait before a read that failed is repeated.
const AGAIN: Duration = Duration::from_millis(200);

impl<J: Job> JobRef<J> {
    /// Wait until the job has ended, for at most `timeout`: completed, failed, dead or however. After
    /// a redrive it waits for the end of the new run. A job that is not there yet is waited for as well.
    ///
    /// It survives reconnects. Inside a handler of a job, that job says meanwhile what it waits for.
    ///
    /// Cancel safety: dropped, nothing is lost.
    ///
    /// # Errors
    /// It did not end in time, or the server could not be asked at all.
    pub async fn wait(&self, timeout: Duration) -> Result<JobSnapshot<J>, JobRefError> {
        let declaration = J::DECLARATION;
        let target = WaitTarget::job(declaration.contract, declaration.name, &self.id);
        current::noting(target, self.wait_within(timeout)).await
    }

    async fn wait_within(&self, timeout: Duration) -> Result<JobSnapshot<J>, JobRefError> {
        let mut seen = Seen::Nothing;
        match tokio::time::timeout(timeout, self.ended(&mut seen)).await {
            Ok(ended) => ended,
            Err(_) => Err(match seen {
                Seen::Nothing => self.unavailable("it was not asked in time".to_owned()),
                Seen::Trouble(reason) => self.unavailable(reason),
                Seen::State(state) => {
                    JobRefError::TimedOut { name: J::DECLARATION.name, id: self.id.clone(), state }
                }
            }),
        }
    }

    async fn ended(&self, seen: &mut Seen) -> Result<JobSnapshot<J>, JobRefError> {
        let subject = format!("{}.*", self.tree);
        let mut heard = loop {
            match self.log.client.subscribe(subject.clone()).await {
                Ok(heard) => break heard,
                Err(error) => *seen = Seen::Trouble(chain(&error)),
            }
            tokio::time::sleep(AGAIN).await;
        };
        // From here on, an end that a read does not see is heard.
        if let Err(error) = self.log.client.flush().await {
            *seen = Seen::Trouble(chain(&error));
        }
        let mut next_read = READ_EVERY;
        loop {
            let pause = match self.record().await {
                Ok(Some(record)) if record.state.is_terminal() => return Ok(JobSnapshot::new(record)),
                Ok(record) => {
                    *seen = Seen::State(record.map(|record| record.state));
                    next_read
                }
                Err(error @ JobRefError::Newer { .. }) => return Err(error),
                Err(error) => {
                    *seen = Seen::Trouble(error.to_string());
                    AGAIN
                }
            };
            let ending = async {
                while let Some(message) = heard.next().await {
                    if message.subject.rsplit('.').next().is_some_and(ends) {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                // It is heard also before it is stored, and when it is refused.
                () = ending => next_read = HEARD_AGAIN,
                () = tokio::time::sleep(pause) => next_read = (2 * next_read).min(READ_EVERY),
            }
        }
    }
}

/// What a wait has seen so far.
enum Seen {
    Nothing,
    Trouble(String),
    State(Option<JobState>),
}

/// Whether an entry with this token can end a job.
pub(super) fn ends(token: &str) -> bool {
    let Some(event) = EventType::of_token(token) else { return false };
    JobState::ALL
        .into_iter()
        .map(Some)
        .chain([None])
        .any(|state| transition(state, event, true).is_some_and(JobState::is_terminal))
}

#[cfg(test)]
mod tests {
    use super::ends;

    #[test]
    fn ends_are_told_from_the_rest() {
        for token in ["completed", "failed", "cancelled", "expired", "skipped", "stale", "dead", "dismissed"]
        {
            assert!(ends(token), "{token}");
        }
        for token in ["created", "started", "retry", "handed_back", "ready", "progress", "retried", "x"] {
            assert!(!ends(token), "{token}");
        }
    }
}
