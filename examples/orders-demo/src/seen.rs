//! What the databases and the stream say themselves.
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use futures_util::StreamExt;
use trellis_runtime::wire::Environment;

use crate::Error;
use crate::database::Database;
use crate::expect::Order;

/// How long the stream may take to deliver its next message.
const NEXT_MESSAGE: Duration = Duration::from_secs(10);

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

const ORDERS: &str = "SELECT CAST(line AS TEXT), order_id, customer_id, region, sku, CAST(quantity AS TEXT), CAST(total_cents AS TEXT) FROM orders ORDER BY line";
const REFUSALS: &str = "SELECT CAST(line AS TEXT), reason FROM refusals ORDER BY line";
const RESERVATIONS: &str = "SELECT order_id, sku, CAST(quantity AS TEXT), outcome FROM reservations";
const STOCK: &str = "SELECT sku, CAST(delivered AS TEXT), CAST(remaining AS TEXT) FROM stock";
pub(crate) const OUTBOX_ROWS: &str = "SELECT CAST(count(*) AS TEXT) FROM trellis_outbox";

impl Seen {
    /// Read everything.
    ///
    /// # Errors
    /// A database or the server does not answer, or holds what the services cannot have written.
    pub async fn read(orders: &Database, stock: &Database, nats: &str) -> Result<Self, Error> {
        let context = jetstream::new(async_nats::connect(nats).await?);
        let environment = Environment::NONE;
        let mut dead = context.get_stream(environment.dead_stream()).await?;
        let mut seen = Self {
            events: read_events(&context, &environment.event_stream()).await?,
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
        Ok(seen)
    }
}

async fn read_events(context: &jetstream::Context, stream: &str) -> Result<Vec<Event>, Error> {
    let mut stream = context.get_stream(stream).await?;
    let count = stream.info().await?.state.messages;
    let all = OrderedConfig { deliver_policy: DeliverPolicy::All, ..OrderedConfig::default() };
    let mut messages = stream.create_consumer(all).await?.messages().await?;

    let mut events = Vec::new();
    for _ in 0..count {
        let next = tokio::time::timeout(NEXT_MESSAGE, messages.next()).await;
        let message =
            next.map_err(|_| "the stream stopped half-way")?.ok_or("the stream ended half-way")??;
        let order = serde_json::from_slice(&message.payload)?;
        events.push(Event { subject: message.subject.to_string(), order });
    }
    Ok(events)
}
