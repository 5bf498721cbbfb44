#[trellis::contract(id = "acme.warehouse@v1")]
pub mod warehouse {
    /// Keeps the stock.
    #[group("stock", replay = "all")]
    #[derive(Debug)]
    pub struct Stock(orders::OrderCreated, pub orders::OrderCancelled);

    #[cfg(feature = "mail")]
    #[group("mail")]
    pub struct Mail(orders::OrderCreated);
}
