//! What the stock service says of itself: which events it consumes.
//!
//! Nobody depends on it yet, so it needs no crate of its own. With its first event it would get one.

/// The warehouse: what is in stock, and for whom.
#[trellis::contract(id = "acme.warehouse@v1")]
pub(crate) mod warehouse {
    use orders_contract::orders;

    /// Reserves stock for orders, beginning with the oldest order that the stream still holds.
    #[group("stock", replay = "all")]
    pub(crate) struct Stock(pub(crate) orders::OrderCreated);
}
