// A job and an event may have one name: they are on two facades and in two places of the manifest.
use trellis::{Contract, Event, Job};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct OrderCreated {}

    #[job("orders.created", payload = OrderCreated)]
    pub struct CreateOrder;

    // Nor does a job conflict with an event that it would continue.
    #[job("orders.created_at.noon", payload = OrderCreated)]
    pub struct AtNoon;
    #[event("orders.created_at", payload = OrderCreated)]
    pub struct CreatedAt;
}

// The attributes themselves are macros, and imported they are no harm.
#[trellis::contract(id = "acme.log@v1")]
pub mod log {
    #[allow(unused_imports)]
    use trellis::{event, group, job};

    #[job("log.rotate", payload = ())]
    pub struct Rotate;
}

fn main() {
    let (event, job) = (orders::EVENT.orders.created, orders::JOB.orders.created);
    assert_eq!(format!("{event:?} {job:?}"), "EventHandle(orders.created) JobHandle(orders.created)");
    assert_eq!(orders::OrderCreated::DECLARATION.name, orders::CreateOrder::DECLARATION.name);
    let _ = (orders::EVENT.orders.created_at, orders::JOB.orders.created_at.noon, log::JOB.log.rotate);
    let manifest = orders::Contract::manifest();
    assert!(manifest.events.contains_key("orders.created") && manifest.jobs.contains_key("orders.created"));
}
