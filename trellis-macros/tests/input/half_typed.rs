#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Created {
        #[serde(default)]
        pub order_id: ,
    }
    #[event("orders.nothing")]
    pub struct
    #[job("orders.archive", retry(tries = ), result = , update = Order, deadline = "1m")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Archive {
        pub order_id:
    }
    #[event("orders.sent", payload = Order)]
    pub struct Sent;
}
