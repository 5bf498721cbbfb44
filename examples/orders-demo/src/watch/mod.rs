//! How far the services are, read from their databases and from the stream of jobs while they run.
mod ends;

use crate::database::Database;
use crate::role::Role;
use crate::seen::OUTBOX_ROWS;
use crate::stage::Stage;
use crate::watch::ends::Ends;
use crate::{Error, Expected};

/// How far the services are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Orders placed.
    pub placed: u64,
    /// Lines refused.
    pub refused: u64,
    /// Rows in the outbox of the orders service.
    pub outbox: u64,
    /// Orders with a reservation, or with a refusal for want of stock.
    pub handled: u64,
    /// Receipts sent: their jobs are completed.
    pub sent: u64,
    /// Jobs of receipts that have ended without.
    pub unsent: u64,
}

impl Counts {
    /// Lines that are placed or refused.
    pub fn lines(&self) -> u64 {
        self.placed + self.refused
    }

    /// Jobs of receipts that have ended.
    pub fn ended(&self) -> u64 {
        self.sent + self.unsent
    }

    /// Whether nothing is left to be done.
    pub fn are_complete(&self, expected: &Expected) -> bool {
        let orders = expected.placed.len() as u64;
        self.lines() >= expected.lines as u64
            && self.outbox == 0
            && self.handled >= orders
            && self.ended() >= orders
    }
}

/// Connections to both databases, and to the stream of jobs.
#[derive(Debug)]
pub struct Watch {
    orders: Database,
    stock: Database,
    ends: Ends,
}

impl Watch {
    /// Connect. All services must have been ready once.
    ///
    /// # Errors
    /// A database or the stream is not there.
    pub async fn new(stage: &Stage) -> Result<Self, Error> {
        Ok(Self {
            orders: stage.database(Role::Placing).await?,
            stock: stage.database(Role::Handling).await?,
            ends: Ends::listen(&stage.nats_url()).await?,
        })
    }

    /// How far they are now.
    ///
    /// # Errors
    /// A database or the server does not answer.
    pub async fn counts(&mut self) -> Result<Counts, Error> {
        let (sent, unsent) = self.ends.counts()?;
        Ok(Counts {
            sent,
            unsent,
            placed: self.orders.number("SELECT CAST(count(*) AS TEXT) FROM orders").await?,
            refused: self.orders.number("SELECT CAST(count(*) AS TEXT) FROM refusals").await?,
            outbox: self.orders.number(OUTBOX_ROWS).await?,
            handled: self
                .stock
                .number("SELECT CAST(count(DISTINCT order_id) AS TEXT) FROM reservations")
                .await?,
        })
    }

    /// The database of the orders service.
    pub fn orders(&self) -> &Database {
        &self.orders
    }

    /// Disconnect.
    pub async fn close(&mut self) {
        self.ends.close().await;
        self.orders.close().await;
        self.stock.close().await;
    }
}
