// Names as other systems write them: PascalCase, dashes, slashes, wildcards, keywords; or none at all.
use trellis::Event;

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {}

    #[event("orders.created", payload = Order)]
    pub struct Right;

    #[event("OrderCreated", payload = Order)]
    pub struct Pascal;
    #[event("orders.created-now", payload = Order)]
    pub struct Dashes;
    #[event("orders..created", payload = Order)]
    pub struct EmptyWord;
    #[event("", payload = Order)]
    pub struct Empty;
    #[event("orders.*", payload = Order)]
    pub struct Wildcard;
    #[event("orders.move", payload = Order)]
    pub struct Keyword;
    #[event("orders.gen", payload = Order)]
    pub struct Edition2024;
    #[event("self.created", payload = Order)]
    pub struct Myself;

    #[event]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct NoArguments {}
    #[event()]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct NoName {}
    #[event(payload = Order)]
    pub struct OptionFirst;
    #[event(orders.dotted, payload = Order)]
    pub struct NoString;
    #[event(name = "orders.named", payload = Order)]
    pub struct Named;
    #[event = "orders.equals"]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Equals {}

    // They are events all the same.
    #[group("all")]
    pub struct All(Pascal, Dashes, EmptyWord, Empty, Wildcard, Keyword, NoArguments, NoName, OptionFirst, NoString, Named, Equals);
}

fn main() {
    let _ = (orders::EVENT.orders.created, orders::EVENT.orders.named);
    let _ = <orders::OptionFirst as Event>::DECLARATION;
}
