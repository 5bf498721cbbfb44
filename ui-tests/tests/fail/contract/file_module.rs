// Moving the contract to a file of its own: rustc does not show a macro what is in it.
#[trellis::contract(id = "acme.orders@v1")]
#[path = "../../support/orders.rs"]
pub mod orders;

fn main() {}
