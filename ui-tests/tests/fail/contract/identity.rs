// The identity is the first thing one writes, and easily taken for a crate name or a semver version.
use trellis::Contract;

#[trellis::contract]
pub mod missing {}

#[trellis::contract()]
pub mod r#async {}

#[trellis::contract(id = "Acme.OrderBook")]
pub mod no_version {}

#[trellis::contract(id = "acme.orders@1.2")]
pub mod semver {}

#[trellis::contract(id = "acme.orders@v01")]
pub mod leading_zero {}

#[trellis::contract(id = "acme.order-book@v1")]
pub mod dashes {}

#[trellis::contract(id = orders)]
pub mod no_string {}

fn main() {
    // The types are there all the same.
    let _ = (missing::Contract::manifest(), semver::Contract::ID, dashes::EVENT, no_string::Contract);
}
