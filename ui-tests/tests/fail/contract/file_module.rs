// Moving the contract to a file of its own: rustc does not show a macro what is in it.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders;

fn main() {}
