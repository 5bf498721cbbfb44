mod empty {
    /// The facade at `ctx.event`: the events of `acme.empty@v1`.
    #[allow(dead_code, deprecated)]
    pub mod event {
        /// All events.
        #[::trellis::__private::core::prelude::v1::derive(
            ::trellis::__private::core::clone::Clone,
            ::trellis::__private::core::marker::Copy,
            ::trellis::__private::core::fmt::Debug,
        )]
        pub struct Root {}
        impl Root {
            #[doc(hidden)]
            pub const ALL: Self = Self {};
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for Root {
            fn default() -> Self {
                Self::ALL
            }
        }
    }
    /// The facade at `ctx.event`, for use where there is no context.
    #[allow(dead_code)]
    pub const EVENT: event::Root = event::Root::ALL;
    /// The facade at `ctx.job`: the jobs of `acme.empty@v1`.
    #[allow(dead_code, deprecated)]
    pub mod job {
        /// All jobs.
        #[::trellis::__private::core::prelude::v1::derive(
            ::trellis::__private::core::clone::Clone,
            ::trellis::__private::core::marker::Copy,
            ::trellis::__private::core::fmt::Debug,
        )]
        pub struct Root {}
        impl Root {
            #[doc(hidden)]
            pub const ALL: Self = Self {};
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for Root {
            fn default() -> Self {
                Self::ALL
            }
        }
    }
    /// The facade at `ctx.job`, for use where there is no context.
    #[allow(dead_code)]
    pub const JOB: job::Root = job::Root::ALL;
    /// This contract, as a type.
    #[::trellis::__private::core::prelude::v1::derive(
        ::trellis::__private::core::clone::Clone,
        ::trellis::__private::core::marker::Copy,
        ::trellis::__private::core::default::Default,
        ::trellis::__private::core::fmt::Debug,
    )]
    #[allow(dead_code)]
    pub struct Contract;
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Contract for Contract {
        const ID: &'static str = "acme.empty@v1";
        type Events = event::Root;
        type Jobs = job::Root;
        fn events() -> ::trellis::__private::std::vec::Vec<
            ::trellis::__private::EventDeclaration,
        > {
            ::trellis::__private::core::convert::From::from([])
        }
        fn jobs() -> ::trellis::__private::std::vec::Vec<
            ::trellis::__private::JobDeclaration,
        > {
            ::trellis::__private::core::convert::From::from([])
        }
        fn manifest() -> ::trellis::__private::Manifest {
            #[allow(unused_mut)]
            let mut manifest = ::trellis::__private::ManifestBuilder::new(
                "acme.empty@v1",
                "",
            );
            manifest.build()
        }
    }
}
