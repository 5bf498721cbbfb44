// Jobs where no contract sees them: at their worker, or in a module of payloads.
#[trellis::job("orders.send_receipt", retry(tries = 3))]
#[derive(Debug)]
pub struct SendReceipt;

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    pub mod payloads {
        #[job("orders.archive")]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct Archive {}
    }

    #[cfg_attr(all(), job("orders.clean"))]
    pub struct Clean;
}

fn main() {
    let _ = (SendReceipt, orders::payloads::Archive {}, orders::Clean);
}
