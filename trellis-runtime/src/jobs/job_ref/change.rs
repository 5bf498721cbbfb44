//! What others than the owner may append: a cancellation, a redrive, a dismissal.
use std::time::{Duration, SystemTime};

use async_nats::HeaderMap;
use trellis::Job;

use crate::jobs::decide::cut;
use crate::jobs::event::{AdminAction, Entry, EventType, Trigger, TriggerKind};
use crate::jobs::job_ref::{JobRef, JobRefError, JobSnapshot};
use crate::jobs::log::{Append, AppendError};
use crate::jobs::record::JobRecord;
use crate::jobs::state::JobState;
use crate::jobs::submission::end_of;
use crate::outbox::rfc3339;

/// How often a change is decided again because the log has moved on.
const ROUNDS: usize = 32;
/// How long one read or append may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The wait before a read that failed is repeated.
const AGAIN: Duration = Duration::from_millis(100);

impl<J: Job> JobRef<J> {
    /// Cancel the job. A handler at work is told at once (within half its ack wait where the live message
    /// is lost), and dropped if it does not end within its grace. Yields what the job is afterwards: cancelled, or what it had ended as before.
    ///
    /// Cancel safety: dropped, the job may or may not be cancelled.
    ///
    /// # Errors
    /// There is no such job, or the server did not answer.
    pub async fn cancel(&self) -> Result<JobSnapshot<J>, JobRefError> {
        self.change(EventType::Cancelled, |record, now| {
            Ok(record.state.is_open().then(|| Entry {
                previous_state: Some(record.state),
                tries: record.tries,
                error: Some("cancelled".into()),
                ..Self::entry(record, EventType::Cancelled, JobState::Cancelled, now)
            }))
        })
        .await
    }

    /// Start a failed or dead job again, with all its tries and a deadline of its own: a new run.
    /// `reason` is kept with it. Yields what the job is then.
    ///
    /// Cancel safety: dropped, the job may or may not run again.
    ///
    /// # Errors
    /// It is neither failed nor dead, there is no such job, or the server did not answer.
    pub async fn redrive(&self, reason: &str) -> Result<JobSnapshot<J>, JobRefError> {
        let declaration = J::DECLARATION;
        self.change(EventType::Retried, |record, now| {
            self.check(record.state.can_be_redriven(), record.state, "failed and dead jobs are redriven")?;
            let deadline = declaration.deadline.map(|after| end_of(now, after));
            Ok(Some(Entry {
                previous_state: Some(record.state),
                max_tries: Some(declaration.retry.tries.max(1)),
                deadline: deadline.map(|deadline| rfc3339(deadline).into()),
                payload: record.payload.as_deref(),
                context: record.context.clone(),
                lineage: record.lineage.clone(),
                trigger: Some(Trigger::of(TriggerKind::ManualReplay)),
                admin_action: Some(AdminAction { reason: Some(cut(reason)) }),
                ..Self::entry(record, EventType::Retried, JobState::Pending, now)
            }))
        })
        .await
    }

    /// Say that a dead job has been seen and is not to be redriven. Yields what the job is then.
    ///
    /// # Errors
    /// It is not dead, there is no such job, or the server did not answer.
    pub async fn dismiss(&self, reason: &str) -> Result<JobSnapshot<J>, JobRefError> {
        self.change(EventType::Dismissed, |record, now| {
            self.check(record.state == JobState::Dead, record.state, "dead jobs are dismissed")?;
            Ok(Some(Entry {
                previous_state: Some(record.state),
                tries: record.tries,
                admin_action: Some(AdminAction { reason: Some(cut(reason)) }),
                ..Self::entry(record, EventType::Dismissed, JobState::Dismissed, now)
            }))
        })
        .await
    }

    fn check(&self, fits: bool, state: JobState, only: &'static str) -> Result<(), JobRefError> {
        if fits {
            return Ok(());
        }
        Err(JobRefError::WrongState { name: J::DECLARATION.name, id: self.id.clone(), state, only })
    }

    fn entry(record: &JobRecord, event: EventType, state: JobState, now: SystemTime) -> Entry<'_> {
        Entry::bare(&record.id, &record.service, &record.name, event, state, now)
    }

    /// The job, also when the connection is away for a moment.
    async fn found(&self) -> Result<JobRecord, JobRefError> {
        let clock = &self.log.ports.clock;
        let began = clock.monotonic();
        loop {
            match self.record().await {
                Ok(record) => return record.ok_or_else(|| self.not_found()),
                Err(JobRefError::Unavailable { .. })
                    if clock.monotonic().saturating_sub(began) < PATIENCE => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Append what `decide` makes of the job, until nobody was faster.
    async fn change(
        &self,
        event: EventType,
        decide: impl for<'r> Fn(&'r JobRecord, SystemTime) -> Result<Option<Entry<'r>>, JobRefError>,
    ) -> Result<JobSnapshot<J>, JobRefError> {
        let mut record = self.found().await?;
        for _ in 0..ROUNDS {
            let now = self.log.ports.clock.now();
            let Some(entry) = decide(&record, now)? else { return Ok(JobSnapshot::new(record)) };
            let append = Append {
                tree: self.tree.clone(),
                token: event.token(),
                expected: record.last,
                id: self.log.ports.ulid(),
                headers: HeaderMap::new(),
                body: entry.encode().into(),
            };
            match self.log.append(&append, PATIENCE).await {
                Ok(sequence) => {
                    let body = append.body.clone();
                    let mut changed = Some(record);
                    if let Ok(entry) = Entry::decode(&body) {
                        JobRecord::apply(&mut changed, sequence, now, &entry);
                    }
                    return changed.map(JobSnapshot::new).ok_or_else(|| self.not_found());
                }
                Err(AppendError::Moved(tree)) => {
                    let moved = tree.fold().map_err(|unreadable| self.newer(&unreadable))?;
                    record = moved.ok_or_else(|| self.not_found())?;
                }
                Err(
                    AppendError::Refused(reason)
                    | AppendError::Undecided(reason)
                    | AppendError::NotSent(reason),
                ) => {
                    return Err(self.unavailable(reason));
                }
            }
        }
        Err(self.unavailable("its log changes all the time".to_owned()))
    }
}
