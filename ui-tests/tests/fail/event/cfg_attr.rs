// A declaration that depends on a feature, while its type does not.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[cfg_attr(all(), event("orders.created"), derive(Debug))]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Created {}

    #[cfg_attr(any(), trellis::event("orders.sent"))]
    pub struct Sent;
}

fn main() {
    // The other attributes beside it stay.
    println!("{:?}", orders::Created {});
    let _ = orders::Sent;
}
