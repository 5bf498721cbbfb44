// Declarations may share a payload, which may be any type from anywhere.
use trellis::{Event, Job};

mod model {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {
        pub id: u64,
    }
}

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use super::model;

    #[event("orders.created", payload = model::Order, params(id))]
    pub struct OrderCreated;
    #[event("orders.cancelled", params(id), payload = super::model::Order, order_by = id)]
    pub struct OrderCancelled;
    // Not checked here, because it is out of sight: start-up checks it against the schema.
    #[event("orders.strange", payload = crate::model::Order, params(no_such_field))]
    pub struct Strange;
    #[event("orders.many", payload = Vec<model::Order>)]
    pub struct Many;
    #[event("orders.pair", payload = Envelope<model::Order>, params(id))]
    pub struct Pair;
    #[event("orders.plain", payload = String)]
    pub struct Plain;

    #[job("orders.send_receipt", payload = model::Order, result = super::model::Order, update = Envelope<u8>)]
    pub struct SendReceipt;
    // The payload of an event, and the event itself as a payload.
    #[job("orders.archive", payload = crate::model::Order, result = (u8, Vec<Changed>))]
    pub struct Archive;
    #[job("orders.apply", payload = Changed, result = Result<Ping, Changed>)]
    pub struct Apply;

    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Envelope<T> {
        pub id: u64,
        pub body: T,
    }

    // A declaration without fields sends null.
    #[event("orders.ping")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Ping;

    #[event("orders.changed")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub enum Changed {
        Up { by: u8 },
        Down,
    }
}

fn main() {
    fn payload<E: Event<Payload = P>, P>() {}
    payload::<orders::OrderCreated, model::Order>();
    payload::<orders::OrderCancelled, model::Order>();
    payload::<orders::Many, Vec<model::Order>>();
    payload::<orders::Changed, orders::Changed>();
    fn job<J: Job<Payload = P, Result = R>, P, R>() {}
    job::<orders::SendReceipt, model::Order, model::Order>();
    job::<orders::Archive, model::Order, (u8, Vec<orders::Changed>)>();
    job::<orders::Apply, orders::Changed, Result<orders::Ping, orders::Changed>>();
    let _ = orders::EVENT.orders.ping;
}
