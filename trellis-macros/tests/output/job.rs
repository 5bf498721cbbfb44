pub mod orders {
    /// Sends a receipt.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct SendReceipt {
        pub order_id: String,
    }
    pub struct Sent;
    pub(crate) struct Close;
    #[cfg(feature = "clean")]
    pub struct Clean;
    struct Retry;
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Event for Sent {
        type Payload = SendReceipt;
        const DECLARATION: ::trellis::__private::EventDeclaration = ::trellis::__private::EventDeclaration::new(
            "acme.orders@v1",
            "orders.send_receipt",
        );
    }
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Job for SendReceipt {
        type Payload = SendReceipt;
        type Result = Receipt;
        type Update = super::model::Step;
        const DECLARATION: ::trellis::__private::JobDeclaration = ::trellis::__private::JobDeclaration::new(
                "acme.orders@v1",
                "orders.send_receipt",
            )
            .retry(
                ::trellis::__private::Retry::new()
                    .tries(8)
                    .delays(
                        ::trellis::__private::core::time::Duration::from_secs(1),
                        ::trellis::__private::core::time::Duration::from_secs(5400),
                    )
                    .explicit(),
            )
            .deadline(::trellis::__private::core::time::Duration::from_secs(600));
    }
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Job for Close {
        type Payload = super::model::Order;
        type Result = ();
        type Update = ::trellis::__private::NoUpdate;
        const DECLARATION: ::trellis::__private::JobDeclaration = ::trellis::__private::JobDeclaration::new(
                "acme.orders@v1",
                "orders.archive.close",
            )
            .retry(::trellis::__private::Retry::new().explicit());
    }
    #[cfg(feature = "clean")]
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Job for Clean {
        type Payload = u8;
        type Result = ();
        type Update = ::trellis::__private::NoUpdate;
        const DECLARATION: ::trellis::__private::JobDeclaration = ::trellis::__private::JobDeclaration::new(
                "acme.orders@v1",
                "clean",
            )
            .retry(
                ::trellis::__private::Retry::new()
                    .delays(
                        ::trellis::__private::core::time::Duration::from_millis(250),
                        ::trellis::__private::Retry::new().longest,
                    ),
            );
    }
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Job for Retry {
        type Payload = u8;
        type Result = ();
        type Update = ::trellis::__private::NoUpdate;
        const DECLARATION: ::trellis::__private::JobDeclaration = ::trellis::__private::JobDeclaration::new(
                "acme.orders@v1",
                "orders.retry",
            )
            .retry(
                ::trellis::__private::Retry::new()
                    .delays(
                        ::trellis::__private::Retry::new().first,
                        ::trellis::__private::core::time::Duration::from_secs(86400),
                    ),
            )
            .deadline(::trellis::__private::core::time::Duration::from_millis(60001));
    }
    /// The facade at `ctx.event`: the events of `acme.orders@v1`.
    #[allow(dead_code, deprecated)]
    pub mod event {
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
            /// `orders.send_receipt`
            pub send_receipt: ::trellis::__private::EventHandle<super::Sent>,
        }
        impl Orders {
            #[doc(hidden)]
            pub const ALL: Self = Self {
                send_receipt: ::trellis::__private::EventHandle::new(),
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
    pub const EVENT: event::Root = event::Root::ALL;
    /// The facade at `ctx.job`: the jobs of `acme.orders@v1`.
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
            #[cfg(feature = "clean")]
            /// `clean`
            pub clean: ::trellis::__private::JobHandle<super::Clean>,
        }
        impl Root {
            #[doc(hidden)]
            pub const ALL: Self = Self {
                orders: Orders::ALL,
                #[cfg(feature = "clean")]
                clean: ::trellis::__private::JobHandle::new(),
            };
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
            /// `orders.archive.*`
            pub archive: OrdersArchive,
            /// Sends a receipt.
            pub send_receipt: ::trellis::__private::JobHandle<super::SendReceipt>,
            /// `orders.retry`
            pub(super) retry: ::trellis::__private::JobHandle<super::Retry>,
        }
        impl Orders {
            #[doc(hidden)]
            pub const ALL: Self = Self {
                archive: OrdersArchive::ALL,
                send_receipt: ::trellis::__private::JobHandle::new(),
                retry: ::trellis::__private::JobHandle::new(),
            };
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for Orders {
            fn default() -> Self {
                Self::ALL
            }
        }
        /// The jobs `orders.archive.*`.
        #[::trellis::__private::core::prelude::v1::derive(
            ::trellis::__private::core::clone::Clone,
            ::trellis::__private::core::marker::Copy,
            ::trellis::__private::core::fmt::Debug,
        )]
        pub struct OrdersArchive {
            /// `orders.archive.close`
            pub(crate) close: ::trellis::__private::JobHandle<super::Close>,
        }
        impl OrdersArchive {
            #[doc(hidden)]
            pub const ALL: Self = Self {
                close: ::trellis::__private::JobHandle::new(),
            };
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for OrdersArchive {
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
        const ID: &'static str = "acme.orders@v1";
        type Events = event::Root;
        type Jobs = job::Root;
        fn events() -> ::trellis::__private::std::vec::Vec<
            ::trellis::__private::EventDeclaration,
        > {
            ::trellis::__private::core::convert::From::from([
                <Sent as ::trellis::__private::Event>::DECLARATION,
            ])
        }
        fn jobs() -> ::trellis::__private::std::vec::Vec<
            ::trellis::__private::JobDeclaration,
        > {
            ::trellis::__private::core::convert::From::from([
                <SendReceipt as ::trellis::__private::Job>::DECLARATION,
                <Close as ::trellis::__private::Job>::DECLARATION,
                #[cfg(feature = "clean")]
                <Clean as ::trellis::__private::Job>::DECLARATION,
                <Retry as ::trellis::__private::Job>::DECLARATION,
            ])
        }
        fn manifest() -> ::trellis::__private::Manifest {
            #[allow(unused_mut)]
            let mut manifest = ::trellis::__private::ManifestBuilder::new(
                "acme.orders@v1",
                "",
            );
            manifest.event::<Sent>("");
            manifest.job::<SendReceipt>("Sends a receipt.");
            manifest.job::<Close>("");
            #[cfg(feature = "clean")] manifest.job::<Clean>("");
            manifest.job::<Retry>("");
            manifest.build()
        }
    }
}
