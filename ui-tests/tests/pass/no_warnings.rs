//! Generated code gives no cause for a warning, however strict the caller is.
#![deny(warnings, missing_docs, unreachable_pub, unused, nonstandard_style, future_incompatible, rust_2024_compatibility)]
#![deny(missing_debug_implementations, missing_copy_implementations, unused_qualifications, single_use_lifetimes)]
#![deny(trivial_casts, let_underscore_drop, unit_bindings, redundant_imports, variant_size_differences, unsafe_code)]

/// Nothing in here is used.
#[trellis::contract(id = "acme.unused@v1")]
mod unused {
    /// Something.
    #[event("things.done", params(id))]
    #[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub(crate) struct Done {
        /// Which.
        pub(crate) id: u8,
    }

    #[event("things.undone", payload = Done)]
    #[derive(Debug, Clone, Copy)]
    struct Undone;

    #[job("things.make", payload = Done, retry(tries = 1), deadline = "1s")]
    #[derive(Debug, Clone, Copy)]
    struct Make;

    #[group("doers")]
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Doers(Done, Undone);
}

/// Everything in here is public.
#[trellis::contract(id = "acme.public@v1")]
pub mod public {
    #[allow(unused_imports)]
    use trellis::{Event, EventDeclaration, EventHandle, Group, Manifest, ManifestBuilder, Mount, On, Registrar, Replay};
    #[allow(unused_imports)]
    use trellis::{Job, JobDeclaration, JobHandle, NoUpdate, Retry};

    use derives::*;

    mod derives {
        pub(super) use core::fmt::Debug;
    }

    #[doc = concat!("Someth", "ing.")]
    #[event("things.done", payload = String)]
    #[derive(Debug, Clone, Copy)]
    pub struct Done;

    /// Once.
    #[deprecated(note = "nobody does that any more")]
    #[event("things.outdone", payload = String)]
    #[derive(Debug, Clone, Copy)]
    pub struct Outdone;

    #[doc = concat!("Makes someth", "ing.")]
    #[job("things.make", payload = String, result = u8, update = u8, retry(first = "1s"), deadline = "1s")]
    #[derive(Debug, Clone, Copy)]
    pub struct Make;

    /// Once.
    #[deprecated(note = "nobody makes that any more")]
    #[job("things.outmake", payload = String, retry = "explicit")]
    #[derive(Debug, Clone, Copy)]
    pub struct Outmake;

    /// Nothing.
    #[group("doers", replay = "new")]
    #[derive(Clone, Copy)]
    pub struct Doers(Done);

    impl Debug for Doers {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("Doers")
        }
    }
}

fn main() {}
