// A declaration that was copied and whose name was not changed.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {}

    #[event("orders.created", payload = Order)]
    pub struct Created;
    #[event("orders.created", payload = Order)]
    pub struct Cancelled;
    // Only one of two is under a `#[cfg]`, so they can meet.
    #[cfg(all())]
    #[event("orders.created", payload = Order)]
    pub struct Paid;

    // Both are, and they do meet.
    #[cfg(all())]
    #[event("orders.sent", payload = Order)]
    pub struct Sent;
    #[cfg(not(any()))]
    #[event("orders.sent", payload = Order)]
    pub struct SentToo;
}

fn main() {
    let _ = orders::EVENT.orders.created;
    fn is<E: trellis::Event>() {}
    is::<orders::Cancelled>();
    is::<orders::Paid>();
}
