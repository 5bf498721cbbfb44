//! The contract of the orders service: what it owns, and nothing of how it works.
//!
//! A contract crate depends on `trellis` and `serde` only, so a consumer gets no database driver,
//! no NATS client and no async runtime with it.

/// Orders: accepted from customers, told to whoever has to act on them.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// An order was accepted: it is valid, its id is new, and it is in the books.
    ///
    /// The region is part of the subject, so that a consumer can listen to one region. The events
    /// of one customer enter the stream in the order in which the orders were accepted.
    #[event("orders.created", params(region), order_by = customer_id)]
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct OrderCreated {
        /// Which order.
        pub order_id: String,
        /// Whose order.
        pub customer_id: String,
        /// Where it is to be delivered, in the customer's own words.
        pub region: String,
        /// What was ordered.
        pub sku: String,
        /// How many of it.
        #[schemars(range(min = 1))]
        pub quantity: u32,
        /// What all of them cost, in cents of a euro.
        pub total_cents: u64,
    }

    /// Sends the customer the receipt of an order, by mail.
    ///
    /// Created in the transaction that accepts the order. It fails if there is no such address, and is
    /// dead if the mail server takes nothing for longer than eight tries take.
    #[job(
        "orders.send_receipt",
        result = ReceiptSent,
        retry(tries = 8, first = "500ms", longest = "5s"),
        deadline = "1h",
    )]
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct SendReceipt {
        /// Which order.
        pub order_id: String,
        /// Where to.
        pub email: String,
        /// What the order costs, in cents of a euro.
        pub total_cents: u64,
    }

    /// The receipt is on its way.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct ReceiptSent {
        /// The mail server's number for the mail.
        pub mail: u64,
    }
}
