#[trellis::contract(id = "acme.empty@v1")]
mod empty {}
