//! What the databases, the streams and the mail server say themselves.
mod jobs;
mod mails;
mod stream;

use async_nats::jetstream;
use trellis_runtime::wire::Environment;

pub(crate) use jobs::ENDS;
pub use jobs::Job;
pub use mails::{Mail, Mails};

use crate::Error;
use crate::database::Database;
use crate::expect::Order;

/// Everything that is in the books.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Rows of `orders`: line and order.
    pub orders: Vec<(usize, Order)>,
    /// Rows of `refusals`: line and reason.
    pub refusals: Vec<(usize, String)>,
    /// What is in the event stream, in its order.
    pub events: Vec<Event>,
    /// Rows of `reservations`.
    pub reservations: Vec<Reservation>,
    /// Rows of `stock`.
    pub stock: Vec<Shelf>,
    /// The jobs in the stream of jobs.
    pub jobs: Vec<Job>,
    /// Rows of `receipts`.
    pub receipts: Vec<Receipt>,
    /// What the mail server has written down.
    pub mails: Mails,
    /// Rows left in the outboxes of both services, dead ones among them.
    pub outbox_rows: u64,
    /// Messages in the stream of dead letters.
    pub dead_letters: u64,
}

/// A message of the event stream.
#[derive(Debug, Clone)]
pub struct Event {
    /// Where it is, its region as the last token.
    pub subject: String,
    /// What is in it.
    pub order: Order,
}

/// A row of `reservations`.
#[derive(Debug, Clone)]
pub struct Reservation {
    /// Which order.
    pub order_id: String,
    /// What was wanted.
    pub sku: String,
    /// How many of it.
    pub quantity: u64,
    /// Whether it was reserved, or refused because not enough was left.
    pub reserved: bool,
}

/// A row of `stock`.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// What.
    pub sku: String,
    /// How many were there at the beginning.
    pub delivered: u64,
    /// How many are left.
    pub remaining: u64,
}

/// A row of `receipts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Of which order.
    pub order_id: String,
    /// Which job sent it.
    pub job_id: String,
    /// Where to.
    pub email: String,
    /// What the order costs.
    pub total_cents: u64,
    /// The mail server's number of it.
    pub mail: u64,
}

const ORDERS: &str = "SELECT CAST(line AS TEXT), order_id, customer_id, region, sku, CAST(quantity AS TEXT), CAST(total_cents AS TEXT) FROM orders ORDER BY line";
const REFUSALS: &str = "SELECT CAST(line AS TEXT), reason FROM refusals ORDER BY line";
const RESERVATIONS: &str = "SELECT order_id, sku, CAST(quantity AS TEXT), outcome FROM reservations";
const STOCK: &str = "SELECT sku, CAST(delivered AS TEXT), CAST(remaining AS TEXT) FROM stock";
const RECEIPTS: &str =
    "SELECT order_id, job_id, email, CAST(total_cents AS TEXT), CAST(mail AS TEXT) FROM receipts";
// Rows of jobs that are in the stream stay a while, with what became of them.
pub(crate) const OUTBOX_ROWS: &str =
    "SELECT CAST(count(*) AS TEXT) FROM trellis_outbox WHERE state <> 'dispatched'";

impl Seen {
    /// Read everything.
    ///
    /// # Errors
    /// A database or the server does not answer, or holds what the services cannot have written.
    pub async fn read(orders: &Database, stock: &Database, nats: &str, mails: &str) -> Result<Self, Error> {
        let context = jetstream::new(async_nats::connect(nats).await?);
        let environment = Environment::NONE;
        let mut dead = context.get_stream(environment.dead_stream()).await?;
        let mut seen = Self {
            events: read_events(&context, &environment.event_stream()).await?,
            jobs: jobs::read(&context, &environment.job_stream()).await?,
            mails: mails::read(mails)?,
            dead_letters: dead.info().await?.state.messages,
            outbox_rows: orders.number(OUTBOX_ROWS).await? + stock.number(OUTBOX_ROWS).await?,
            ..Self::default()
        };
        for [line, order_id, customer_id, region, sku, quantity, total_cents] in orders.rows(ORDERS).await? {
            let (quantity, total_cents) = (quantity.parse()?, total_cents.parse()?);
            let order = Order { order_id, customer_id, region, sku, quantity, total_cents };
            seen.orders.push((line.parse()?, order));
        }
        for [line, reason] in orders.rows(REFUSALS).await? {
            seen.refusals.push((line.parse()?, reason));
        }
        for [order_id, sku, quantity, outcome] in stock.rows(RESERVATIONS).await? {
            let reserved = outcome == "reserved";
            seen.reservations.push(Reservation { order_id, sku, quantity: quantity.parse()?, reserved });
        }
        for [sku, delivered, remaining] in stock.rows(STOCK).await? {
            seen.stock.push(Shelf { sku, delivered: delivered.parse()?, remaining: remaining.parse()? });
        }
        for [order_id, job_id, email, total_cents, mail] in orders.rows(RECEIPTS).await? {
            let (total_cents, mail) = (total_cents.parse()?, mail.parse()?);
            seen.receipts.push(Receipt { order_id, job_id, email, total_cents, mail });
        }
        Ok(seen)
    }
}

async fn read_events(context: &jetstream::Context, stream: &str) -> Result<Vec<Event>, Error> {
    let event =
        |(subject, body): (String, Vec<u8>)| Ok(Event { subject, order: serde_json::from_slice(&body)? });
    stream::read(context, stream).await?.into_iter().map(event).collect()
}
