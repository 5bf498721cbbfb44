//! Working on jobs: what a service implements, and how a try fails.
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::handler::Service;
use crate::job::{ActiveJob, Job};

/// Works on one kind of job. One implementation per job of the service's contract.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not work on the job `{J}`",
    label = "`impl Work<{J}> for {Self}` is missing"
)]
pub trait Work<J: Job>: Service {
    /// One try. `Ok` completes the job with a result. `Err` and a panic bring it back after a delay,
    /// until its tries are used up and it is dead; [`JobError`] tells what else there is.
    ///
    /// A try may be repeated after a crash: change state inside `ctx.once(..)`, which does so once
    /// per run of the job and returns to a later try what the first one stored.
    fn work(
        &self,
        ctx: &Self::Ctx,
        job: ActiveJob<J>,
    ) -> impl Future<Output = Result<J::Result, JobError>> + Send;
}

/// Why a try did not complete its job. Every `std::error::Error` becomes one by `?`.
#[derive(Debug)]
pub struct JobError {
    source: Box<dyn Error + Send + Sync>,
    then: Then,
}

/// What follows a failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Then {
    /// What the declaration says of errors: another try unless it says `retry = "explicit"`.
    Declared,
    /// Another try after the declared delay, while tries are left.
    Retry,
    /// Another try after this delay, while tries are left.
    RetryAfter(Duration),
    /// Another start after this delay that uses no try.
    Snooze(Duration),
    /// The job has failed.
    Fail,
}

impl JobError {
    /// Another try after the declared delay, while tries are left; also where the declaration says
    /// `retry = "explicit"`.
    pub fn retry(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: reason.into(), then: Then::Retry }
    }

    /// Another try after `delay` (a year at most), while tries are left.
    pub fn retry_after(delay: Duration, reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: reason.into(), then: Then::RetryAfter(delay) }
    }

    /// Not now: come back after `delay` (a year at most), without using a try.
    pub fn snooze(delay: Duration) -> Self {
        Self { source: "snoozed".into(), then: Then::Snooze(delay) }
    }

    /// No later try can succeed: the job ends as failed, at once.
    pub fn fail(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: reason.into(), then: Then::Fail }
    }

    /// What follows.
    pub fn then(&self) -> Then {
        self.then
    }
}

// `JobError` is no `std::error::Error` itself, or this would overlap with `From<T> for T`.
impl<X: Error + Send + Sync + 'static> From<X> for JobError {
    fn from(error: X) -> Self {
        Self { source: Box::new(error), then: Then::Declared }
    }
}

/// The reason and its causes, joined by `: `.
impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
