//! A job as its handler gets it, and what the handler can tell on the way.
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use crate::job::{Job, JobId};

/// A job at work: one try of it.
#[non_exhaustive]
pub struct ActiveJob<J: Job> {
    /// What it was created with.
    pub payload: J::Payload,
    /// Its identity and counts.
    pub facts: JobFacts,
    attempt: Arc<dyn Attempt>,
}

/// What is known of a job when a try begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobFacts {
    /// Its identity.
    pub id: JobId,
    /// Its run: the place in the log of what opened it. A redrive opens another.
    pub run: u64,
    /// Tries of this run, this one included: 1 for the first.
    pub tries: u32,
    /// Most tries of a run.
    pub max_tries: u32,
    /// How often this signal was delivered, this time included.
    pub deliveries: u64,
    /// When it was submitted, by the submitter's clock.
    pub created_at: SystemTime,
    /// When it must have ended.
    pub deadline: Option<SystemTime>,
}

impl JobFacts {
    /// The facts of a first try, as the engine or a test starts from.
    pub fn new(id: JobId, created_at: SystemTime) -> Self {
        Self { id, run: 1, tries: 1, max_tries: 5, deliveries: 1, created_at, deadline: None }
    }
}

/// Why a try should end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cancellation {
    /// The job's deadline has passed.
    Deadline,
    /// The job was cancelled.
    Job,
    /// The service stops; another instance starts this try again.
    Shutdown,
    /// Another instance may have the job by now.
    LeaseLost,
}

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Progress {
    /// What it is at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Anything worth saying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How much is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<u64>,
    /// How much there is to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

impl Progress {
    /// So much is done of so much.
    pub fn of(current: u64, total: u64) -> Self {
        Self { current: Some(current), total: Some(total), ..Self::default() }
    }

    /// The same with the step it is at.
    #[must_use]
    pub fn step(mut self, step: impl Into<String>) -> Self {
        self.step = Some(step.into());
        self
    }

    /// The same with a message.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

/// How much a line of a job's log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For the record.
    Info,
    /// Somebody may want to look.
    Warn,
    /// Something went wrong.
    Error,
}

/// One line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// How much it matters.
    pub level: LogLevel,
    /// What happened.
    pub message: String,
}

/// What a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct WaitTarget {
    /// What kind of thing it is.
    pub kind: WaitKind,
    /// Who owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Its declaration, or the name of an external system.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The kinds of things a job can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WaitKind {
    /// Another job.
    Job,
    /// An operation.
    Operation,
    /// Something outside.
    External,
}

impl WaitTarget {
    /// Something outside, such as `payment gateway`.
    pub fn external(name: impl Into<String>) -> Self {
        Self { kind: WaitKind::External, service: None, name: Some(name.into()), id: None }
    }

    /// The job `id` of the declaration `name` of `service`.
    pub fn job(service: impl Into<String>, name: impl Into<String>, id: &JobId) -> Self {
        let (service, name, id) = (Some(service.into()), Some(name.into()), Some(id.to_string()));
        Self { kind: WaitKind::Job, service, name, id }
    }
}

/// Why an update was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// `Serialize` failed.
    #[error("cannot encode an update of job `{name}`")]
    Encode {
        /// The job's declaration.
        name: &'static str,
        /// What serde said.
        #[source]
        source: serde_json::Error,
    },
    /// It violates its schema.
    #[error("an update of job `{name}` is invalid: {problem}")]
    Invalid {
        /// The job's declaration.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The try has ended, or there is no connection.
    #[error("an update of job `{name}` was not sent: {reason}")]
    NotSent {
        /// The job's declaration.
        name: &'static str,
        /// Why not.
        reason: String,
    },
}

/// A boxed future, for ports that are trait objects.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The port from a handler to the engine that runs its try.
pub trait Attempt: Send + Sync {
    /// How far the job is. Kept with the job within a second; the latest wins.
    fn progress(&self, progress: Progress);
    /// Add to the job's log.
    fn log(&self, line: LogLine);
    /// Send an encoded update to whoever listens.
    fn update(&self, update: Vec<u8>) -> Boxed<'_, Result<(), UpdateError>>;
    /// Why this try should end, if it should: the reason that counts most.
    fn cancellation(&self) -> Option<Cancellation>;
    /// Ready when this try should end.
    fn cancelled(&self) -> Boxed<'_, Cancellation>;
    /// Note that the job waits; yields what names this wait.
    fn waiting(&self, target: WaitTarget) -> String;
    /// Note that it waits no longer.
    fn resumed(&self, wait: String);
}

impl<J: Job> ActiveJob<J> {
    /// A try as the engine hands it to a handler.
    pub fn new(payload: J::Payload, facts: JobFacts, attempt: Arc<dyn Attempt>) -> Self {
        Self { payload, facts, attempt }
    }

    /// Its identity.
    pub fn id(&self) -> &JobId {
        &self.facts.id
    }

    /// Tell how far it is. Returns at once: it is stored with the job soon, the latest at least
    /// before the job ends.
    pub fn progress(&self, progress: Progress) {
        self.attempt.progress(progress);
    }

    /// Add a line to the job's log. Returns at once, like [`progress`](ActiveJob::progress). A
    /// thousand lines or 128 KiB wait at most; further ones are counted and left out. A line is kept
    /// to its 2,000th character.
    pub fn log(&self, level: LogLevel, message: impl Into<String>) {
        self.attempt.log(LogLine { level, message: message.into() });
    }

    /// Send an update to whoever listens at this moment. It is not stored.
    ///
    /// # Errors
    /// It cannot be encoded, violates its schema, the try has ended, or there is no connection.
    pub async fn update(&self, update: &J::Update) -> Result<(), UpdateError> {
        let name = J::DECLARATION.name;
        let update = serde_json::to_vec(update).map_err(|source| UpdateError::Encode { name, source })?;
        self.attempt.update(update).await
    }

    /// Why this try should end, if it should.
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.attempt.cancellation()
    }

    /// Ready when this try should end: clean up and return. What is returned then does not count,
    /// except after [`Cancellation::Shutdown`], when a job that ends within the stop's time-out has ended.
    pub async fn cancelled(&self) -> Cancellation {
        self.attempt.cancelled().await
    }

    /// Await `work`, and let the job say meanwhile what it waits for.
    pub async fn wait_for<T>(&self, target: WaitTarget, work: impl Future<Output = T>) -> T {
        struct Resume<'a>(&'a dyn Attempt, Option<String>);
        impl Drop for Resume<'_> {
            fn drop(&mut self) {
                if let Some(wait) = self.1.take() {
                    self.0.resumed(wait);
                }
            }
        }
        let wait = self.attempt.waiting(target);
        let _resume = Resume(&*self.attempt, Some(wait));
        work.await
    }
}

impl<J: Job> fmt::Debug for ActiveJob<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveJob")
            .field("job", &J::DECLARATION.name)
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}
