// While one declaration is being typed, the others and everything that uses them stay as they are.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use super::*;

    #[event("orders.created", payload = Order)]
    pub struct Created {
        pub order_id: ,
    }

    #[event("orders.cancelled")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Cancelled {}

    // Its derives cannot work, and that is not said again for each of them.
    #[event("orders.paid", params(order_id))]
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Paid {
        #[serde(default)]
        pub order_id: u8
        pub total: u64,
    }

    #[job("orders.archive", result = Order, retry(tries = , first = "1s"), deadline =)]
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    pub struct Archive {
        pub order_id:
    }

    #[job("orders.close", payload = Order)]
    pub struct Close;

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Order {}

    #[group("stock")]
    pub struct Stock(Created, Cancelled, Paid);
}

fn main() {
    fn is<G: trellis::Group>() {}
    is::<orders::Stock>();
    let _ = (orders::EVENT.orders.created, orders::EVENT.orders.cancelled, orders::EVENT.orders.paid, orders::Order {});
    let _ = (orders::JOB.orders.archive, orders::JOB.orders.close);
}
