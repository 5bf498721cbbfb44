//! The books: what must be and what is, by distinct order id. Pure.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use crate::expect::{Expected, Order};
use crate::seen::{Reservation, Seen};

/// How many examples of one problem are named.
const EXAMPLES: usize = 5;

/// The result of the comparison.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Books {
    /// Lines of the input.
    pub lines: usize,
    /// Distinct order ids in the orders service's database.
    pub placed: usize,
    /// Lines refused because their order id was in the books.
    pub duplicates_refused: usize,
    /// Other lines refused, by reason.
    pub rejected: BTreeMap<String, usize>,
    /// Distinct order ids in the stream.
    pub events: usize,
    /// Distinct order ids in the stock service's database.
    pub handled: usize,
    /// Those of them that got their stock.
    pub reserved: usize,
    /// Those of them for which not enough was left.
    pub out_of_stock: usize,
    /// Expected order ids that are missing in the database, in the stream or in the reservations.
    pub lost: usize,
    /// Order ids that are in the stream or in the reservations more than once.
    pub doubled: usize,
    /// Events that entered the stream after a later one of the same customer.
    pub out_of_order: usize,
    /// Rows left in the outboxes.
    pub outbox_rows: u64,
    /// Messages in the stream of dead letters.
    pub dead_letters: u64,
    /// What does not balance, one sentence each.
    pub problems: Vec<String>,
}

impl Books {
    /// Compare.
    pub fn balance(expected: &Expected, seen: &Seen) -> Self {
        let mut books = Self {
            lines: expected.lines,
            reserved: seen.reservations.iter().filter(|row| row.reserved).count(),
            out_of_stock: seen.reservations.iter().filter(|row| !row.reserved).count(),
            out_of_order: out_of_order(expected, seen),
            outbox_rows: seen.outbox_rows,
            dead_letters: seen.dead_letters,
            ..Self::default()
        };
        books.compare_ids(expected, seen);
        books.compare_content(expected, seen);
        books.compare_subjects(seen);
        books.compare_refusals(expected, seen);
        books.compare_stock(expected, seen);
        for (count, what) in [
            (books.out_of_order as u64, "events out of the order of their customer"),
            (books.outbox_rows, "rows left in the outbox"),
            (books.dead_letters, "dead letters"),
        ] {
            if count > 0 {
                books.problems.push(format!("{count} {what}"));
            }
        }
        books
    }

    /// Whether everything is as it must be.
    pub fn are_balanced(&self) -> bool {
        self.problems.is_empty() && self.lost == 0 && self.doubled == 0
    }

    fn compare_ids(&mut self, expected: &Expected, seen: &Seen) {
        let expected = count(expected.placed.iter().map(|order| &order.order_id));
        let places = [
            ("the orders", count(seen.orders.iter().map(|(_, order)| &order.order_id))),
            ("the stream", count(seen.events.iter().map(|event| &event.order.order_id))),
            ("the reservations", count(seen.reservations.iter().map(|row| &row.order_id))),
        ];
        let (mut lost, mut doubled) = (BTreeSet::new(), BTreeSet::new());
        for (place, found) in &places {
            let missing = expected.keys().filter(|id| !found.contains_key(*id)).copied().collect();
            let twice = found.iter().filter(|(_, count)| **count > 1).map(|(id, _)| *id).collect();
            let strange = found.keys().filter(|id| !expected.contains_key(*id)).copied().collect();
            self.report(&format!("missing in {place}"), &missing);
            self.report(&format!("more than once in {place}"), &twice);
            self.report(&format!("in {place}, but not to be placed"), &strange);
            lost.extend(missing);
            doubled.extend(twice);
        }
        let [(_, orders), (_, events), (_, handled)] = &places;
        (self.placed, self.events, self.handled) = (orders.len(), events.len(), handled.len());
        (self.lost, self.doubled) = (lost.len(), doubled.len());
    }

    fn compare_content(&mut self, expected: &Expected, seen: &Seen) {
        let expected: HashMap<&str, &Order> =
            expected.placed.iter().map(|order| (order.order_id.as_str(), order)).collect();
        let differs = |order: &&Order| expected.get(order.order_id.as_str()).is_some_and(|is| is != order);
        let id = |order: &'_ Order| order.order_id.clone();
        let rows: BTreeSet<String> =
            seen.orders.iter().map(|(_, order)| order).filter(differs).map(id).collect();
        let events: BTreeSet<String> =
            seen.events.iter().map(|event| &event.order).filter(differs).map(id).collect();
        self.report("other content in the orders", &rows.iter().map(String::as_str).collect());
        self.report("other content in the stream", &events.iter().map(String::as_str).collect());
    }

    /// Each region has one subject, and each subject one region, whatever is in its name.
    fn compare_subjects(&mut self, seen: &Seen) {
        let both = seen.events.iter().map(|event| (event.order.region.as_str(), event.subject.as_str()));
        let both: BTreeSet<(&str, &str)> = both.collect();
        let regions: BTreeSet<&str> = both.iter().map(|(region, _)| *region).collect();
        let subjects: BTreeSet<&str> = both.iter().map(|(_, subject)| *subject).collect();
        if (regions.len(), subjects.len()) != (both.len(), both.len()) {
            self.problems.push(format!("{} regions are on {} subjects", regions.len(), subjects.len()));
        }
    }

    fn compare_refusals(&mut self, expected: &Expected, seen: &Seen) {
        for (_, reason) in &seen.refusals {
            match reason.as_str() {
                "duplicate" => self.duplicates_refused += 1,
                other => *self.rejected.entry(other.to_owned()).or_default() += 1,
            }
        }
        let found: BTreeMap<usize, String> = seen.refusals.iter().cloned().collect();
        let lines: BTreeSet<&usize> = expected.refused.keys().chain(found.keys()).collect();
        let wrong = lines.into_iter().filter(|line| expected.refused.get(line) != found.get(line));
        let wrong: BTreeSet<String> = wrong.map(|line| format!("line {}", line + 1)).collect();
        self.report("wrongly refused or not refused", &wrong.iter().map(String::as_str).collect());
    }

    fn compare_stock(&mut self, expected: &Expected, seen: &Seen) {
        let of = |sku: &str| -> Vec<&Reservation> {
            seen.reservations.iter().filter(|row| row.sku == sku).collect()
        };
        if seen.stock.len() != expected.stock.len() {
            self.problems.push("the stock has other articles than the catalogue".to_owned());
        }
        for shelf in &seen.stock {
            let (reserved, refused): (Vec<_>, Vec<_>) =
                of(&shelf.sku).into_iter().partition(|row| row.reserved);
            let taken: u64 = reserved.iter().map(|row| row.quantity).sum();
            if expected.stock.get(&shelf.sku) != Some(&shelf.delivered) {
                self.problems.push(format!("{} of {:?} were delivered", shelf.delivered, shelf.sku));
            }
            if taken + shelf.remaining != shelf.delivered {
                self.problems.push(format!(
                    "{:?}: {taken} reserved and {} left are not the {} that were delivered",
                    shelf.sku, shelf.remaining, shelf.delivered
                ));
            }
            if refused.iter().any(|row| row.quantity <= shelf.remaining) {
                self.problems.push(format!("{:?} was refused although enough is left", shelf.sku));
            }
        }
    }

    fn report(&mut self, what: &str, ids: &BTreeSet<&str>) {
        if ids.is_empty() {
            return;
        }
        let examples: Vec<&str> = ids.iter().take(EXAMPLES).copied().collect();
        let more = if ids.len() > EXAMPLES { ", …" } else { "" };
        self.problems.push(format!("{} {what}: {}{more}", ids.len(), examples.join(", ")));
    }
}

fn count<'a>(ids: impl Iterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for id in ids {
        *counts.entry(id.as_str()).or_default() += 1;
    }
    counts
}

fn out_of_order(expected: &Expected, seen: &Seen) -> usize {
    let rank: HashMap<&str, usize> =
        expected.placed.iter().enumerate().map(|(rank, order)| (order.order_id.as_str(), rank)).collect();
    let mut latest: HashMap<&str, usize> = HashMap::new();
    let mut count = 0;
    for order in seen.events.iter().map(|event| &event.order) {
        let Some(rank) = rank.get(order.order_id.as_str()) else { continue };
        let latest = latest.entry(&order.customer_id).or_default();
        count += usize::from(rank < latest);
        *latest = *rank.max(latest);
    }
    count
}

/// The table.
impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |what: &str, count: u64| writeln!(f, "  {what:<32} {count:>8}");
        row("lines", self.lines as u64)?;
        row("placed", self.placed as u64)?;
        row("duplicates refused", self.duplicates_refused as u64)?;
        row("rejected", self.rejected.values().sum::<usize>() as u64)?;
        for (reason, count) in &self.rejected {
            row(&format!("  {reason}"), *count as u64)?;
        }
        row("events in the stream", self.events as u64)?;
        row("events handled", self.handled as u64)?;
        row("  stock reserved", self.reserved as u64)?;
        row("  not enough in stock", self.out_of_stock as u64)?;
        row("lost", self.lost as u64)?;
        row("doubled", self.doubled as u64)?;
        row("out of order", self.out_of_order as u64)?;
        row("rows left in the outbox", self.outbox_rows)?;
        row("dead letters", self.dead_letters)?;
        for problem in &self.problems {
            writeln!(f, "  does not balance: {problem}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::{Event, Shelf};

    const ORDERS: &str = r#"{"order_id":"a","customer_id":"c","region":"r","sku":"tea","quantity":2,"currency":"EUR","total_cents":4}
{"order_id":"b","customer_id":"c","region":"r","sku":"tea","quantity":3,"currency":"EUR","total_cents":6}
{"order_id":"a","customer_id":"d","region":"r","sku":"tea","quantity":1,"currency":"EUR","total_cents":2}
{"order_id":"e","customer_id":"d","region":"r","sku":"cup","quantity":1,"currency":"EUR","total_cents":2}"#;
    const CATALOGUE: &str = r#"[{"sku":"tea","price_cents":2,"stock":4}]"#;

    /// Books that balance: two orders placed, one duplicate, one rejected, one out of stock.
    fn good() -> (Expected, Seen) {
        let expected = Expected::new(ORDERS, CATALOGUE).unwrap();
        let event = |order: &Order| Event { subject: order.region.clone(), order: order.clone() };
        let row = |order: &Order| Reservation {
            order_id: order.order_id.clone(),
            sku: order.sku.clone(),
            quantity: order.quantity,
            reserved: order.quantity == 2,
        };
        let seen = Seen {
            orders: expected.placed.iter().cloned().enumerate().collect(),
            refusals: vec![(2, "duplicate".into()), (3, "unknown_sku".into())],
            events: expected.placed.iter().map(event).collect(),
            reservations: expected.placed.iter().map(row).collect(),
            stock: vec![Shelf { sku: "tea".into(), delivered: 4, remaining: 2 }],
            outbox_rows: 0,
            dead_letters: 0,
        };
        (expected, seen)
    }

    fn spoiled(spoil: impl FnOnce(&mut Seen)) -> Books {
        let (expected, mut seen) = good();
        spoil(&mut seen);
        let books = Books::balance(&expected, &seen);
        assert!(!books.are_balanced(), "{books}");
        books
    }

    #[test]
    fn what_is_right_balances() {
        let (expected, seen) = good();
        let books = Books::balance(&expected, &seen);
        assert!(books.are_balanced(), "{books}");
        assert_eq!((books.placed, books.events, books.handled), (2, 2, 2));
        assert_eq!((books.reserved, books.out_of_stock, books.duplicates_refused), (1, 1, 1));
        assert_eq!(books.rejected, BTreeMap::from([("unknown_sku".into(), 1)]));
    }

    #[test]
    fn what_is_missing_is_lost_wherever_it_is_missing() {
        for books in [
            spoiled(|seen| drop(seen.orders.pop())),
            spoiled(|seen| drop(seen.events.pop())),
            spoiled(|seen| drop(seen.reservations.pop())),
        ] {
            assert_eq!((books.lost, books.doubled), (1, 0), "{books}");
        }
    }

    #[test]
    fn what_is_there_twice_is_doubled() {
        let twice = spoiled(|seen| seen.events.push(seen.events[1].clone()));
        assert_eq!((twice.lost, twice.doubled), (0, 1), "{twice}");
        let twice = spoiled(|seen| seen.reservations.push(seen.reservations[1].clone()));
        assert_eq!((twice.lost, twice.doubled), (0, 1), "{twice}");
    }

    #[test]
    fn one_lost_and_one_doubled_do_not_cancel_out() {
        let books = spoiled(|seen| seen.events[0] = seen.events[1].clone());
        assert_eq!((books.lost, books.doubled), (1, 1), "{books}");
    }

    #[test]
    fn everything_else_that_is_wrong_is_named() {
        let says = |books: Books, text: &str| assert!(books.to_string().contains(text), "{books}");
        says(spoiled(|seen| seen.events.reverse()), "1 events out of the order");
        says(spoiled(|seen| seen.events[0].subject.push('x')), "1 regions are on 2 subjects");
        says(spoiled(|seen| seen.events[0].order.total_cents = 5), "other content in the stream: a");
        says(spoiled(|seen| seen.orders[0].1.region.push('x')), "other content in the orders: a");
        says(spoiled(|seen| seen.refusals[0].1 = "not_json".into()), "not refused: line 3");
        says(spoiled(|seen| drop(seen.refusals.pop())), "not refused: line 4");
        says(spoiled(|seen| seen.stock[0].remaining = 1), "2 reserved and 1 left are not the 4");
        says(spoiled(|seen| seen.stock[0].delivered = 5), "5 of \"tea\" were delivered");
        says(spoiled(|seen| seen.reservations[1].quantity = 1), "refused although enough is left");
        says(spoiled(|seen| seen.reservations[0].order_id = "z".into()), "not to be placed: z");
        says(spoiled(|seen| seen.outbox_rows = 1), "1 rows left in the outbox");
        says(spoiled(|seen| seen.dead_letters = 1), "1 dead letters");
    }
}
