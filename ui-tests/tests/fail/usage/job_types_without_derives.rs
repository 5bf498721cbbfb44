// Derives that were forgotten on what a job carries, ends with or tells: each is said at its type.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.send_receipt", result = Receipt, update = Step)]
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct SendReceipt {}

    #[derive(serde::Serialize, schemars::JsonSchema)]
    pub struct Receipt {}
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    pub struct Step {}
}

fn main() {
    let _ = orders::JOB.orders.send_receipt;
}
