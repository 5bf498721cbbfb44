// Fields that cannot be a token of a subject, or are not always there.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[event("orders.created", params(maybe, sometimes, paid, total, lines, pair, address, boxed, map), order_by = maybe)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Created {
        pub maybe: Option<String>,
        #[serde(skip_serializing_if = "String::is_empty", default)]
        pub sometimes: String,
        pub paid: bool,
        pub total: f64,
        pub lines: Vec<String>,
        pub pair: (u8, u8),
        pub address: Address,
        pub boxed: Box<Option<Total>>,
        pub map: std::collections::BTreeMap<String, String>,
        #[cfg(any())]
        pub conditional: String,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Address {
        pub street: String,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Total(f64);

    #[event("orders.sent", params(total, conditional), order_by = nothing)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Sent {
        pub total: Total,
        pub nothing: (),
        #[cfg(all())]
        pub conditional: String,
    }
}

fn main() {
    let _ = (orders::EVENT.orders.created, orders::EVENT.orders.sent);
}
