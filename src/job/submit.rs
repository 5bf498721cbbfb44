//! A job on its way: what is submitted, and the port through which it is.
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use schemars::Schema;

use crate::job::{Job, JobDeclaration, JobId};
use crate::message::PayloadError;
use crate::outbox::Outbox;
use crate::schema;

/// A job about to be created: encoded, not yet stamped with time and subject.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Submission {
    /// What the contract says of it.
    pub declaration: JobDeclaration,
    /// The payload's JSON Schema, made on demand.
    pub schema: fn() -> Schema,
    /// JSON payload.
    pub payload: Vec<u8>,
    /// The chosen identity, if any.
    pub id: Option<JobId>,
}

impl Submission {
    /// Encode a job's payload.
    ///
    /// # Errors
    /// The payload cannot be encoded.
    pub fn new<J: Job>(payload: &J::Payload) -> Result<Self, PayloadError> {
        let declaration = J::DECLARATION;
        let payload = serde_json::to_vec(payload)
            .map_err(|source| PayloadError::Encode { name: declaration.name, source })?;
        Ok(Self { declaration, schema: schema::output::<J::Payload>, payload, id: None })
    }
}

/// The way a job is created: an open transaction, or a connection.
///
/// `trellis-runtime` implements it for `&ctx.nats`; every [`Outbox`] is a way by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no way to create a job",
    label = "expected the `tx` of `ctx.transaction(async |tx| ..)`, or `&ctx.nats`",
    note = "through `tx` the job is created if, and only if, your transaction commits; through `&ctx.nats` at once"
)]
pub trait Submit: Send {
    /// What the caller is handed.
    type Created<J: Job>: Send;
    /// Why a job could not be created.
    type Error: From<PayloadError> + Send;

    /// Create the job.
    fn submit<J: Job>(
        self,
        submission: Submission,
    ) -> impl Future<Output = Result<Self::Created<J>, Self::Error>> + Send;
}

impl<O: Outbox> Submit for &mut O {
    type Created<J: Job> = JobId;
    type Error = O::Error;

    async fn submit<J: Job>(self, submission: Submission) -> Result<JobId, O::Error> {
        Outbox::submit(self, submission).await
    }
}

/// Where references to jobs come from.
pub trait JobRefs {
    /// A reference to one job of `J`.
    type Ref<J: Job>;

    /// A reference to the job `id`, which may or may not exist.
    fn job_ref<J: Job>(&self, id: JobId) -> Self::Ref<J>;
}

/// A job about to be created. Await it.
#[must_use = "no job is created until this is awaited"]
pub struct Create<'w, W, J> {
    way: W,
    submission: Result<Submission, PayloadError>,
    lives: PhantomData<&'w ()>,
    job: PhantomData<fn() -> J>,
}

impl<'w, W, J> Create<'w, W, J> {
    pub(crate) fn new(way: W, submission: Result<Submission, PayloadError>) -> Self
    where
        W: 'w,
    {
        Self { way, submission, lives: PhantomData, job: PhantomData }
    }

    /// Choose the job's identity, so that a repeated command creates one job: the *idempotency key*.
    ///
    /// The same id with the same payload yields the job that is there, in whatever state it is, as
    /// long as it is kept; with another payload it is an error.
    pub fn id(self, id: impl Into<String>) -> Self {
        let submission = self.submission.and_then(|mut submission| {
            let name = submission.declaration.name;
            submission.id = Some(JobId::new(id).map_err(|source| PayloadError::JobId { name, source })?);
            Ok(submission)
        });
        Self { submission, ..self }
    }
}

impl<W, J> fmt::Debug for Create<'_, W, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Create").field("submission", &self.submission).finish_non_exhaustive()
    }
}

impl<'w, W, J> IntoFuture for Create<'w, W, J>
where
    W: Submit + 'w,
    J: Job,
{
    type Output = Result<W::Created<J>, W::Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'w>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.way.submit::<J>(self.submission?).await })
    }
}
