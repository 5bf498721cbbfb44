// `#[cfg]` on a declaration: everything that is generated for it comes and goes with it.
use trellis::Contract;

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[cfg(not(any()))]
    #[event("orders.on")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct On {}

    #[event("orders.off")]
    #[cfg(any())]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Off {
        pub field: DoesNotExist,
    }

    #[event("only.off")]
    #[cfg_attr(all(), cfg(any()), derive(Missing))]
    pub struct OnlyOff;

    // One of two at a time may have the same name.
    #[cfg(any())]
    #[event("orders.either")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Either {
        pub old: u8,
    }
    #[cfg(not(any()))]
    #[event("orders.either", params(new))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Either {
        pub new: u8,
    }

    #[cfg(not(any()))]
    #[job("orders.on", payload = On)]
    pub struct OnJob;
    #[job("orders.off", payload = DoesNotExist, result = DoesNotExist, update = DoesNotExist)]
    #[cfg(any())]
    pub struct OffJob;
    #[cfg(any())]
    #[job("orders.either", payload = On, deadline = "1s")]
    pub struct EitherJob;
    #[cfg(all())]
    #[job("orders.either", payload = On, deadline = "2s")]
    pub struct EitherJob;

    #[cfg(any())]
    #[group("off")]
    pub struct OffGroup(Off);

    #[cfg(all())]
    #[group("on", replay = "all")]
    pub struct OnGroup(On, Either);
}

fn main() {
    let _ = orders::EVENT.orders.on;
    let _ = orders::EVENT.orders.either;
    let _: orders::event::Only = orders::EVENT.only; // stays, empty
    let names: Vec<&str> = orders::Contract::events().iter().map(|event| event.name).collect();
    assert_eq!(names, ["orders.on", "orders.either"]);
    let _ = (orders::JOB.orders.on, orders::JOB.orders.either);
    let jobs: Vec<_> = orders::Contract::jobs().iter().map(|job| (job.name, job.deadline)).collect();
    assert_eq!(jobs, [("orders.on", None), ("orders.either", Some(std::time::Duration::from_secs(2)))]);
    let manifest = orders::Contract::manifest();
    assert_eq!(manifest.events.keys().collect::<Vec<_>>(), [&"orders.either", &"orders.on"]);
    assert_eq!(manifest.jobs.keys().collect::<Vec<_>>(), [&"orders.either", &"orders.on"]);
    assert_eq!(manifest.groups.keys().collect::<Vec<_>>(), [&"on"]);
    assert_eq!(manifest.events["orders.either"].params, ["new"]);
}
