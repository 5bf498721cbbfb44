// Declarations on items that other frameworks put them on.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    pub fn created(id: u8) -> u8 {
        id
    }

    #[event("orders.cancelled")]
    pub trait Cancelled {}

    #[event("orders.sent")]
    pub type Sent = u8;

    #[event("orders.paid")]
    impl super::Orders {
        pub fn paid() {}
    }

    #[group("stock")]
    pub mod stock {}

    #[group("names")]
    pub const NAMES: [&str; 1] = ["orders.created"];
}

pub struct Orders;

fn main() {
    // The items are there all the same.
    fn is<T: orders::Cancelled>() {}
    let _: orders::Sent = orders::created(1);
    Orders::paid();
    let _ = orders::NAMES;
}
