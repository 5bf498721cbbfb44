// A payload with a parameter: on the wire there is one schema.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Created<T> {
        pub id: T,
    }

    #[event("orders.named")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Named<'a> {
        pub name: std::borrow::Cow<'a, str>,
    }

    #[event("orders.fine", payload = Created<u8>)]
    pub struct Fine;

    #[group("stock")]
    pub struct Stock<T>(Fine);
}

fn main() {
    let _ = orders::Created { id: 1 };
    let _ = orders::EVENT.orders.fine;
}
