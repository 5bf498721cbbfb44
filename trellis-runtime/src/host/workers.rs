//! The workers of a host: one per kind of job that its service works on.
use std::sync::Arc;

use schemars::Schema;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, Job, JobDeclaration, Service, Work};

use crate::ctx::Ctx;
use crate::database::Database;
use crate::events::ProvisionError;
use crate::host::TaskState;
use crate::jobs::upkeep::Upkeep;
use crate::jobs::worker::{Keeper, Queue, Run, Worker, route};
use crate::jobs::{Consumers, WorkerConfig};
use crate::nats::Nats;
use crate::outbox::SqlOutbox;
use crate::wire::{self, Environment};

/// A kind of job that the service works on.
pub(crate) struct Mounted<S: Service> {
    pub(crate) declaration: JobDeclaration,
    pub(crate) config: WorkerConfig,
    update_schema: fn() -> Schema,
    run: Run<S>,
}

impl<S: Service> Mounted<S> {
    pub(crate) fn new<J: Job>(config: WorkerConfig) -> Self
    where
        S: Work<J>,
    {
        let update_schema = trellis::schema::output::<J::Update>;
        Self { declaration: J::DECLARATION, config, update_schema, run: route::<S, J>() }
    }
}

/// Workers whose consumers are there.
pub(crate) struct Workers<S: Service> {
    bound: Vec<(Mounted<S>, Arc<Queue>)>,
    consumers: Consumers,
}

impl<S: Service> Workers<S> {
    /// Make what is missing on the server.
    pub(crate) async fn bind(
        mounted: Vec<Mounted<S>>,
        nats: &Nats,
        environment: &Environment,
    ) -> Result<Self, ProvisionError> {
        let log = nats.log().clone();
        let consumers = Consumers { log: log.clone(), environment: environment.clone() };
        // One per process: what two instances on one host would share tells nobody who it was.
        let instance = log.ports.ulid();
        let mut bound = Vec::new();
        for worker in mounted {
            let job = worker.declaration;
            let ack_wait = consumers.bind(&job, worker.config.ack_wait).await;
            let ack_wait = ack_wait.map_err(|reason| ProvisionError::Server {
                what: format!("set up the worker of job `{}`", job.name),
                reason,
            })?;
            let queue = Arc::new(Queue {
                log: log.clone(),
                declaration: job,
                prefix: environment.job_queue(&job),
                updates: environment.job_updates(&job),
                update_schema: worker.update_schema,
                instance: instance.clone(),
                ack_wait,
                validators: nats.validators().clone(),
            });
            bound.push((worker, queue));
        }
        Ok(Self { bound, consumers })
    }

    /// Start them, each with the upkeep of its queue.
    pub(crate) fn start<C: Contract, D: Database>(
        self,
        (service, nats, outbox): (&Arc<S>, &Nats, &SqlOutbox<D>),
        doubt: &Arc<Notify>,
        (stop, interrupt): (&CancellationToken, &CancellationToken),
        tasks: &mut JoinSet<()>,
    ) -> Vec<TaskState>
    where
        S: Service<Ctx = Ctx<C, D>>,
    {
        let mut states = Vec::new();
        for (mounted, queue) in self.bound {
            let problem = watch::Sender::new(None);
            let declaration = mounted.declaration;
            states.push(TaskState { name: declaration.name.to_owned(), problem: problem.subscribe() });
            let upkeep = Upkeep {
                consumers: self.consumers.clone(),
                declaration,
                instance: queue.instance.clone(),
                retention: mounted.config.retention.clone(),
                every: mounted.config.upkeep_every,
                stop: stop.clone(),
            };
            tasks.spawn(upkeep.run());
            let worker = Arc::new(Worker {
                service: Arc::clone(service),
                nats: nats.clone(),
                outbox: outbox.clone(),
                queue,
                name: Arc::from(wire::worker(&declaration)),
                config: mounted.config,
                run: mounted.run,
                consumers: self.consumers.clone(),
                keeper: Arc::new(Keeper::default()),
                problem,
                doubt: Arc::clone(doubt),
                stop: stop.clone(),
                contract: std::marker::PhantomData,
            });
            tasks.spawn(worker.run(interrupt.clone()));
        }
        states
    }
}
