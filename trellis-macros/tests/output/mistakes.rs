pub mod mistakes {
    #[derive(Serialize)]
    pub struct Created {
        pub id: u8,
    }
    pub struct Again;
    pub struct Nameless;
    pub struct Empty;
    pub mod event {}
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Event for Created {
        type Payload = Created;
        const DECLARATION: ::trellis::__private::EventDeclaration = ::trellis::__private::EventDeclaration::new(
                "acme",
                "orders.created",
            )
            .params(&["typo"]);
    }
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Event for Again {
        type Payload = Created;
        const DECLARATION: ::trellis::__private::EventDeclaration = ::trellis::__private::EventDeclaration::new(
            "acme",
            "orders.Created",
        );
    }
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Event for Nameless {
        type Payload = Created;
        const DECLARATION: ::trellis::__private::EventDeclaration = ::trellis::__private::EventDeclaration::new(
            "acme",
            "",
        );
    }
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Group for Empty {
        const DECLARATION: ::trellis::__private::GroupDeclaration = ::trellis::__private::GroupDeclaration::new(
            "acme",
            "g.h",
        );
        const MEMBERS: &'static [::trellis::__private::EventDeclaration] = &[];
    }
    #[automatically_derived]
    impl<__Service: ::trellis::__private::Service> ::trellis::__private::Mount<__Service>
    for Empty {
        fn mount(registrar: &mut impl ::trellis::__private::Registrar<__Service>) {}
    }
    /// The facade at `ctx.event`: the events of `acme`.
    #[allow(dead_code, deprecated)]
    pub mod __event {
        /// All events.
        #[::trellis::__private::core::prelude::v1::derive(
            ::trellis::__private::core::clone::Clone,
            ::trellis::__private::core::marker::Copy,
            ::trellis::__private::core::fmt::Debug,
        )]
        pub struct Root {
            /// `orders.*`
            pub orders: Orders,
        }
        impl Root {
            #[doc(hidden)]
            pub const ALL: Self = Self { orders: Orders::ALL };
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for Root {
            fn default() -> Self {
                Self::ALL
            }
        }
        /// The events `orders.*`.
        #[::trellis::__private::core::prelude::v1::derive(
            ::trellis::__private::core::clone::Clone,
            ::trellis::__private::core::marker::Copy,
            ::trellis::__private::core::fmt::Debug,
        )]
        pub struct Orders {
            /// `orders.created`
            pub created: ::trellis::__private::EventHandle<super::Created>,
        }
        impl Orders {
            #[doc(hidden)]
            pub const ALL: Self = Self {
                created: ::trellis::__private::EventHandle::new(),
            };
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for Orders {
            fn default() -> Self {
                Self::ALL
            }
        }
    }
    /// The facade at `ctx.event`, for use where there is no context.
    #[allow(dead_code)]
    pub const EVENT: __event::Root = __event::Root::ALL;
    /// The facade at `ctx.job`: the jobs of `acme`.
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
        const ID: &'static str = "acme";
        type Events = __event::Root;
        type Jobs = job::Root;
        fn events() -> ::trellis::__private::std::vec::Vec<
            ::trellis::__private::EventDeclaration,
        > {
            ::trellis::__private::core::convert::From::from([
                <Created as ::trellis::__private::Event>::DECLARATION,
                <Again as ::trellis::__private::Event>::DECLARATION,
                <Nameless as ::trellis::__private::Event>::DECLARATION,
            ])
        }
        fn jobs() -> ::trellis::__private::std::vec::Vec<
            ::trellis::__private::JobDeclaration,
        > {
            ::trellis::__private::core::convert::From::from([])
        }
        fn manifest() -> ::trellis::__private::Manifest {
            #[allow(unused_mut)]
            let mut manifest = ::trellis::__private::ManifestBuilder::new("acme", "");
            manifest.event::<Created>("");
            manifest.event::<Again>("");
            manifest.event::<Nameless>("");
            manifest.group::<Empty>("");
            manifest.build()
        }
    }
}
::core::compile_error! {
    "unknown option `what`; the options are: params, order_by, payload"
}
::core::compile_error! {
    "expected the name, as a string: `#[event(\"orders.created\")] pub struct OrderCreated { … }`"
}
::core::compile_error! {
    "a group without events consumes nothing: `struct Empty(orders::OrderCreated);`"
}
::core::compile_error! {
    "`acme` has no version: an identity is a dotted lower-case name and a version, as in `acme.orders@v1`; did you mean `acme@v1`?"
}
::core::compile_error! {
    "`event` is what `#[trellis::contract]` calls the facade of its events: choose another name for this"
}
::core::compile_error! {
    "`Created` is no snake_case word: write snake_case words joined by dots, as in `orders.created`; did you mean `orders.created`?"
}
::core::compile_error! {
    "`Created` has no field `typo`; there are: `id`"
}
::core::compile_error! {
    "the name of a consumer group is one snake_case word, as in `stock`; did you mean `g_h`?"
}
