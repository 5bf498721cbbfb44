// Raw identifiers compile, and no `r#` gets into a name on the wire.
use trellis::Contract;

#[trellis::contract(id = "acme.r@v1")]
pub mod r#async {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[event("moves.made", params(r#type, "match"), order_by = r#fn)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct r#Move {
        pub r#type: String,
        pub r#match: u32,
        pub r#fn: u32,
    }

    #[event("moves.undone", params(type), payload = r#Move)]
    #[allow(non_camel_case_types)]
    pub struct r#loop;

    // `union` and `raw` are words like any other.
    #[job("moves.union.raw", payload = r#Move, result = r#enum, update = r#enum)]
    #[allow(non_camel_case_types)]
    pub struct r#type;
    #[job("moves.r", deadline = "1s")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[allow(non_camel_case_types)]
    pub struct r#enum {
        pub r#in: u8,
    }

    #[group("movers")]
    #[allow(non_camel_case_types)]
    pub struct r#while(r#Move, self::r#loop);
}

fn main() {
    let _ = (r#async::EVENT.moves.made, r#async::JOB.moves.union.raw, r#async::JOB.moves.r);
    let event = r#async::Contract::events()[0];
    assert_eq!(event.params, ["type", "match"]);
    assert_eq!(event.order_by, Some("fn"));
    let manifest = serde_json::to_string(&r#async::Contract::manifest()).unwrap();
    assert!(!manifest.contains("r#"), "{manifest}");
    assert!(manifest.contains(r#""params":["type"]"#), "{manifest}");
}
