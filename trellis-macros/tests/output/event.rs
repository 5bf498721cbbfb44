/// Orders: accepted and given up.
pub mod orders {
    //! The second line.
    use serde::{Deserialize, Serialize};
    /// An order was accepted.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct OrderCreated {
        pub order_id: String,
        pub r#type: String,
        pub customer_id: u64,
    }
    #[cfg(feature = "cancel")]
    pub(crate) struct OrderCancelled;
    struct LineAdded;
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Line {}
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Event for OrderCreated {
        type Payload = OrderCreated;
        const DECLARATION: ::trellis::__private::EventDeclaration = ::trellis::__private::EventDeclaration::new(
                "acme.orders@v1",
                "orders.created",
            )
            .params(&["order_id", "type"])
            .order_by("customer_id");
    }
    #[cfg(feature = "cancel")]
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Event for OrderCancelled {
        type Payload = super::model::Order;
        const DECLARATION: ::trellis::__private::EventDeclaration = ::trellis::__private::EventDeclaration::new(
            "acme.orders@v1",
            "orders.cancelled",
        );
    }
    #[automatically_derived]
    #[allow(deprecated)]
    impl ::trellis::__private::Event for LineAdded {
        type Payload = Line;
        const DECLARATION: ::trellis::__private::EventDeclaration = ::trellis::__private::EventDeclaration::new(
            "acme.orders@v1",
            "orders.lines.added",
        );
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
            /// `orders.lines.*`
            pub lines: OrdersLines,
            /// An order was accepted.
            pub created: ::trellis::__private::EventHandle<super::OrderCreated>,
            #[cfg(feature = "cancel")]
            /// `orders.cancelled`
            pub(crate) cancelled: ::trellis::__private::EventHandle<
                super::OrderCancelled,
            >,
        }
        impl Orders {
            #[doc(hidden)]
            pub const ALL: Self = Self {
                lines: OrdersLines::ALL,
                created: ::trellis::__private::EventHandle::new(),
                #[cfg(feature = "cancel")]
                cancelled: ::trellis::__private::EventHandle::new(),
            };
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for Orders {
            fn default() -> Self {
                Self::ALL
            }
        }
        /// The events `orders.lines.*`.
        #[::trellis::__private::core::prelude::v1::derive(
            ::trellis::__private::core::clone::Clone,
            ::trellis::__private::core::marker::Copy,
            ::trellis::__private::core::fmt::Debug,
        )]
        pub struct OrdersLines {
            /// `orders.lines.added`
            pub(super) added: ::trellis::__private::EventHandle<super::LineAdded>,
        }
        impl OrdersLines {
            #[doc(hidden)]
            pub const ALL: Self = Self {
                added: ::trellis::__private::EventHandle::new(),
            };
        }
        #[automatically_derived]
        impl ::trellis::__private::core::default::Default for OrdersLines {
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
        const ID: &'static str = "acme.orders@v1";
        type Events = event::Root;
        type Jobs = job::Root;
        fn events() -> ::trellis::__private::std::vec::Vec<
            ::trellis::__private::EventDeclaration,
        > {
            ::trellis::__private::core::convert::From::from([
                <OrderCreated as ::trellis::__private::Event>::DECLARATION,
                #[cfg(feature = "cancel")]
                <OrderCancelled as ::trellis::__private::Event>::DECLARATION,
                <LineAdded as ::trellis::__private::Event>::DECLARATION,
            ])
        }
        fn jobs() -> ::trellis::__private::std::vec::Vec<
            ::trellis::__private::JobDeclaration,
        > {
            ::trellis::__private::core::convert::From::from([])
        }
        fn manifest() -> ::trellis::__private::Manifest {
            #[allow(unused_mut)]
            let mut manifest = ::trellis::__private::ManifestBuilder::new(
                "acme.orders@v1",
                "Orders: accepted and given up.\nThe second line.",
            );
            manifest.event::<OrderCreated>("An order was accepted.");
            #[cfg(feature = "cancel")] manifest.event::<OrderCancelled>("");
            manifest.event::<LineAdded>("");
            manifest.build()
        }
    }
}
