// `crate = ..` for a `trellis` that is renamed in Cargo.toml, or re-exported by another crate.
extern crate trellis as renamed;

mod platform {
    pub mod prelude {
        pub use trellis as contracts;
    }
}

#[renamed::contract(id = "acme.renamed@v1", crate = renamed)]
pub mod by_name {
    #[event("things.done")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Done {}
    #[job("things.make", payload = u8, retry(first = "1s"), deadline = "1m")]
    pub struct Make;
    #[group("doers")]
    pub struct Doers(Done);
}

#[renamed::contract(crate = ::renamed, id = "acme.absolute@v1")]
pub mod absolute {
    #[renamed::event("things.done")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Done {}
    #[renamed::job("things.make", payload = u8, retry(first = "1s"), deadline = "1m")]
    pub struct Make;
}

#[platform::prelude::contracts::contract(id = "acme.reexported@v1", crate = crate::platform::prelude::contracts)]
pub mod reexported {
    #[event("things.done")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Done {}
}

#[platform::prelude::contracts::contract(id = "acme.relative@v1", crate = super::platform::prelude::contracts)]
pub mod relative {
    #[event("things.done")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Done {}
    #[job("things.make", payload = u8, retry(first = "1s"), deadline = "1m")]
    pub struct Make;
    #[group("doers")]
    pub struct Doers(Done);
}

#[trellis::contract(id = "acme.own@v1", crate = self::inner::trellis)]
pub mod own {
    pub mod inner {
        pub use ::trellis;
    }
    #[event("things.done")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Done {}
    #[job("things.make", payload = u8, retry(first = "1s"), deadline = "1m")]
    pub struct Make;
}

fn main() {
    let _ = (by_name::EVENT.things.done, absolute::EVENT.things.done, reexported::EVENT.things.done);
    let _ = (relative::EVENT.things.done, own::EVENT.things.done);
    let _ = (by_name::JOB.things.make, absolute::JOB.things.make, relative::JOB.things.make, own::JOB.things.make);
}
