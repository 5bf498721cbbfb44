//! How far both services are, read from their databases while they run.
use crate::database::Database;
use crate::seen::OUTBOX_ROWS;
use crate::stage::{Role, Stage};
use crate::{Error, Expected};

/// How far both services are.
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
}

impl Counts {
    /// Lines that are placed or refused.
    pub fn lines(&self) -> u64 {
        self.placed + self.refused
    }

    /// Whether nothing is left to be done.
    pub fn are_complete(&self, expected: &Expected) -> bool {
        self.lines() >= expected.lines as u64
            && self.outbox == 0
            && self.handled >= expected.placed.len() as u64
    }
}

/// Connections to both databases.
#[derive(Debug)]
pub struct Watch {
    orders: Database,
    stock: Database,
}

impl Watch {
    /// Connect. Both services must have been ready once.
    ///
    /// # Errors
    /// A database is not there.
    pub async fn new(stage: &Stage) -> Result<Self, Error> {
        Ok(Self {
            orders: stage.database(Role::Placing).await?,
            stock: stage.database(Role::Handling).await?,
        })
    }

    /// How far they are now.
    ///
    /// # Errors
    /// A database does not answer.
    pub async fn counts(&self) -> Result<Counts, Error> {
        Ok(Counts {
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
    pub async fn close(&self) {
        self.orders.close().await;
        self.stock.close().await;
    }
}
