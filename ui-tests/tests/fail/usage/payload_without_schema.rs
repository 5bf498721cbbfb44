// A derive that was forgotten: the error belongs to the payload, not to the macro.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct Created {}

    #[event("orders.sent", payload = Sent)]
    pub struct OrderSent;
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct Sent {}
}

fn main() {
    let _ = (orders::EVENT.orders.created, orders::EVENT.orders.sent);
}
