//! A reference to one job: ask, wait, cancel, listen, start again.
mod change;
mod updates;
mod wait;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use trellis::{Job, JobId};

pub use updates::{Update, Updates};

use crate::jobs::log::{JobLog, ReadError};
use crate::jobs::record::JobRecord;
use crate::jobs::state::JobState;
use crate::validate::Validators;
use crate::wire::Environment;

/// A reference to one job of `J`. It outlives the job and the connection it was made on, and costs
/// nothing until it is used.
pub struct JobRef<J> {
    log: JobLog,
    id: JobId,
    tree: String,
    updates: String,
    validators: Validators,
    job: PhantomData<fn() -> J>,
}

/// What a job was when it was read: its [`JobRecord`], with types.
pub struct JobSnapshot<J> {
    record: JobRecord,
    job: PhantomData<fn() -> J>,
}

/// Why something could not be done with a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobRefError {
    /// There is no such job: it was never created, or is no longer kept.
    #[error("there is no job `{name}` with id `{id}`: it was never created, or it is no longer kept")]
    NotFound {
        /// The declaration.
        name: &'static str,
        /// The id.
        id: JobId,
    },
    /// It did not end in time.
    #[error("job `{name}` with id `{id}` did not end in time, it is {}", said(*state))]
    TimedOut {
        /// The declaration.
        name: &'static str,
        /// The id.
        id: JobId,
        /// What it was then; `None` when it did not exist yet.
        state: Option<JobState>,
    },
    /// It is in a state that does not allow it.
    #[error("job `{name}` with id `{id}` is {state}: only {only}")]
    WrongState {
        /// The declaration.
        name: &'static str,
        /// The id.
        id: JobId,
        /// Its state.
        state: JobState,
        /// Which jobs it can be done with.
        only: &'static str,
    },
    /// The server did not answer, or not in time. What was to be changed may have been.
    #[error("the server did not answer for job `{name}` with id `{id}`: {reason}")]
    Unavailable {
        /// The declaration.
        name: &'static str,
        /// The id.
        id: JobId,
        /// What was said.
        reason: String,
    },
    /// A later version of this library has written what the log holds.
    #[error("the log of job `{name}` with id `{id}` is of format {v}, which this version cannot read")]
    Newer {
        /// The declaration.
        name: &'static str,
        /// The id.
        id: JobId,
        /// The format.
        v: u32,
    },
}

fn said(state: Option<JobState>) -> String {
    state.map_or_else(|| "not there yet".to_owned(), |state| state.to_string())
}

impl<J: Job> JobRef<J> {
    pub(crate) fn new(log: JobLog, environment: &Environment, validators: Validators, id: JobId) -> Self {
        let declaration = J::DECLARATION;
        Self {
            log,
            tree: environment.job_tree(&declaration, &id),
            updates: format!("{}.{id}", environment.job_updates(&declaration)),
            id,
            validators,
            job: PhantomData,
        }
    }

    /// The job's identity.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// What the job is now. `None` when there is none, or none any more.
    ///
    /// # Errors
    /// The server did not answer, or a later version wrote the log.
    pub async fn get(&self) -> Result<Option<JobSnapshot<J>>, JobRefError> {
        Ok(self.record().await?.map(JobSnapshot::new))
    }

    async fn record(&self) -> Result<Option<JobRecord>, JobRefError> {
        let tree = self.log.tree(&self.tree).await.map_err(|error| self.unread(&error))?;
        match tree.map(|tree| tree.fold()) {
            Some(folded) => folded.map_err(|unreadable| self.newer(&unreadable)),
            None => Ok(None),
        }
    }

    fn unread(&self, error: &ReadError) -> JobRefError {
        self.unavailable(error.to_string())
    }

    fn unavailable(&self, reason: String) -> JobRefError {
        JobRefError::Unavailable { name: J::DECLARATION.name, id: self.id.clone(), reason }
    }

    fn newer(&self, unreadable: &crate::jobs::event::Unreadable) -> JobRefError {
        let v = match unreadable {
            crate::jobs::event::Unreadable::Newer(v) => *v,
            crate::jobs::event::Unreadable::Broken(_) => 0,
        };
        JobRefError::Newer { name: J::DECLARATION.name, id: self.id.clone(), v }
    }

    fn not_found(&self) -> JobRefError {
        JobRefError::NotFound { name: J::DECLARATION.name, id: self.id.clone() }
    }
}

impl<J: Job> JobSnapshot<J> {
    pub(crate) fn new(record: JobRecord) -> Self {
        Self { record, job: PhantomData }
    }

    /// What it was created with.
    ///
    /// # Errors
    /// It cannot be read as this version's payload.
    pub fn payload(&self) -> Result<J::Payload, serde_json::Error> {
        let payload = self.record.payload.as_deref().map_or("null", |payload| payload.get());
        serde_json::from_str(payload)
    }

    /// What it ended with. `None` unless it is completed.
    ///
    /// # Errors
    /// It cannot be read as this version's result.
    pub fn result(&self) -> Result<Option<J::Result>, serde_json::Error> {
        if self.record.state != JobState::Completed {
            return Ok(None);
        }
        let result = self.record.result.as_deref().map_or("null", |result| result.get());
        serde_json::from_str(result).map(Some)
    }

    /// Everything that is known of it, without types.
    pub fn into_record(self) -> JobRecord {
        self.record
    }
}

impl<J> Deref for JobSnapshot<J> {
    type Target = JobRecord;
    fn deref(&self) -> &JobRecord {
        &self.record
    }
}

// By hand: derives would bound `J`.
impl<J> Clone for JobRef<J> {
    fn clone(&self) -> Self {
        let Self { log, id, tree, updates, validators, job } = self;
        let (log, id, validators) = (log.clone(), id.clone(), validators.clone());
        Self { log, id, tree: tree.clone(), updates: updates.clone(), validators, job: *job }
    }
}

impl<J: Job> fmt::Debug for JobRef<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobRef")
            .field("job", &J::DECLARATION.name)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl<J> Clone for JobSnapshot<J> {
    fn clone(&self) -> Self {
        Self { record: self.record.clone(), job: self.job }
    }
}

impl<J> fmt::Debug for JobSnapshot<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobSnapshot").field(&self.record).finish()
    }
}
