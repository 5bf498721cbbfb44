// Jobs as functions, traits and impls, where other frameworks have them, and on a generic type.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.send_receipt")]
    pub async fn send_receipt(order_id: u64) -> u64 {
        order_id
    }

    #[job("orders.archive")]
    pub trait Archive {
        fn archive(&self);
    }

    #[job("orders.clean")]
    impl super::Cleaner {
        pub fn clean() {}
    }

    #[job("orders.export")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Export<T> {
        pub order: T,
    }

    #[job("orders.fine", payload = Export<u8>, result = Export<u16>)]
    pub struct Fine;
}

pub struct Cleaner;

fn main() {
    // The items are there all the same.
    let _ = orders::send_receipt(1);
    fn is<T: orders::Archive>() {}
    Cleaner::clean();
    let _ = (orders::Export { order: 1 }, orders::JOB.orders.fine);
}
