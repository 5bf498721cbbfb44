// `orders` beside `orders.created`: on the facade, one field would have to be a handle and a group.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {}

    #[event("orders.created", payload = Order)]
    pub struct Created;
    #[event("orders", payload = Order)]
    pub struct Everything;
    #[event("stock", payload = Order)]
    pub struct Stock;
    #[event("stock.items.emptied", payload = Order)]
    pub struct Emptied;
    #[event("stocks", payload = Order)]
    pub struct NoConflict;
}

fn main() {
    let _ = (orders::EVENT.orders.created, orders::EVENT.stock, orders::EVENT.stocks);
    fn is<E: trellis::Event>() {}
    is::<orders::Everything>();
    is::<orders::Emptied>();
}
