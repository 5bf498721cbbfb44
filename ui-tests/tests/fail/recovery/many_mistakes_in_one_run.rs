// Every mistake is reported in one run, and what is right still works in `main`.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[trellis::contract(name = "orders")]
pub mod orders {
    use super::*;

    #[event("orders.created", params(id))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Created {
        pub order_id: u8,
    }

    #[event("orders.created")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct CreatedAgain;

    #[event("orders")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Everything;

    #[event("orders.Created-now")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Shouted;

    #[event("orders.shipped", retries = 3)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Shipped;

    #[event("orders.generic")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Generic<T>(pub T);

    #[event("orders.fn")]
    fn nonsense() {}

    #[job("orders.Archive", retry(tries = 0, first = "1", longest = "60d"), deadline = 10m, queue = "slow")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Archive;

    #[job("orders.close", payload = Created, retry = 3)]
    pub struct Close;

    #[group("everything", replay = "some")]
    pub struct All(Created, CreatedAgain, Everything, Shouted, Shipped, Created, Archive);
}

fn main() {
    // No error here: the events have their fields, the types are what they are declared to be.
    let _ = (orders::EVENT.orders.created, orders::EVENT.orders.shipped);
    let _ = (orders::CreatedAgain, orders::Generic(1), orders::All, orders::Contract);
    let _ = orders::JOB.orders.close;
    fn job<J: trellis::Job>() {}
    job::<orders::Archive>();
    fn is<G: trellis::Group>() {}
    is::<orders::All>();
}
