#[trellis::contract(id = "acme.orders@v1")]
/// Orders: accepted and given up.
pub mod orders {
    //! The second line.
    use serde::{Deserialize, Serialize};

    /// An order was accepted.
    #[event("orders.created", params(order_id, r#type), order_by = customer_id)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct OrderCreated {
        pub order_id: String,
        pub r#type: String,
        pub customer_id: u64,
    }

    #[cfg(feature = "cancel")]
    #[event("orders.cancelled", payload = super::model::Order)]
    pub(crate) struct OrderCancelled;

    #[event("orders.lines.added", payload = Line)]
    struct LineAdded;

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Line {}
}
