// A member that is a payload or a job but no event, here or elsewhere, and one that does not exist.
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
    #[job("orders.archive")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Archive {}
    #[group("job")]
    pub struct Job(OrderCreated, Archive);
    #[group("misspelt")]
    pub struct Misspelt(OrderCreted);
}

fn main() {
    let _ = orders::EVENT.orders.created;
    fn is<G: trellis::Group>() {}
    is::<orders::Payload>();
}
