//! Jobs: what a declaration says, and the handle a job is created through.
mod active;
mod id;
mod submit;
mod work;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

pub use active::{
    ActiveJob, Attempt, Boxed, Cancellation, JobFacts, LogLevel, LogLine, Progress, UpdateError, WaitKind,
    WaitTarget,
};
pub use id::{InvalidJobId, JobId};
pub use submit::{Create, JobRefs, Submission, Submit};
pub use work::{JobError, Then, Work};

use crate::message::Payload;

/// A declared job. Implemented by `#[job(..)]`, never by hand.
///
/// The type that implements it is the job's *marker*; it is its own payload unless the declaration
/// says `payload = path`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a declared job",
    label = "expected a type under `#[job(\"..\")]` in a `#[trellis::contract]` module"
)]
pub trait Job: Send + Sync + 'static {
    /// What the job is created with.
    type Payload: Payload;
    /// What it ends with. `()` unless the declaration says `result = path`.
    type Result: Payload;
    /// What it tells on the way. [`NoUpdate`] unless the declaration says `update = path`.
    type Update: Payload;
    /// What the contract says of this job.
    const DECLARATION: JobDeclaration;
}

/// The update type of jobs that declare none. It has no value, so none can be sent.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub enum NoUpdate {}

impl schemars::JsonSchema for NoUpdate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NoUpdate".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        false.into()
    }
    fn inline_schema() -> bool {
        true
    }
}

/// What a contract says of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobDeclaration {
    /// Identity of the owning contract, e.g. `acme.orders@v1`.
    pub contract: &'static str,
    /// Logical name, e.g. `orders.send_receipt`.
    pub name: &'static str,
    /// When a try follows a failed one.
    pub retry: Retry,
    /// How long after its submission the job must have ended.
    pub deadline: Option<Duration>,
}

impl JobDeclaration {
    /// A declaration with the default retries and no deadline.
    pub const fn new(contract: &'static str, name: &'static str) -> Self {
        Self { contract, name, retry: Retry::new(), deadline: None }
    }

    /// The same with other retries.
    #[must_use]
    pub const fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// The same with a deadline.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

/// When a try follows a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// Most tries of a run, the first included. Default 5.
    pub tries: u32,
    /// The longest delay before the second try. Default 5 s; each further one is four times as long.
    pub first: Duration,
    /// The longest delay of all. Default 10 min.
    pub longest: Duration,
    /// Whether only [`JobError::retry`] and [`JobError::retry_after`] retry, and every other error
    /// fails the job. Default no: every error retries.
    pub explicit: bool,
}

impl Retry {
    /// The default.
    pub const fn new() -> Self {
        Self { tries: 5, first: Duration::from_secs(5), longest: Duration::from_secs(600), explicit: false }
    }

    /// The same with another number of tries.
    #[must_use]
    pub const fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// The same with other delays.
    #[must_use]
    pub const fn delays(mut self, first: Duration, longest: Duration) -> Self {
        self.first = first;
        self.longest = longest;
        self
    }

    /// The same where only an explicit retry retries.
    #[must_use]
    pub const fn explicit(mut self) -> Self {
        self.explicit = true;
        self
    }

    /// The longest delay after the `tries`-th try of a run.
    pub fn delay_after(&self, tries: u32) -> Duration {
        let factor = 4_u32.saturating_pow(tries.saturating_sub(1).min(15));
        self.first.saturating_mul(factor).min(self.longest)
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a job is created from: a zero-sized, `Copy` field of the facade.
pub struct JobHandle<J>(PhantomData<fn() -> J>);

// No bound: what is wrong with a job is said at its declaration, once.
impl<J> JobHandle<J> {
    /// The handle of `J`.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<J: Job> JobHandle<J> {
    /// Create a job with `payload`, through `way`: the open transaction `tx` (the job exists if, and
    /// only if, that transaction commits; yields its [`JobId`]), or `&ctx.nats` (the job is stored
    /// when this is ready; yields a reference to it).
    ///
    /// Await what is returned. Where `tx` is used again afterwards, pass `&mut *tx`.
    ///
    /// # Errors
    /// The payload cannot be encoded, violates its schema or is too large, the id was used for other
    /// content, or it could not be stored.
    pub fn create<'w, W: Submit + 'w>(self, way: W, payload: J::Payload) -> Create<'w, W, J> {
        Create::new(way, Submission::new::<J>(&payload))
    }

    /// A reference to the job `id`, which may or may not exist.
    pub fn by_id<N: JobRefs>(self, nats: &N, id: JobId) -> N::Ref<J> {
        nats.job_ref(id)
    }
}

// By hand: a derive would demand `J: Clone`.
impl<J> Clone for JobHandle<J> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<J> Copy for JobHandle<J> {}
impl<J> Default for JobHandle<J> {
    fn default() -> Self {
        Self(PhantomData)
    }
}
impl<J: Job> fmt::Debug for JobHandle<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobHandle({})", J::DECLARATION.name)
    }
}

#[cfg(test)]
mod tests {
    use super::Retry;

    #[test]
    fn delays_quadruple_to_their_limit() {
        let seconds: Vec<u64> = (1..=5).map(|tries| Retry::new().delay_after(tries).as_secs()).collect();
        assert_eq!(seconds, [5, 20, 80, 320, 600]);
        assert_eq!(Retry::new().delay_after(0).as_secs(), 5);
        assert_eq!(Retry::new().delay_after(u32::MAX).as_secs(), 600);
    }
}
