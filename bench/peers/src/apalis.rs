//! apalis on apalis-postgres.

use std::fmt::{self, Display, Formatter};

use apalis::prelude::{
    BackendExt, BoxDynError, Data, TaskSink, WorkerBuilder, WorkerBuilderExt, WorkerContext,
};
use apalis_postgres::{Config, PgPool, PostgresStorage};

use crate::Result;
use crate::clock::now;
use crate::payload::Payload;
use crate::peer::{Handled, POLL, Peer, Workers};

/// What is chosen for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) batch_size: usize,
    pub(crate) concurrency: usize,
}

impl Display for Settings {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { batch_size, concurrency } = self;
        write!(formatter, "batch_size {batch_size}, concurrency {concurrency}, LISTEN/NOTIFY, poll {POLL:?}")
    }
}

pub(crate) struct Apalis {
    storage: PostgresStorage<Payload>,
    concurrency: usize,
    starts: u32,
}

impl Peer for Apalis {
    type Settings = Settings;
    const CRATES: &'static [&'static str] = &["apalis", "apalis-postgres"];
    const LEFT: &'static str = "SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'";

    async fn prepare(pool: &PgPool, settings: Settings) -> Result<Self> {
        PostgresStorage::setup(pool).await?;
        let config = Config::default().queue("bench").batch_size(settings.batch_size);
        Ok(Self {
            storage: PostgresStorage::new(pool).with_config(config),
            concurrency: settings.concurrency,
            starts: 0,
        })
    }

    async fn enqueue(&mut self) -> Result<()> {
        Ok(self.storage.push(Payload::new()).await?)
    }

    async fn enqueue_bulk(&mut self, jobs: usize) -> Result<()> {
        Ok(self.storage.push_bulk(vec![Payload::new(); jobs]).await?)
    }

    async fn workers(&mut self, handled: Handled) -> Result<Workers> {
        self.starts += 1;
        let context = WorkerContext::new(&format!("bench-{}", self.starts));
        let worker = WorkerBuilder::new(&context)
            .backend(self.storage.clone().with_pubsub().poll_with_interval(POLL))
            .data(handled)
            .concurrency(self.concurrency)
            .build(handle);
        Ok(Workers {
            run: Box::pin(async move { Ok(worker.run().await?) }),
            stop: Box::new(move || Ok(context.stop()?)),
        })
    }
}

async fn handle(_: Payload, handled: Data<Handled>) -> std::result::Result<(), BoxDynError> {
    Ok(handled.send(now())?)
}
