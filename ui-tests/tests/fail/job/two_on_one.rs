// One type as an event and as the job that follows it, and as two jobs.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[job("orders.send_receipt", retry = 3)]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {}

    #[job("orders.archive")]
    #[job("orders.close")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Archive {}
}

fn main() {
    let _ = (orders::EVENT.orders.created, orders::JOB.orders.archive);
}
