// Declarations where no contract sees them: outside of the module, or too deep inside of it.
use trellis::{event, group};

#[event("orders.created")]
#[derive(Debug)]
pub struct Created;

#[trellis::group("stock")]
pub struct Stock(Created);

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    pub mod payloads {
        #[event("orders.sent")]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct Sent {}

        pub mod deeper {
            #[event("orders.paid")]
            pub struct Paid;
        }
    }
}

fn main() {
    let _ = (Created, orders::payloads::Sent {}, orders::payloads::deeper::Paid, Stock(Created));
}
