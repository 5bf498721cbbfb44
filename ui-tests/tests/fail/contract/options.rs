// Options that other macros have, or that were meant for something else.
#[trellis::contract(name = "orders", id = "acme.orders@v1", id = "acme.orders@v2", crate = "::trellis", version = 1)]
pub mod orders {}

#[trellis::contract("acme.orders@v1")]
pub mod without_key {}

#[trellis::contract(id = "acme.orders@v1" crate = ::trellis)]
pub mod without_comma {}

fn main() {
    let _ = (orders::Contract, without_key::Contract, without_comma::EVENT);
}
