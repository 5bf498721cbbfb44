// One payload that is sent under two names, declared on the payload twice.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[event("orders.changed")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {}

    #[event("orders.sent")]
    #[group("senders")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Sent(Order);
}

fn main() {
    let _ = (orders::EVENT.orders.created, orders::EVENT.orders.sent);
}
