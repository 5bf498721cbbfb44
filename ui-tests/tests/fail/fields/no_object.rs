// Parameters of a payload that is no JSON object, or whose fields cannot be seen.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[event("orders.unit", params(id))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Unit;

    #[event("orders.tuple", params(id))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Tuple(u8, u8);

    #[event("orders.newtype", order_by = id)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Newtype(String);

    #[event("orders.choice", order_by = id)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub enum Choice {
        A { id: u8 },
    }

    #[event("orders.many", params(id), payload = Vec<Flat>)]
    pub struct Many;

    #[event("orders.flat", params(id))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Flat {
        pub id: u8,
        #[serde(flatten)]
        pub rest: Rest,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Rest {}
}

fn main() {
    let event = orders::EVENT;
    let _ = (event.orders.unit, event.orders.tuple, event.orders.newtype, event.orders.choice);
    let _ = (event.orders.many, event.orders.flat);
}
