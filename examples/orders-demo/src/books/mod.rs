//! The books: what must be and what is, by distinct order id. Pure.
mod receipts;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// Distinct order ids in the jobs of receipts.
    pub jobs: usize,
    /// How often work on these jobs began.
    pub tries: u64,
    /// Jobs that are completed.
    pub completed: usize,
    /// Jobs that have failed, which they must where there is no such address.
    pub failed: usize,
    /// Jobs that have not ended, or have ended in any other way.
    pub other_jobs: usize,
    /// Distinct order ids in the receipts.
    pub receipts: usize,
    /// Mails that the mail server took.
    pub mails: usize,
    /// How often one of them came again: its job was tried again after the mail was taken.
    pub repeats: usize,
    /// Expected order ids that are missing in any of these places.
    pub lost: usize,
    /// Order ids that are in any of them more than once.
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
        books.compare_receipts(expected, seen);
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
        let all = || expected.placed.iter().map(|order| order.order_id.as_str());
        let (all, deliverable) = (ids(all()), ids(all().filter(|id| expected.is_deliverable(id))));
        // Mails know the job that sent them, and only the job knows its order.
        let jobs: HashMap<&str, &str> =
            seen.jobs.iter().map(|job| (job.id.as_str(), job.order_id.as_str())).collect();
        let mails = seen.mails.taken.iter().map(|mail| jobs.get(mail.key.as_str()).unwrap_or(&"of no job"));
        let places = [
            ("the orders", &all, count(seen.orders.iter().map(|(_, order)| order.order_id.as_str()))),
            ("the stream", &all, count(seen.events.iter().map(|event| event.order.order_id.as_str()))),
            ("the reservations", &all, count(seen.reservations.iter().map(|row| row.order_id.as_str()))),
            ("the jobs", &all, count(seen.jobs.iter().map(|job| job.order_id.as_str()))),
            ("the receipts", &deliverable, count(seen.receipts.iter().map(|row| row.order_id.as_str()))),
            ("the mails", &deliverable, count(mails.copied())),
        ];
        let (mut lost, mut doubled) = (BTreeSet::new(), BTreeSet::new());
        for (place, expected, found) in &places {
            let missing = expected.iter().filter(|id| !found.contains_key(*id)).copied().collect();
            let twice = found.iter().filter(|(_, count)| **count > 1).map(|(id, _)| *id).collect();
            let strange = found.keys().filter(|id| !expected.contains(*id)).copied().collect();
            self.report(&format!("missing in {place}"), &missing);
            self.report(&format!("more than once in {place}"), &twice);
            self.report(&format!("in {place}, but not to be there"), &strange);
            lost.extend(missing);
            doubled.extend(twice);
        }
        [self.placed, self.events, self.handled, self.jobs, self.receipts, self.mails] =
            places.map(|(_, _, found)| found.len());
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

fn ids<'a>(ids: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    ids.collect()
}

fn count<'a>(ids: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for id in ids {
        *counts.entry(id).or_default() += 1;
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
