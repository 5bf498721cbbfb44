//! What must be in the books, computed from the input alone.
//!
//! Written a second time on purpose, from `examples/data/README.md`: it shares no code with the
//! orders service, so that a mistake there is seen here.
use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

/// What the addresses end with that exist.
const DOMAIN: &str = "@example.com";

/// An order as the input, the database and the stream must all have it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[expect(missing_docs, reason = "the fields of `orders.created`")]
pub struct Order {
    pub order_id: String,
    pub customer_id: String,
    pub region: String,
    pub sku: String,
    pub quantity: u64,
    pub total_cents: u64,
}

/// What must become of the input.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// Number of lines.
    pub lines: usize,
    /// Orders to be placed, in the order of their lines.
    pub placed: Vec<Order>,
    /// Where the receipts of these orders are to be sent, by order id.
    pub emails: BTreeMap<String, String>,
    /// Lines to be refused, and why.
    pub refused: BTreeMap<usize, String>,
    /// What is in stock at the beginning.
    pub stock: BTreeMap<String, u64>,
}

impl Expected {
    /// What must become of these orders with this catalogue.
    ///
    /// # Errors
    /// The catalogue is not what it should be.
    pub fn new(orders: &str, catalogue: &str) -> Result<Self, crate::Error> {
        let catalogue: Vec<Value> = serde_json::from_str(catalogue)?;
        let mut prices = BTreeMap::new();
        let mut expected = Self::default();
        for article in &catalogue {
            let sku = article.get("sku").and_then(Value::as_str).ok_or("an article has no sku")?;
            let number = |name: &str| article.get(name).and_then(Value::as_u64);
            prices.insert(sku, number("price_cents").ok_or("an article has no price")?);
            expected.stock.insert(sku.to_owned(), number("stock").ok_or("an article has no stock")?);
        }

        let mut ids = HashSet::new();
        for (number, line) in orders.lines().enumerate() {
            expected.lines += 1;
            match judge(line, &prices) {
                Ok((order, email)) if ids.insert(order.order_id.clone()) => {
                    expected.emails.insert(order.order_id.clone(), email);
                    expected.placed.push(order);
                }
                Ok(_) => drop(expected.refused.insert(number, "duplicate".to_owned())),
                Err(reason) => drop(expected.refused.insert(number, reason.to_owned())),
            }
        }
        Ok(expected)
    }

    /// Whether the receipt of an order can be sent.
    pub fn is_deliverable(&self, order_id: &str) -> bool {
        self.emails.get(order_id).is_some_and(|email| email.ends_with(DOMAIN))
    }

    /// How many lines are to be refused for each reason.
    pub fn reasons(&self) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        for reason in self.refused.values() {
            *reasons.entry(reason.as_str()).or_default() += 1;
        }
        reasons
    }
}

fn judge(line: &str, prices: &BTreeMap<&str, u64>) -> Result<(Order, String), &'static str> {
    let json: Value = serde_json::from_str(line).map_err(|_| "not_json")?;
    let field = |name: &str| json.get(name).ok_or("bad_field");
    let text = |name: &str| field(name)?.as_str().map(str::to_owned).ok_or("bad_field");
    let number = |name: &str| field(name)?.as_i64().ok_or("bad_field");

    let (order_id, customer_id, region) = (text("order_id")?, text("customer_id")?, text("region")?);
    let (email, sku, currency) = (text("email")?, text("sku")?, text("currency")?);
    let (quantity, total) = (number("quantity")?, number("total_cents")?);
    if [&order_id, &customer_id, &email, &region].iter().any(|id| id.trim().is_empty()) {
        return Err("empty_field");
    }
    let price = *prices.get(sku.as_str()).ok_or("unknown_sku")?;
    let Ok(quantity @ 1..=100) = u64::try_from(quantity) else { return Err("bad_quantity") };
    if currency != "EUR" {
        return Err("bad_currency");
    }
    let total_cents = price * quantity;
    if u64::try_from(total) != Ok(total_cents) {
        return Err("wrong_total");
    }
    Ok((Order { order_id, customer_id, region, sku, quantity, total_cents }, email))
}

#[cfg(test)]
mod tests {
    use super::Expected;

    #[test]
    fn the_committed_input_is_what_its_readme_says() {
        let orders = include_str!("../../data/orders.jsonl");
        let expected = Expected::new(orders, include_str!("../../data/catalogue.json")).unwrap();
        assert_eq!((expected.lines, expected.placed.len()), (1000, 938));
        let deliverable = |order: &&super::Order| expected.is_deliverable(&order.order_id);
        assert_eq!(expected.placed.iter().filter(deliverable).count(), 917);
        let reasons = expected.reasons();
        assert_eq!(reasons["duplicate"], 30);
        assert_eq!(reasons.values().sum::<usize>(), 62);
        assert_eq!(reasons.len(), 8, "every reason occurs: {reasons:?}");
    }
}
