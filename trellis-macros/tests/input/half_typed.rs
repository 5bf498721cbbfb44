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
    #[event("orders.sent", payload = Order)]
    pub struct Sent;
}
