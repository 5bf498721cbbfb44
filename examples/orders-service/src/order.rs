//! From a line of the orders file to an order, or to the reason why it is none: pure.
use std::collections::HashMap;

use orders_contract::orders::{OrderCreated, SendReceipt};
use serde::Deserialize;

/// What is sold, and the price of one in cents.
pub(crate) type Prices = HashMap<String, u64>;

/// The most of one thing that can be ordered at once.
const LARGEST_QUANTITY: i64 = 100;

/// An order that can be placed, and its receipt. The address is in the receipt alone: whoever hears of
/// orders has no business with it.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) created: OrderCreated,
    pub(crate) receipt: SendReceipt,
}

/// A line as customers send it. Fields that are not known are ignored.
#[derive(Deserialize)]
struct Line {
    order_id: String,
    customer_id: String,
    email: String,
    region: String,
    sku: String,
    quantity: i64,
    currency: String,
    total_cents: i64,
}

/// Why a line is no order.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejection {
    #[error("no JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("a field is missing or wrong: {0}")]
    BadField(serde_json::Error),
    #[error("`{0}` is empty")]
    EmptyField(&'static str),
    #[error("nothing is sold as {0:?}")]
    UnknownSku(String),
    #[error("{0} cannot be ordered, 1 to {LARGEST_QUANTITY} can")]
    BadQuantity(i64),
    #[error("{0:?} is no currency that is taken, EUR is")]
    BadCurrency(String),
    #[error("the total is {found}, but {expected} was expected")]
    WrongTotal { found: i64, expected: u64 },
}

impl Rejection {
    /// The reason in one word, to count by.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NotJson(_) => "not_json",
            Self::BadField(_) => "bad_field",
            Self::EmptyField(_) => "empty_field",
            Self::UnknownSku(_) => "unknown_sku",
            Self::BadQuantity(_) => "bad_quantity",
            Self::BadCurrency(_) => "bad_currency",
            Self::WrongTotal { .. } => "wrong_total",
        }
    }
}

/// The order in `line`.
pub(crate) fn check(line: &str, prices: &Prices) -> Result<Order, Rejection> {
    let json: serde_json::Value = serde_json::from_str(line).map_err(Rejection::NotJson)?;
    let line = Line::deserialize(json).map_err(Rejection::BadField)?;

    let named = [
        ("order_id", &line.order_id),
        ("customer_id", &line.customer_id),
        ("email", &line.email),
        ("region", &line.region),
    ];
    if let Some((name, _)) = named.into_iter().find(|(_, value)| value.trim().is_empty()) {
        return Err(Rejection::EmptyField(name));
    }
    let Some(price) = prices.get(&line.sku) else { return Err(Rejection::UnknownSku(line.sku)) };
    let quantity =
        u32::try_from(line.quantity).ok().filter(|_| (1..=LARGEST_QUANTITY).contains(&line.quantity));
    let Some(quantity) = quantity else { return Err(Rejection::BadQuantity(line.quantity)) };
    if line.currency != "EUR" {
        return Err(Rejection::BadCurrency(line.currency));
    }
    let total_cents = price * u64::from(quantity);
    if u64::try_from(line.total_cents) != Ok(total_cents) {
        return Err(Rejection::WrongTotal { found: line.total_cents, expected: total_cents });
    }

    let Line { order_id, customer_id, email, region, sku, .. } = line;
    let receipt = SendReceipt { order_id: order_id.clone(), email, total_cents };
    Ok(Order { created: OrderCreated { order_id, customer_id, region, sku, quantity, total_cents }, receipt })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Prices {
        HashMap::from([("tea".to_owned(), 250)])
    }

    /// A good order with one field changed.
    fn line(field: &str, value: serde_json::Value) -> String {
        let mut order = serde_json::json!({
            "order_id": "o-1", "customer_id": "c-1", "email": "c-1@example.com", "region": "eu.west",
            "sku": "tea", "quantity": 3, "currency": "EUR", "total_cents": 750, "note": "ring twice",
        });
        order[field] = value;
        order.to_string()
    }

    #[test]
    fn a_good_line_is_an_order() {
        let order = check(&line("region", "Île-de-France".into()), &prices()).unwrap();
        let Order { created, receipt } = order;
        assert_eq!((created.order_id.as_str(), created.quantity, created.total_cents), ("o-1", 3, 750));
        assert_eq!(created.region, "Île-de-France");
        let expected =
            SendReceipt { order_id: "o-1".into(), email: "c-1@example.com".into(), total_cents: 750 };
        assert_eq!(receipt, expected);
    }

    #[test]
    fn every_other_line_has_its_reason() {
        let cases = [
            ("{\"order_id\": \"o-1\"".to_owned(), "not_json"),
            (String::new(), "not_json"),
            ("[]".to_owned(), "bad_field"),
            (line("customer_id", serde_json::Value::Null), "bad_field"),
            (line("quantity", "3".into()), "bad_field"),
            (line("quantity", 2.5.into()), "bad_field"),
            (line("email", 7.into()), "bad_field"),
            (line("order_id", " ".into()), "empty_field"),
            (line("email", "".into()), "empty_field"),
            (line("sku", "coffee".into()), "unknown_sku"),
            (line("quantity", 0.into()), "bad_quantity"),
            (line("quantity", (-3).into()), "bad_quantity"),
            (line("quantity", 101.into()), "bad_quantity"),
            (line("currency", "eur".into()), "bad_currency"),
            (line("total_cents", 749.into()), "wrong_total"),
            (line("total_cents", (-750).into()), "wrong_total"),
        ];
        for (line, code) in cases {
            assert_eq!(check(&line, &prices()).unwrap_err().code(), code, "{line}");
        }
    }
}
