// A contract as a trait or a struct, as other frameworks have it.
#[trellis::contract(id = "acme.orders@v1")]
pub trait Orders {
    fn created(&self);
}

#[trellis::contract(id = "acme.orders@v1")]
pub struct OrderBook {
    pub id: u8,
}

fn main() {
    // The items are there all the same.
    fn is<T: Orders>() {}
    let _ = OrderBook { id: 1 };
}
