// Hygiene: generated code names nothing through the prelude or the crate's local name.
#![no_implicit_prelude]
extern crate trellis as some_other_name;

mod orders {
    #[::trellis::contract(id = "acme.orders@v1")]
    pub mod contract {
        // `#[derive(JsonSchema)]` itself needs the prelude.
        #[event("orders.created", payload = ::std::string::String)]
        pub struct OrderCreated;

        #[job(
            "orders.send_receipt",
            payload = ::std::string::String,
            retry(tries = 3, first = "1s", explicit),
            deadline = "1m1ms"
        )]
        pub struct SendReceipt;

        #[group("stock", replay = "all")]
        pub struct Stock(OrderCreated);
    }
}

fn main() {
    let _ = orders::contract::EVENT.orders.created;
    let _ = orders::contract::JOB.orders.send_receipt;
    let _ = <orders::contract::Contract as ::trellis::Contract>::jobs();
    let _ = <orders::contract::Contract as ::trellis::Contract>::manifest();
}
