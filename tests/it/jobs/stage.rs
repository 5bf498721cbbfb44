//! A server, a database and a host that works on sums: what most tests of jobs begin with.
use std::sync::Arc;

use sqlx::Sqlite;
use tokio::sync::Semaphore;
use trellis::JobId;
use trellis_runtime::{Host, JobRef, JobSnapshot, WorkerConfig};

use crate::support::Bed;
use crate::support::hand::{Hand, SOON, Sum, WorkCtx, host, number, quick, work};
use crate::support::nats::Nats;

pub struct Stage {
    pub nats: Nats,
    pub bed: Bed<Sqlite>,
    pub host: Host<work::Contract, Sqlite>,
    pub ctx: WorkCtx<Sqlite>,
}

impl Stage {
    /// A host that works on sums with `hand`, quickly.
    pub async fn new(hand: Hand<Sqlite>) -> Self {
        Self::with(hand, quick()).await
    }

    pub async fn with(hand: Hand<Sqlite>, config: WorkerConfig) -> Self {
        Self::on_with(Nats::start().await, hand, config).await
    }

    /// On a server that runs already.
    pub async fn on(nats: Nats, hand: Hand<Sqlite>) -> Self {
        Self::on_with(nats, hand, quick()).await
    }

    async fn on_with(nats: Nats, hand: Hand<Sqlite>, config: WorkerConfig) -> Self {
        let bed = Bed::new(4).await;
        let host = host(&bed, &nats, &hand).await.work_with::<Sum>(config).start().await.unwrap();
        Self { nats, bed, ctx: host.ctx(), host }
    }

    /// Streams and consumers are there, and nobody works.
    pub async fn idle() -> Self {
        let stage = Self::new(Hand::default()).await;
        stage.host.stop().await;
        stage
    }

    /// Another host on the same server and database.
    pub async fn another(&self, hand: Hand<Sqlite>, config: WorkerConfig) -> Host<work::Contract, Sqlite> {
        host(&self.bed, &self.nats, &hand).await.work_with::<Sum>(config).start().await.unwrap()
    }

    pub async fn sum(&self, of: u64) -> JobRef<Sum> {
        self.ctx.job.work.sum.create(&self.ctx.nats, number(of)).await.unwrap()
    }

    pub fn by_id(&self, id: &str) -> JobRef<Sum> {
        self.ctx.job.work.sum.by_id(&self.ctx.nats, JobId::new(id).unwrap())
    }
}

/// Its end.
pub async fn end<J: trellis::Job>(job: &JobRef<J>) -> JobSnapshot<J> {
    job.wait(SOON).await.unwrap()
}

/// What it is now.
pub async fn now<J: trellis::Job>(job: &JobRef<J>) -> JobSnapshot<J> {
    job.get().await.unwrap().unwrap()
}

/// Handlers wait at it until the test lets them pass.
#[derive(Clone)]
pub struct Gate {
    came: Arc<Semaphore>,
    passes: Arc<Semaphore>,
}

impl Gate {
    pub fn new() -> Self {
        Self { came: Arc::new(Semaphore::new(0)), passes: Arc::new(Semaphore::new(0)) }
    }

    /// A handler comes, and waits until it may pass.
    pub async fn pass(&self) {
        self.came.add_permits(1);
        self.passes.acquire().await.unwrap().forget();
    }

    /// Ready when another `count` handlers have come.
    pub async fn came(&self, count: u32) {
        let came = tokio::time::timeout(SOON, self.came.acquire_many(count)).await;
        came.expect("handlers should have been called").unwrap().forget();
    }

    /// Handlers that have come and were not asked for.
    pub fn more(&self) -> usize {
        self.came.available_permits()
    }

    pub fn open(&self, count: usize) {
        self.passes.add_permits(count);
    }

    /// Passes that nobody has used are taken back.
    pub fn close(&self) {
        self.passes.forget_permits(usize::MAX >> 4);
    }
}
