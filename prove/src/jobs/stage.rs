//! The servers and worker processes of a proof.
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use futures_util::StreamExt;
use orders_demo::Error;
use sqlx::PgPool;
use testbed::nats::{Options, Server, find};
use testbed::postgres::Cluster;
use testbed::{Launch, Process};
use trellis_runtime::Nats;

use super::books::Entry;
use super::worker;

/// How long a worker may take to be at work, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// How workers are started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) ack_wait: Duration,
    pub(crate) concurrency: u16,
}

pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) pool: PgPool,
    pub(crate) client: async_nats::Client,
    database: String,
    settings: Settings,
    workers: HashMap<usize, Process>,
    folder: tempfile::TempDir,
    _cluster: Arc<Cluster>,
}

impl Stage {
    pub(crate) async fn set_up(settings: Settings) -> Result<Self, Error> {
        let (server, cluster, database) = tokio::task::spawn_blocking(|| {
            let server = Server::start(&find()?, Options::default())?;
            let cluster = Cluster::shared()?;
            let database = cluster.fresh_database()?;
            Ok::<_, testbed::Error>((server, cluster, database))
        })
        .await??;
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(2).connect(&database).await?;
        trellis_runtime::migrate(&pool).await?;
        sqlx::query("CREATE TABLE effects (number BIGINT NOT NULL)").execute(&pool).await?;
        let client = async_nats::ConnectOptions::new()
            .reconnect_delay_callback(|_| Duration::from_millis(50))
            .connect(server.url())
            .await?;
        let (workers, folder) = (HashMap::new(), tempfile::tempdir()?);
        Ok(Self { server, pool, client, database, settings, workers, folder, _cluster: cluster })
    }

    /// A way to create jobs. It knows what workers make: start one first.
    pub(crate) fn nats(&self) -> Nats {
        Nats::new(self.client.clone())
    }

    fn log(&self, which: usize) -> PathBuf {
        self.folder.path().join(format!("worker-{which}.log"))
    }

    /// Start a worker, and wait until it is at work.
    pub(crate) fn start(&mut self, which: usize) -> Result<(), Error> {
        self.launch(which)?;
        self.wait_until_ready(which)
    }

    /// Start a worker.
    pub(crate) fn launch(&mut self, which: usize) -> Result<(), Error> {
        let Settings { ack_wait, concurrency } = self.settings;
        let process = Launch::new(std::env::current_exe()?, self.log(which))
            .env(worker::NATS, self.server.url())
            .env(worker::DATABASE, &self.database)
            .env(worker::ACK_WAIT, ack_wait.as_millis().to_string())
            .env(worker::CONCURRENCY, concurrency.to_string())
            .start()?;
        self.workers.insert(which, process);
        Ok(())
    }

    pub(crate) fn wait_until_ready(&mut self, which: usize) -> Result<(), Error> {
        Ok(self.worker(which)?.wait_until_printed(worker::READY, PATIENCE)?)
    }

    pub(crate) fn worker(&mut self, which: usize) -> Result<&mut Process, Error> {
        self.workers.get_mut(&which).ok_or_else(|| format!("worker {which} was never started").into())
    }

    /// Start workers again that have ended by themselves.
    pub(crate) fn revive(&mut self) -> Result<usize, Error> {
        let mut ended = Vec::new();
        for (which, worker) in &mut self.workers {
            if worker.exit_status()?.is_some() {
                ended.push(*which);
            }
        }
        for which in &ended {
            self.launch(*which)?;
        }
        Ok(ended.len())
    }

    /// SIGTERM, and wait for the end.
    pub(crate) fn stop(&mut self, which: usize) -> Result<(), Error> {
        Ok(self.worker(which)?.stop(PATIENCE)?)
    }

    /// All entries of the log of jobs, in order.
    pub(crate) async fn entries(&self) -> Result<Vec<Entry>, Error> {
        let context = jetstream::new(self.client.clone());
        let stream = context.get_stream("TRELLIS_JOBS").await?;
        let count = usize::try_from(stream.cached_info().state.messages)?;
        let consumer = stream.create_consumer(jetstream::consumer::pull::OrderedConfig::default()).await?;
        let mut messages = consumer.messages().await?.take(count);
        let mut entries = Vec::with_capacity(count);
        while let Some(message) = tokio::time::timeout(PATIENCE, messages.next()).await? {
            let message = message?;
            let mut tokens = message.subject.rsplit('.');
            let (token, id) = (tokens.next().unwrap_or_default(), tokens.next().unwrap_or_default());
            let body = serde_json::from_slice(&message.payload)?;
            entries.push(Entry { id: id.to_owned(), token: token.to_owned(), body });
        }
        Ok(entries)
    }

    /// Effects by number.
    pub(crate) async fn effects(&self) -> Result<HashMap<u64, usize>, Error> {
        let rows: Vec<(i64, i64)> = sqlx::query_as("SELECT number, count(*) FROM effects GROUP BY number")
            .fetch_all(&self.pool)
            .await?;
        Ok(rows
            .into_iter()
            .map(|(number, count)| (number.cast_unsigned(), usize::try_from(count).unwrap_or(usize::MAX)))
            .collect())
    }

    /// What the server says of the queue's consumer: deliveries without an acknowledgement, and
    /// signals that were not delivered.
    pub(crate) async fn consumer(&self) -> Result<(usize, u64), Error> {
        self.consumer_of("prove-work--work-task").await
    }

    /// The same of another queue's consumer.
    pub(crate) async fn consumer_of(&self, name: &str) -> Result<(usize, u64), Error> {
        let context = jetstream::new(self.client.clone());
        let stream = context.get_stream("TRELLIS_JOBS").await?;
        let info = stream.consumer_info(name).await?;
        Ok((info.num_ack_pending, info.num_pending))
    }

    /// Messages in the log of jobs.
    pub(crate) async fn messages(&self) -> Result<u64, Error> {
        let context = jetstream::new(self.client.clone());
        Ok(context.get_stream("TRELLIS_JOBS").await?.cached_info().state.messages)
    }

    /// Keep the logs, and say where they are.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}
