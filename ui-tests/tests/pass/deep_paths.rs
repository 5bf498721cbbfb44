// Names of any depth nest, and different paths never share a type of the facade.
use trellis::{Contract, Event};

#[trellis::contract(id = "acme.deep@v1")]
pub mod deep {
    #[event("top")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Top {}

    #[event("a.b.c.d.e.f", payload = Top)]
    pub struct Deepest;
    #[event("a.b_c.d", payload = Top)]
    pub struct One;
    #[event("a_b.c.d", payload = Top)]
    pub struct Other;
    #[event("a.b.x", payload = Top)]
    pub struct Later;
    #[event("root.top", payload = Top)]
    pub struct Root;
}

fn main() {
    let event = deep::EVENT;
    let _ = (event.top, event.a.b.c.d.e.f, event.a.b_c.d, event.a_b.c.d, event.a.b.x, event.root.top);
    assert_eq!(deep::Other::DECLARATION.name, "a_b.c.d");
    assert_eq!(deep::Contract::events().len(), 6);
}
