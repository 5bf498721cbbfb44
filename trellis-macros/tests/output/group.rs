pub mod warehouse {
    /// Keeps the stock.
    #[derive(Debug)]
    pub struct Stock;
    #[cfg(feature = "mail")]
    pub struct Mail;
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Group for Stock {
        const DECLARATION: ::trellis::__private::GroupDeclaration = ::trellis::__private::GroupDeclaration::new(
                "acme.warehouse@v1",
                "stock",
            )
            .replay(::trellis::__private::Replay::All);
        const MEMBERS: &'static [::trellis::__private::EventDeclaration] = &[
            <orders::OrderCreated as ::trellis::__private::Event>::DECLARATION,
            <orders::OrderCancelled as ::trellis::__private::Event>::DECLARATION,
        ];
    }
    #[automatically_derived]
    impl<
        __Service: ::trellis::__private::Service
            + ::trellis::__private::On<orders::OrderCreated>
            + ::trellis::__private::On<orders::OrderCancelled>,
    > ::trellis::__private::Mount<__Service> for Stock {
        fn mount(registrar: &mut impl ::trellis::__private::Registrar<__Service>) {
            ::trellis::__private::Registrar::on::<orders::OrderCreated>(registrar);
            ::trellis::__private::Registrar::on::<orders::OrderCancelled>(registrar);
        }
    }
    #[cfg(feature = "mail")]
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Group for Mail {
        const DECLARATION: ::trellis::__private::GroupDeclaration = ::trellis::__private::GroupDeclaration::new(
            "acme.warehouse@v1",
            "mail",
        );
        const MEMBERS: &'static [::trellis::__private::EventDeclaration] = &[
            <orders::OrderCreated as ::trellis::__private::Event>::DECLARATION,
        ];
    }
    #[cfg(feature = "mail")]
    #[automatically_derived]
    impl<
        __Service: ::trellis::__private::Service
            + ::trellis::__private::On<orders::OrderCreated>,
    > ::trellis::__private::Mount<__Service> for Mail {
        fn mount(registrar: &mut impl ::trellis::__private::Registrar<__Service>) {
            ::trellis::__private::Registrar::on::<orders::OrderCreated>(registrar);
        }
    }
    /// The facade at `ctx.event`: the events of `acme.warehouse@v1`.
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
    /// The facade at `ctx.job`: the jobs of `acme.warehouse@v1`.
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
        const ID: &'static str = "acme.warehouse@v1";
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
                "acme.warehouse@v1",
                "",
            );
            manifest.group::<Stock>("Keeps the stock.");
            #[cfg(feature = "mail")] manifest.group::<Mail>("");
            manifest.build()
        }
    }
}
