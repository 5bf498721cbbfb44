// An event that is on its way out: its users are told at the facade, and in the groups that consume it.
#![deny(deprecated)]

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[deprecated(note = "use `orders.created`")]
    #[event("orders.made", payload = String)]
    pub struct OrderMade;
    #[event("orders.created", payload = String)]
    pub struct OrderCreated;
}

#[trellis::contract(id = "acme.warehouse@v1")]
pub mod warehouse {
    #[group("stock")]
    pub struct Stock(super::orders::OrderMade, super::orders::OrderCreated);
}

fn main() {
    let _ = (orders::EVENT.orders.made, orders::EVENT.orders.created);
}
