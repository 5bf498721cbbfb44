//! The contest on one database: ours, the ideal loop and the loop that goes row by row, in turns.

use async_nats::jetstream;
use sqlx::Pool;
use trellis_runtime::SqlOutbox;

use crate::case::{Case, rate};
use crate::database::{Dialect, EMPTY_IDEAL, EMPTY_OURS, LEFT_IDEAL, LEFT_OURS, SAVE_TEMPLATE, Sync};
use crate::message::{event, payload};
use crate::relay::{Sizes, ours, overlapped, row_by_row};
use crate::samples::Samples;
use crate::setting::Setting;
use crate::{Result, stream};

/// Connections on PostgreSQL: one claims, one removes, two to spare.
const CONNECTIONS: u32 = 4;

pub(crate) struct Contest<D: Dialect> {
    name: &'static str,
    pool: Pool<D>,
    outbox: SqlOutbox<D>,
    client: async_nats::Client,
    js: jetstream::Context,
    ours: Samples,
    overlapped: Samples,
    row_by_row: Samples,
}

impl<D: Dialect> Contest<D> {
    pub(crate) async fn prepare(setting: &Setting, name: &'static str, sync: Sync) -> Result<Self> {
        let pool = D::open(&setting.target(name)?, sync, CONNECTIONS).await?;
        trellis_runtime::migrate(&pool).await?;
        for table in D::TABLES {
            D::execute(&pool, table).await?;
        }
        let outbox = SqlOutbox::new(pool.clone())?;
        outbox.transaction(async |tx| event().enqueue(tx, payload()).await).await?;
        D::execute(&pool, SAVE_TEMPLATE).await?;
        Ok(Self {
            name,
            pool,
            outbox,
            client: setting.client().await?,
            js: setting.jetstream().await?,
            ours: Samples::default(),
            overlapped: Samples::default(),
            row_by_row: Samples::default(),
        })
    }

    /// One round; who goes first changes, since who goes second finds the machine warm.
    pub(crate) async fn round(&mut self, round: u32, sizes: Sizes) -> Result<()> {
        if round.is_multiple_of(2) {
            self.ours(sizes.backlog).await?;
            self.overlapped(sizes.backlog).await?;
        } else {
            self.overlapped(sizes.backlog).await?;
            self.ours(sizes.backlog).await?;
        }
        self.row_by_row(sizes.row_by_row).await
    }

    pub(crate) fn case(self) -> Case {
        Case {
            name: format!("relay, {}", self.name),
            metric: "rows/s",
            ours: self.ours,
            raw: self.overlapped,
            others: vec![("row_by_row", self.row_by_row)],
        }
    }

    async fn ours(&mut self, rows: u32) -> Result<()> {
        self.fill(D::FILL_OURS, rows).await?;
        let stream = stream::Round::begin(&self.js).await?;
        let took = ours::relay(&self.outbox, &self.pool, self.client.clone(), &stream.name, rows).await?;
        let left = D::count(&self.pool, LEFT_OURS).await?;
        stream.end(&format!("ours on {}", self.name), rows, left).await?;
        let rate = rate(rows, took);
        eprintln!("{:<16} ours       {rate:>9.0} rows/s", self.name);
        self.ours.push(rate);
        Ok(())
    }

    async fn overlapped(&mut self, rows: u32) -> Result<()> {
        self.fill(D::FILL_IDEAL, rows).await?;
        let stream = stream::Round::begin(&self.js).await?;
        let took = overlapped::relay::<D>(&self.pool, &self.js).await?;
        let left = D::count(&self.pool, LEFT_IDEAL).await?;
        stream.end(&format!("the overlapped loop on {}", self.name), rows, left).await?;
        let rate = rate(rows, took);
        eprintln!("{:<16} overlapped {rate:>9.0} rows/s", self.name);
        self.overlapped.push(rate);
        Ok(())
    }

    async fn row_by_row(&mut self, rows: u32) -> Result<()> {
        self.fill(D::FILL_IDEAL, rows).await?;
        let stream = stream::Round::begin(&self.js).await?;
        let took = row_by_row::relay::<D>(&self.pool, &self.js).await?;
        let left = D::count(&self.pool, LEFT_IDEAL).await?;
        stream.end(&format!("the row-by-row loop on {}", self.name), rows, left).await?;
        let rate = rate(rows, took);
        eprintln!("{:<16} row by row {rate:>9.0} rows/s", self.name);
        self.row_by_row.push(rate);
        Ok(())
    }

    async fn fill(&self, sql: &'static str, rows: u32) -> Result<()> {
        D::execute(&self.pool, EMPTY_OURS).await?;
        D::execute(&self.pool, EMPTY_IDEAL).await?;
        D::fill(&self.pool, sql, rows).await?;
        for tidy in D::TIDY {
            D::execute(&self.pool, tidy).await?;
        }
        Ok(())
    }
}
