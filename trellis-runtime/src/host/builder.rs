//! Sets up a host and starts it.
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, Job, Manifest, Mount, Service, Work};

use crate::broker::{Broker, NatsBroker};
use crate::ctx::Ctx;
use crate::database::Database;
use crate::events::{Binding, Group, GroupConfig, GroupRunner, Provision, Routes, StreamConfig};
use crate::host::error::StartError;
use crate::host::supervise::Supervisor;
use crate::host::workers::{Mounted, Workers};
use crate::host::{Host, TaskState, server};
use crate::jobs::WorkerConfig;
use crate::nats::Nats;
use crate::outbox::{Dispatcher, SqlOutbox};
use crate::wire;

type WrapBroker = Box<dyn FnOnce(NatsBroker) -> Arc<dyn Broker> + Send>;

/// Sets up a [`Host`]. Nothing happens before [`start`](HostBuilder::start).
#[must_use = "nothing runs before `start`"]
pub struct HostBuilder<S: Service, C: Contract, D: Database> {
    service: S,
    outbox: SqlOutbox<D>,
    connection: Option<Connection>,
    groups: Vec<Group<S>>,
    workers: Vec<Mounted<S>>,
    streams: StreamConfig,
    wrap_broker: WrapBroker,
    stop_timeout: Duration,
    drain_timeout: Duration,
    contract: std::marker::PhantomData<fn() -> C>,
}

enum Connection {
    Ready(Client),
    Open(Box<ConnectOptions>, String),
}

impl Connection {
    async fn open(self) -> Result<Client, StartError> {
        match self {
            Self::Ready(client) => Ok(client),
            Self::Open(options, servers) => {
                let servers: Vec<&str> = servers.split(',').map(str::trim).collect();
                options.connect(servers).await.map_err(StartError::Connect)
            }
        }
    }
}

impl<S, C, D> HostBuilder<S, C, D>
where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    pub(crate) fn new(service: S, outbox: SqlOutbox<D>) -> Self {
        Self {
            service,
            outbox,
            connection: None,
            groups: Vec::new(),
            workers: Vec::new(),
            streams: StreamConfig::default(),
            wrap_broker: Box::new(|broker| Arc::new(broker)),
            stop_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            contract: std::marker::PhantomData,
        }
    }

    /// Use a client that is connected already.
    pub fn client(mut self, client: Client) -> Self {
        self.connection = Some(Connection::Ready(client));
        self
    }

    /// Connect to `servers`: one address, or several with commas between.
    pub fn connect(self, servers: impl Into<String>) -> Self {
        let options = ConnectOptions::new().name(C::ID);
        self.connect_with(options, servers)
    }

    /// Connect with TLS, credentials and whatever else the options hold.
    pub fn connect_with(mut self, options: ConnectOptions, servers: impl Into<String>) -> Self {
        self.connection = Some(Connection::Open(Box::new(options), servers.into()));
        self
    }

    /// Consume the events of group `G`. Without a handler for each of them it does not compile.
    pub fn mount<G: Mount<S>>(self) -> Self {
        self.mount_with::<G>(GroupConfig::default())
    }

    /// The same with other settings.
    pub fn mount_with<G: Mount<S>>(mut self, config: GroupConfig) -> Self {
        let mut routes = Routes::new(self.outbox.environment().clone());
        G::mount(&mut routes);
        self.groups.push(Group {
            declaration: G::DECLARATION,
            members: G::MEMBERS,
            config,
            routes: routes.routes,
        });
        self
    }

    /// Work on the jobs `J`. Without an `impl Work<J>` it does not compile.
    pub fn work<J: Job>(self) -> Self
    where
        S: Work<J>,
    {
        self.work_with::<J>(WorkerConfig::default())
    }

    /// The same with other settings.
    pub fn work_with<J: Job>(mut self, config: WorkerConfig) -> Self
    where
        S: Work<J>,
    {
        self.workers.push(Mounted::new::<J>(config));
        self
    }

    /// How streams are made where they are missing.
    pub fn streams(mut self, streams: StreamConfig) -> Self {
        self.streams = streams;
        self
    }

    /// Put something between the dispatcher and the broker, such as injected faults.
    pub fn broker(mut self, wrap: impl FnOnce(NatsBroker) -> Arc<dyn Broker> + Send + 'static) -> Self {
        self.wrap_broker = Box::new(wrap);
        self
    }

    /// How long a stop waits for handlers. Default 30 s.
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// How long a stop goes on sending rows. Default 10 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Check the server and the database, make the streams and consumers that are missing, and
    /// start the dispatcher and the groups.
    ///
    /// # Errors
    /// See [`StartError`]; nothing runs then.
    pub async fn start(self) -> Result<Host<C, D>, StartError> {
        self.check()?;
        self.outbox.verify().await?;
        let config = self.outbox.config().clone();
        let client = self.connection.ok_or(StartError::NoConnection)?.open().await?;
        let context = async_nats::jetstream::new(client.clone());
        server::check(&client, &context, config.max_message_bytes).await?;
        let environment = self.outbox.environment().clone();
        let provision = Arc::new(Provision {
            context: context.clone(),
            environment: environment.clone(),
            config: self.streams,
            events: C::events(),
            jobs: !C::jobs().is_empty(),
            jitter: Arc::clone(&self.outbox.0.ports.jitter),
        });
        let limit = provision.streams().await?;
        if let Some(limit) = limit.filter(|limit| *limit < config.max_message_bytes) {
            return Err(StartError::MessageLimit { limit, accepted: config.max_message_bytes });
        }
        let mut positions = Vec::new();
        for group in &self.groups {
            let made = provision.consumer(&group.declaration, group.members, &group.config, None);
            positions.push(made.await?.1);
        }
        tell_of_durability(&provision.config);

        let nats = Nats::build(
            client.clone(),
            environment.clone(),
            self.outbox.0.ports.clone(),
            self.outbox.0.validators.clone(),
            config.max_message_bytes,
        );
        let workers = Workers::bind(self.workers, &nats, &environment).await?;

        let broker = NatsBroker::new(client.clone(), environment.event_stream(), config.ack_timeout)
            .jobs(environment.job_stream());
        let dispatcher = Arc::new(Dispatcher::start(&self.outbox, (self.wrap_broker)(broker)));
        let (stop, interrupt) = (CancellationToken::new(), CancellationToken::new());
        let service = Arc::new(self.service);
        let (mut tasks, mut groups) = (JoinSet::new(), Vec::new());
        let doubt = Arc::new(Notify::new());
        for (group, position) in self.groups.into_iter().zip(positions) {
            let problem = watch::Sender::new(None);
            groups.push(TaskState { name: group.declaration.name.to_owned(), problem: problem.subscribe() });
            let runner = Arc::new(GroupRunner {
                service: Arc::clone(&service),
                client: client.clone(),
                nats: nats.clone(),
                context: context.clone(),
                outbox: self.outbox.clone(),
                provision: Arc::clone(&provision),
                stream: environment.event_stream(),
                consumer: Arc::from(wire::consumer(&group.declaration)),
                declaration: group.declaration,
                members: group.members,
                config: group.config,
                routes: group.routes,
                problem,
                doubt: Arc::clone(&doubt),
                contract: std::marker::PhantomData,
            });
            tasks.spawn(runner.run(Binding::at(position), stop.clone(), interrupt.clone()));
        }
        let workers =
            workers.start::<C, D>((&service, &nats, &self.outbox), &doubt, (&stop, &interrupt), &mut tasks);
        let state = watch::Sender::new(None);
        let provisioned = state.subscribe();
        let mut supervisor = JoinSet::new();
        supervisor.spawn(
            Supervisor {
                client: client.clone(),
                provision,
                dispatcher: Arc::clone(&dispatcher),
                problems: groups.iter().chain(&workers).map(|task| task.problem.clone()).collect(),
                doubt,
                accepted: config.max_message_bytes,
                state,
                stop: stop.clone(),
            }
            .run(),
        );
        tracing::info!(contract = C::ID, groups = groups.len(), workers = workers.len(), "service started");
        Ok(Host {
            client,
            nats,
            outbox: self.outbox,
            dispatcher,
            groups,
            workers,
            tasks: Mutex::new(tasks),
            supervisor: Mutex::new(supervisor),
            stop,
            interrupt,
            stop_timeout: self.stop_timeout,
            drain_timeout: self.drain_timeout,
            provisioned,
            contract: std::marker::PhantomData,
        })
    }

    /// What can be refused before anybody is asked.
    fn check(&self) -> Result<(), StartError> {
        for group in &self.groups {
            let name = wire::consumer(&group.declaration);
            if let Some(problem) = group.config.problem() {
                return Err(StartError::Config(format!("group `{}`: {problem}", group.declaration.name)));
            }
            if self.groups.iter().filter(|other| wire::consumer(&other.declaration) == name).count() > 1 {
                return Err(StartError::Config(format!(
                    "group `{}` is mounted twice",
                    group.declaration.name
                )));
            }
        }
        self.check_workers()?;
        check_fields(&C::manifest())
    }
}

impl<S: Service, C: Contract, D: Database> HostBuilder<S, C, D> {
    fn check_workers(&self) -> Result<(), StartError> {
        let job_horizon = self.outbox.config().job_horizon;
        for worker in &self.workers {
            let job = worker.declaration;
            let wrong = |problem: &str| Err(StartError::Config(format!("worker `{}`: {problem}", job.name)));
            if let Some(problem) = worker.config.problem() {
                return wrong(problem);
            }
            if wire::owner(job.contract) != wire::owner(C::ID) {
                return wrong(&format!(
                    "the job belongs to `{}`, this is a host of `{}`",
                    job.contract,
                    C::ID
                ));
            }
            if self.workers.iter().filter(|other| other.declaration.name == job.name).count() > 1 {
                return wrong("it is mounted twice");
            }
            if worker.config.retention.at_least < job_horizon {
                return wrong(&format!(
                    "`retention.at_least` is {:?}, shorter than the outbox's `job_horizon` of {job_horizon:?}: an ended job must be kept for as long as its submission may be sent again",
                    worker.config.retention.at_least
                ));
            }
        }
        Ok(())
    }
}

fn tell_of_durability(streams: &StreamConfig) {
    if streams.replicas == 1 {
        tracing::info!(
            "one server keeps the messages: unless it runs with `sync_interval: always`, a power cut can lose what it acknowledged in the last two minutes; three replicas close that"
        );
    }
}

/// Fields that a declaration names must be in the payload's schema: the macro cannot see payloads
/// that are declared elsewhere.
fn check_fields(manifest: &Manifest) -> Result<(), StartError> {
    for (event, spec) in &manifest.events {
        let Some(properties) = properties(&spec.payload, manifest) else { continue };
        for field in spec.params.iter().chain(&spec.order_by) {
            if !properties.contains_key(*field) {
                let known = properties.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(StartError::UnknownField { event, field, known });
            }
        }
    }
    Ok(())
}

/// The properties of an object schema. `None` where the schema is not that simple.
fn properties<'a>(
    schema: &'a serde_json::Value,
    manifest: &'a Manifest,
) -> Option<&'a serde_json::Map<String, serde_json::Value>> {
    let named = schema.get("$ref").and_then(|reference| reference.as_str()?.strip_prefix("#/$defs/"));
    let schema = named.map_or(Some(schema), |name| manifest.defs.get(name))?;
    schema.get("properties")?.as_object()
}

impl<S: Service, C: Contract, D: Database> std::fmt::Debug for HostBuilder<S, C, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder")
            .field("contract", &C::ID)
            .field("groups", &self.groups.len())
            .finish_non_exhaustive()
    }
}
