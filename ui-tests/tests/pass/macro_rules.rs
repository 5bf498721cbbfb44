// Contracts that a `macro_rules!` writes, with its fragments everywhere.
use trellis::Contract;

macro_rules! contract {
    ($(#[$doc:meta])* $vis:vis $module:ident = $id:literal, $name:literal, $marker:ident { $field:ident: $ty:ty }, $item:item $payload:ty, $tries:literal $time:expr) => {
        $(#[$doc])*
        #[trellis::contract(id = $id)]
        $vis mod $module {
            $(#[$doc])*
            #[event($name, params($field), order_by = $field)]
            #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            $vis struct $marker {
                pub $field: $ty,
            }

            $item

            #[event("things.also", payload = $payload, params("id"))]
            pub struct Also;

            #[job($name, payload = $payload, result = $ty, update = $payload, retry(tries = $tries, first = $time), deadline = $time)]
            $vis struct Do;

            #[group("all")]
            pub struct All($marker, Also);
        }
    };
}

macro_rules! declaration {
    ($(#[$meta:meta])+ $name:ident) => {
        #[trellis::contract(id = "acme.meta@v1")]
        mod meta {
            $(#[$meta])+
            #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            pub struct $name { pub id: u8 }
        }
    };
}

contract! {
    /// Things.
    pub things = "acme.things@v1", "things.done", Done { id: u64 },
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Thing { pub id: u64 }
    Thing, 7 "1m"
}

declaration! { #[event("meta.done", params(id))] Metadone }

macro_rules! job {
    ($($option:tt)*) => {
        #[trellis::contract(id = "acme.routine@v1")]
        mod routine {
            #[job("routine.run", $($option)*)]
            pub struct Run;
        }
    };
}

job! { payload = u8, retry = "explicit" }

fn main() {
    let _ = (things::EVENT.things.done, things::EVENT.things.also, meta::EVENT.meta.done);
    let manifest = things::Contract::manifest();
    assert_eq!(manifest.description, "Things.");
    assert_eq!(manifest.groups["all"].members.len(), 2);
    assert_eq!(manifest.events["things.also"].params, ["id"]);
    let job = &manifest.jobs["things.done"];
    assert_eq!((job.tries, job.first_delay_ms, job.deadline_ms), (7, 60_000, Some(60_000)));
    let _ = (things::JOB.things.done, routine::JOB.routine.run);
    assert_eq!(meta::Contract::events()[0].params, ["id"]);
}
