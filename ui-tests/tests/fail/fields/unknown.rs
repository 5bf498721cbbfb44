// A field that is misspelt, named as in Rust, or does not travel.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[event("orders.created", params(oder_id, customer), order_by = region_code)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Created {
        pub order_id: String,
        #[serde(rename = "region-code")]
        pub region_code: String,
        pub r#type: String,
    }

    #[event("orders.sent", params(order_id, secret, hidden), payload = Sent)]
    pub struct OrderSent;
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all(serialize = "PascalCase"))]
    pub struct Sent {
        pub order_id: String,
        #[serde(skip)]
        pub secret: String,
        #[serde(skip_serializing)]
        pub hidden: String,
    }

    #[event("orders.emptied", params(order_id))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Emptied {}

    #[event("orders.paid", params(id, id), order_by = id)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Paid {
        pub id: u8,
    }
}

fn main() {
    let event = orders::EVENT;
    let _ = (event.orders.created, event.orders.sent, event.orders.emptied, event.orders.paid);
}
