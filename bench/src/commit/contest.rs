//! The contest on one database: `outbox.transaction` against the same two INSERTs by hand.

use std::time::Duration;

use sqlx::Pool;
use testbed::Stopwatch;
use tokio::task::JoinSet;
use trellis_runtime::SqlOutbox;
use trellis_runtime::ports::{Clock, Ids, RandomIds, SystemClock};

use crate::Result;
use crate::case::{Case, rate};
use crate::commit::Load;
use crate::database::{BUSINESS, Dialect, EMPTY_BUSINESS, EMPTY_OURS, LEFT_OURS, RawMessage, Sync};
use crate::message::{event, headers_json, payload};
use crate::samples::Samples;
use crate::setting::Setting;

pub(crate) struct Contest<D: Dialect> {
    name: &'static str,
    load: Load,
    pool: Pool<D>,
    outbox: SqlOutbox<D>,
    ours: Samples,
    raw: Samples,
}

impl<D: Dialect> Contest<D> {
    pub(crate) async fn prepare(
        setting: &Setting,
        name: &'static str,
        sync: Sync,
        load: Load,
    ) -> Result<Self> {
        let target = setting.target(&format!("{name} {}", load.at_once))?;
        let pool = D::open(&target, sync, load.at_once).await?;
        trellis_runtime::migrate(&pool).await?;
        for table in D::TABLES {
            D::execute(&pool, table).await?;
        }
        let outbox = SqlOutbox::new(pool.clone())?;
        Ok(Self { name, load, pool, outbox, ours: Samples::default(), raw: Samples::default() })
    }

    /// One round; who goes first changes.
    pub(crate) async fn round(&mut self, round: u32) -> Result<()> {
        if round.is_multiple_of(2) {
            self.ours().await?;
            self.raw().await
        } else {
            self.raw().await?;
            self.ours().await
        }
    }

    pub(crate) fn case(self) -> Case {
        let how = if self.load.at_once == 1 {
            "sequential".to_owned()
        } else {
            format!("{} at once", self.load.at_once)
        };
        Case {
            name: format!("commit, {}, {how}", self.name),
            metric: "transactions/s",
            ours: self.ours,
            raw: self.raw,
            others: Vec::new(),
        }
    }

    async fn ours(&mut self) -> Result<()> {
        let outbox = self.outbox.clone();
        let rate = self.measure(move || transaction(outbox.clone())).await?;
        self.ours.push(rate);
        Ok(())
    }

    async fn raw(&mut self) -> Result<()> {
        let pool = self.pool.clone();
        let rate = self.measure(move || raw_transaction(pool.clone())).await?;
        self.raw.push(rate);
        Ok(())
    }

    async fn measure<F>(&self, transaction: impl Fn() -> F + Clone + Send + 'static) -> Result<f64>
    where
        F: Future<Output = Result<()>> + Send,
    {
        D::execute(&self.pool, EMPTY_OURS).await?;
        D::execute(&self.pool, EMPTY_BUSINESS).await?;
        for tidy in D::TIDY {
            D::execute(&self.pool, tidy).await?;
        }
        let took = at_once(self.load, transaction).await?;
        for (what, sql) in [("messages", LEFT_OURS), ("business rows", BUSINESS)] {
            let written = D::count(&self.pool, sql).await?;
            if written != i64::from(self.load.transactions) {
                return Err(format!("{} transactions wrote {written} {what}", self.load.transactions).into());
            }
        }
        Ok(rate(self.load.transactions, took))
    }
}

async fn at_once<F>(load: Load, transaction: impl Fn() -> F + Clone + Send + 'static) -> Result<Duration>
where
    F: Future<Output = Result<()>> + Send,
{
    let stopwatch = Stopwatch::start();
    let mut writers = JoinSet::new();
    for _ in 0..load.at_once {
        let transaction = transaction.clone();
        writers.spawn(async move {
            for _ in 0..load.transactions / load.at_once {
                transaction().await?;
            }
            Ok(())
        });
    }
    while let Some(written) = writers.join_next().await {
        let written: Result<()> = written?;
        written?;
    }
    Ok(stopwatch.elapsed())
}

async fn transaction<D: Dialect>(outbox: SqlOutbox<D>) -> Result<()> {
    let mut tx = outbox.begin().await?;
    D::insert_business(&mut tx).await?;
    event().enqueue(&mut tx, payload()).await?;
    Ok(tx.commit().await?)
}

async fn raw_transaction<D: Dialect>(pool: Pool<D>) -> Result<()> {
    let id = RandomIds.ulid(SystemClock::default().now());
    let message = RawMessage { headers: headers_json(&id), id, body: serde_json::to_vec(&payload())? };
    D::commit_raw(&pool, message).await
}
