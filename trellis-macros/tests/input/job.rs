#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    /// Sends a receipt.
    #[job(
        "orders.send_receipt",
        result = Receipt,
        update = super::model::Step,
        retry(tries = 8, first = "1s", longest = "1h30m", explicit),
        deadline = "10m",
    )]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct SendReceipt {
        pub order_id: String,
    }

    #[event("orders.send_receipt", payload = SendReceipt)]
    pub struct Sent;

    #[job("orders.archive.close", payload = super::model::Order, retry = "explicit")]
    pub(crate) struct Close;

    #[cfg(feature = "clean")]
    #[job("clean", payload = u8, retry(first = "250ms"))]
    pub struct Clean;

    #[job("orders.retry", payload = u8, retry(longest = "1d"), deadline = "1m1ms")]
    struct Retry;
}
