// Names that are as natural for the caller as for the macro.
use trellis::Event;

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use trellis::Contract;

    #[event("contracts.signed")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Signed {}

    pub mod event {}
    pub const EVENT: u8 = 1;
    pub enum job {}
    pub fn JOB() {}
}

#[trellis::contract(id = "acme.law@v1")]
pub mod law {
    #[event("contracts.signed")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Contract {}
}

// Macros called `event` and `job` are no harm.
#[trellis::contract(id = "acme.log@v1")]
pub mod log {
    #[allow(unused_imports)]
    use trellis::{event, group, job};

    #[event("log.written")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Written {}

    #[job("log.rotate", payload = Written)]
    pub struct Rotate;
}

fn main() {
    let _ = (orders::Signed::DECLARATION, law::Contract {}, law::Contract::DECLARATION, law::EVENT.contracts.signed);
    let _ = (log::EVENT.log.written, log::JOB.log.rotate);
}
