// Options that do not exist, are given twice, or are written another way. Each is reported.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {
        pub id: u8,
    }

    #[event("orders.unknown", key = id, payload = Order, retries = 3)]
    pub struct Unknown;
    #[event("orders.twice", params(id), params(id), payload = Order, payload = Order, order_by = id, order_by = id)]
    pub struct Twice;
    #[event("orders.comma", params(id) order_by = id, payload = Order)]
    pub struct Comma;
    #[event("orders.params", params = id, order_by(id), payload(Order), payload = Order)]
    pub struct Shapes;
    #[event("orders.empty", params(), payload = Order)]
    pub struct Empty;
    #[event("orders.numbers", params(1, 2), order_by = 3, payload = Order)]
    pub struct Numbers;
    #[event("orders.names", "orders.others", payload = Order)]
    pub struct Names;
}

fn main() {
    let event = orders::EVENT;
    let _ = (event.orders.unknown, event.orders.twice, event.orders.comma, event.orders.params);
    let _ = (event.orders.empty, event.orders.numbers, event.orders.names);
}
