pub mod mistakes {
    #[derive(Serialize)]
    pub struct Created {
        pub id: u8,
    }
    pub struct Again;
    pub struct Nameless;
    pub struct Empty;
    pub struct Send;
    pub struct Archive;
    pub mod event {}
    pub const JOB: u8 = 1;
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
    impl ::trellis::__private::Job for Send {
        type Payload = Created;
        type Result = ();
        type Update = ::trellis::__private::NoUpdate;
        const DECLARATION: ::trellis::__private::JobDeclaration = ::trellis::__private::JobDeclaration::new(
                "acme",
                "orders.send",
            )
            .retry(::trellis::__private::Retry::new().explicit());
    }
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Job for Archive {
        type Payload = Created;
        type Result = Created;
        type Update = ::trellis::__private::NoUpdate;
        const DECLARATION: ::trellis::__private::JobDeclaration = ::trellis::__private::JobDeclaration::new(
            "acme",
            "orders.Archive",
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
        /// The jobs `orders.*`.
        #[::trellis::__private::core::prelude::v1::derive(
            ::trellis::__private::core::clone::Clone,
            ::trellis::__private::core::marker::Copy,
            ::trellis::__private::core::fmt::Debug,
        )]
        pub struct Orders {
            /// `orders.send`
            pub send: ::trellis::__private::JobHandle<super::Send>,
        }
        impl Orders {
            #[doc(hidden)]
            pub const ALL: Self = Self {
                send: ::trellis::__private::JobHandle::new(),
            };
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for Orders {
            fn default() -> Self {
                Self::ALL
            }
        }
    }
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
            ::trellis::__private::core::convert::From::from([
                <Send as ::trellis::__private::Job>::DECLARATION,
                <Archive as ::trellis::__private::Job>::DECLARATION,
            ])
        }
        fn manifest() -> ::trellis::__private::Manifest {
            #[allow(unused_mut)]
            let mut manifest = ::trellis::__private::ManifestBuilder::new("acme", "");
            manifest.event::<Created>("");
            manifest.event::<Again>("");
            manifest.event::<Nameless>("");
            manifest.job::<Send>("");
            manifest.job::<Archive>("");
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
    "write `retry(tries = 3)`"
}
::core::compile_error! {
    "`acme` has no version: an identity is a dotted lower-case name and a version, as in `acme.orders@v1`; did you mean `acme@v1`?"
}
::core::compile_error! {
    "`event` is what `#[trellis::contract]` calls the facade of its events: choose another name for this"
}
::core::compile_error! {
    "`JOB` is what `#[trellis::contract]` calls the facade of its jobs, as a value: choose another name for this"
}
::core::compile_error! {
    "`Created` is no snake_case word: write snake_case words joined by dots, as in `orders.created`; did you mean `orders.created`?"
}
::core::compile_error! {
    "`Archive` is no snake_case word: write snake_case words joined by dots, as in `orders.send_receipt`; did you mean `orders.archive`?"
}
::core::compile_error! {
    "`Created` has no field `typo`; there are: `id`"
}
::core::compile_error! {
    "a run of a job has 1 to 1000 tries, the first included"
}
::core::compile_error! {
    "`first` is longer than `longest`: delays grow from the one to the other, as in `first = \"1m\", longest = \"1h\"`"
}
::core::compile_error! {
    "a deadline is at most 365 days: `\"365d\"`"
}
::core::compile_error! {
    "the name of a consumer group is one snake_case word, as in `stock`; did you mean `g_h`?"
}
