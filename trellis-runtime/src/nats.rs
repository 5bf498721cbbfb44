//! The connection to NATS as handlers get it: the client, and jobs without a transaction.
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, HeaderMap};
use trellis::{Job, JobId, JobRefs, PayloadError, Submission, Submit};

use crate::jobs::log::{Append, AppendError, BrokerClock, JobLog};
use crate::jobs::submission::{Prepared, Stamp, prepare};
use crate::jobs::{JobRef, SubmissionError, same_payload};
use crate::outbox::OutboxConfig;
use crate::ports::Ports;
use crate::validate::Validators;
use crate::wire::Environment;

/// How long a creation is sent again while its outcome is not known.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to NATS: derefs to the client, and is the direct way to jobs,
/// `ctx.job.orders.send_receipt.create(&ctx.nats, payload)`.
///
/// [`Ctx`](crate::Ctx) has one; a process without a service makes its own with [`Nats::new`].
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Nats(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    log: JobLog,
    environment: Environment,
    validators: Validators,
    max_message_bytes: usize,
}

/// Why a job was not created directly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// It can never be created as it is.
    #[error(transparent)]
    Submission(SubmissionError),
    /// The chosen id belongs to a job with another payload.
    #[error(
        "job `{name}` with id `{id}` exists with another payload: choose another id, or create it with the same payload"
    )]
    DuplicateId {
        /// The declaration.
        name: &'static str,
        /// The id.
        id: JobId,
    },
    /// It was not stored: there is no connection, or no stream that takes it.
    #[error("job `{name}` was not created: {reason}")]
    NotCreated {
        /// The declaration.
        name: &'static str,
        /// Why not.
        reason: String,
    },
    /// Its storage was not confirmed in time: it may exist. Created again with the same id it exists once.
    #[error(
        "job `{name}` with id `{id}` may have been created: {reason}; create it again with `.id(\"{id}\")` to be sure"
    )]
    Undecided {
        /// The declaration.
        name: &'static str,
        /// The id.
        id: JobId,
        /// What was said.
        reason: String,
    },
}

impl From<PayloadError> for CreateError {
    fn from(error: PayloadError) -> Self {
        Self::Submission(error.into())
    }
}

impl Nats {
    /// Jobs through `client`, without an environment.
    pub fn new(client: Client) -> Self {
        Self::with(client, Environment::NONE, Ports::default())
    }

    /// Jobs of `environment` through `client`.
    pub fn with(client: Client, environment: Environment, ports: Ports) -> Self {
        let limit = OutboxConfig::default().max_message_bytes;
        Self::build(client, environment, ports, Validators::default(), limit)
    }

    pub(crate) fn build(
        client: Client,
        environment: Environment,
        ports: Ports,
        validators: Validators,
        max_message_bytes: usize,
    ) -> Self {
        let context = async_nats::jetstream::new(client.clone());
        let stream = environment.job_stream();
        let log = JobLog { client, context, stream, ports, clock: BrokerClock::default() };
        Self(Arc::new(Shared { log, environment, validators, max_message_bytes }))
    }

    pub(crate) fn validators(&self) -> &Validators {
        &self.0.validators
    }

    pub(crate) fn log(&self) -> &JobLog {
        &self.0.log
    }

    async fn create(&self, submission: Submission) -> Result<JobId, CreateError> {
        let name = submission.declaration.name;
        let Shared { log, environment, validators, max_message_bytes } = &*self.0;
        let payload = submission.payload.clone();
        let tree_of = |id: &JobId| environment.job_tree(&submission.declaration, id);
        let stamp = Stamp::new(&submission, &log.ports)?;
        let (tree, append_id) = (tree_of(&stamp.id), stamp.append_id.clone());
        let prepared = prepare(submission, stamp, validators, environment, *max_message_bytes);
        let Prepared { id, headers, body, .. } = prepared.map_err(CreateError::Submission)?;
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            sent.insert(name, value);
        }
        let token = crate::jobs::CREATED;
        let append = Append { tree, token, expected: 0, id: append_id, headers: sent, body: body.into() };
        match log.append(&append, PATIENCE).await {
            Ok(_) => Ok(id),
            Err(AppendError::Moved(tree)) if same_payload(&tree, &payload) => Ok(id),
            Err(AppendError::Moved(_)) => Err(CreateError::DuplicateId { name, id }),
            Err(AppendError::Undecided(reason)) => Err(CreateError::Undecided { name, id, reason }),
            Err(AppendError::NotSent(reason) | AppendError::Refused(reason)) => {
                Err(CreateError::NotCreated { name, reason })
            }
        }
    }
}

impl Deref for Nats {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.0.log.client
    }
}

impl Submit for &Nats {
    type Created<J: Job> = JobRef<J>;
    type Error = CreateError;

    async fn submit<J: Job>(self, submission: Submission) -> Result<JobRef<J>, CreateError> {
        Ok(self.job_ref(self.create(submission).await?))
    }
}

impl JobRefs for Nats {
    type Ref<J: Job> = JobRef<J>;

    fn job_ref<J: Job>(&self, id: JobId) -> JobRef<J> {
        let Shared { log, environment, validators, .. } = &*self.0;
        JobRef::new(log.clone(), environment, validators.clone(), id)
    }
}
