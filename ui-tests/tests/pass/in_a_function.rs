// A contract can be an item of a function body, as in a test.
use trellis::Contract;

fn main() {
    #[trellis::contract(id = "acme.local@v1")]
    mod local {
        #[event("things.done", params(id))]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct Done {
            pub id: u8,
        }
        #[event("things.undone", payload = Done)]
        struct Undone;
        #[job("things.make", payload = Done, result = Done)]
        pub struct Make;
        #[group("doers")]
        pub struct Doers(Done, Undone);
    }
    let _ = (local::EVENT.things.done, local::JOB.things.make);
    assert_eq!(local::Contract::events().len(), 2);

    // An empty contract is one, too.
    #[trellis::contract(id = "acme.empty@v1")]
    mod empty {}
    assert_eq!(empty::Contract::ID, "acme.empty@v1");
    assert!(empty::Contract::events().is_empty() && empty::Contract::jobs().is_empty());
}
