// Hygiene: a contract may have types with the names that generated code could have meant.
#![allow(dead_code, unused)]

#[trellis::contract(id = "acme.shadow@v1")]
pub mod shadow {
    pub struct Result;
    pub struct Option;
    pub struct String;
    pub struct Vec;
    pub struct Box;
    pub trait Send {}
    pub trait Clone {}
    pub trait Copy {}
    pub trait Default {}
    pub trait Debug {}
    pub struct Manifest;
    pub struct Event;
    pub struct Group;
    pub struct S;
    pub struct Duration;
    pub struct Job;
    pub struct JobHandle;
    pub struct JobDeclaration;
    pub struct Retry;
    pub struct NoUpdate;
    pub struct Payload;
    pub struct Update;
    pub mod std {}
    pub mod core {}
    pub mod trellis {}
    pub mod serde {}
    pub fn manifest() {}
    pub fn registrar() {}
    macro_rules! concat {
        () => {};
    }
    pub(crate) use concat;

    #[event("shadow.moved")]
    #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
    pub struct Moved {
        pub to: u8,
    }

    // The groups of the facade are called like types of the prelude.
    #[event("option.some.vec.moved", payload = Moved)]
    pub struct Some;
    #[event("root.self_.moved", payload = Moved)]
    pub struct SelfMoved;

    #[job("shadow.move_to", payload = Moved, retry(tries = 2, first = "1s", explicit), deadline = "1ms")]
    pub struct Move;
    #[job("job.job.option", payload = Moved, result = Moved, update = Moved)]
    pub struct None;

    #[group("movers")]
    pub struct Movers(Moved, self::Some, SelfMoved);
}

fn main() {
    let _ = shadow::EVENT.shadow.moved;
    let _ = shadow::EVENT.option.some.vec.moved;
    let _ = shadow::EVENT.root.self_.moved;
    let _ = shadow::JOB.shadow.move_to;
    let _ = shadow::JOB.job.job.option;
    let manifest = <shadow::Contract as trellis::Contract>::manifest();
    assert_eq!(manifest.groups["movers"].members.len(), 3);
}
