// A member that is a payload but no event, here or elsewhere, and one that does not exist.
mod model {
    pub struct Order {}
}

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created", payload = Order)]
    pub struct OrderCreated;
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {}

    #[group("payload")]
    pub struct Payload(OrderCreated, Order);
    #[group("elsewhere")]
    pub struct Elsewhere(super::model::Order, OrderCreated);
    #[group("misspelt")]
    pub struct Misspelt(OrderCreted);
}

fn main() {
    let _ = orders::EVENT.orders.created;
    fn is<G: trellis::Group>() {}
    is::<orders::Payload>();
}
