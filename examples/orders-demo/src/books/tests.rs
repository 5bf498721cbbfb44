//! Books that balance, and everything that can be wrong with them.
use super::*;
use crate::seen::{Event, Job, Mail, Mails, Receipt, Shelf};

const ORDERS: &str = r#"{"order_id":"a","customer_id":"c","email":"c@example.com","region":"r","sku":"tea","quantity":2,"currency":"EUR","total_cents":4}
{"order_id":"b","customer_id":"c","email":"c@exmaple.com","region":"r","sku":"tea","quantity":3,"currency":"EUR","total_cents":6}
{"order_id":"a","customer_id":"d","email":"d@example.com","region":"r","sku":"tea","quantity":1,"currency":"EUR","total_cents":2}
{"order_id":"e","customer_id":"d","email":"d@example.com","region":"r","sku":"cup","quantity":1,"currency":"EUR","total_cents":2}"#;
const CATALOGUE: &str = r#"[{"sku":"tea","price_cents":2,"stock":4}]"#;

/// Books that balance: two orders placed, one duplicate, one rejected, one out of stock, one with no
/// address that exists.
fn good() -> (Expected, Seen) {
    let expected = Expected::new(ORDERS, CATALOGUE).unwrap();
    let event = |order: &Order| Event { subject: order.region.clone(), order: order.clone() };
    let row = |order: &Order| Reservation {
        order_id: order.order_id.clone(),
        sku: order.sku.clone(),
        quantity: order.quantity,
        reserved: order.quantity == 2,
    };
    let job = |order: &Order, end: &str, mail| Job {
        id: format!("job-{}", order.order_id),
        order_id: order.order_id.clone(),
        email: expected.emails[&order.order_id].clone(),
        total_cents: order.total_cents,
        created: 1,
        tries: 1,
        ends: vec![end.to_owned()],
        mail,
    };
    let receipt = Receipt {
        order_id: "a".into(),
        job_id: "job-a".into(),
        email: "c@example.com".into(),
        total_cents: 4,
        mail: 1,
    };
    let mail = Mail { mail: 1, key: "job-a".into(), to: "c@example.com".into() };
    let seen = Seen {
        orders: expected.placed.iter().cloned().enumerate().collect(),
        refusals: vec![(2, "duplicate".into()), (3, "unknown_sku".into())],
        events: expected.placed.iter().map(event).collect(),
        reservations: expected.placed.iter().map(row).collect(),
        stock: vec![Shelf { sku: "tea".into(), delivered: 4, remaining: 2 }],
        jobs: vec![job(&expected.placed[0], "completed", Some(1)), job(&expected.placed[1], "failed", None)],
        receipts: vec![receipt],
        mails: Mails { taken: vec![mail], repeats: 1 },
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
    assert_eq!((books.placed, books.events, books.handled, books.jobs), (2, 2, 2, 2));
    assert_eq!((books.completed, books.failed, books.other_jobs), (1, 1, 0));
    assert_eq!((books.receipts, books.mails, books.repeats, books.tries), (1, 1, 1, 2));
    assert_eq!((books.reserved, books.out_of_stock, books.duplicates_refused), (1, 1, 1));
    assert_eq!(books.rejected, BTreeMap::from([("unknown_sku".into(), 1)]));
}

#[test]
fn what_is_missing_is_lost_wherever_it_is_missing() {
    for books in [
        spoiled(|seen| drop(seen.orders.pop())),
        spoiled(|seen| drop(seen.events.pop())),
        spoiled(|seen| drop(seen.reservations.pop())),
        spoiled(|seen| drop(seen.jobs.pop())),
        spoiled(|seen| drop(seen.receipts.pop())),
        spoiled(|seen| drop(seen.mails.taken.pop())),
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
fn what_is_there_for_two_jobs_is_doubled() {
    let again = |seen: &mut Seen| {
        let job = Job { id: "job-2".into(), mail: Some(2), ..seen.jobs[0].clone() };
        seen.receipts.push(Receipt { job_id: job.id.clone(), mail: 2, ..seen.receipts[0].clone() });
        seen.mails.taken.push(Mail { key: job.id.clone(), mail: 2, ..seen.mails.taken[0].clone() });
        seen.jobs.push(job);
    };
    let twice = spoiled(again);
    assert_eq!((twice.lost, twice.doubled), (0, 1), "{twice}");
    for place in ["the jobs", "the receipts", "the mails"] {
        assert!(twice.problems.contains(&format!("1 more than once in {place}: a")), "{twice}");
    }
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
    says(spoiled(|seen| seen.reservations[0].order_id = "z".into()), "not to be there: z");
    says(spoiled(|seen| seen.jobs[0].ends.clear()), "has not ended: a");
    says(spoiled(|seen| seen.jobs[0].ends[0] = "dead".into()), "ended as it must not: a");
    says(spoiled(|seen| seen.jobs[1].ends[0] = "completed".into()), "ended as it must not: b");
    says(spoiled(|seen| seen.jobs[0].ends.push("completed".into())), "ended as it must not: a");
    says(spoiled(|seen| seen.jobs[0].created = 2), "do not agree: a");
    says(spoiled(|seen| seen.jobs[0].mail = Some(2)), "do not agree: a");
    says(spoiled(|seen| seen.jobs[0].total_cents = 1), "do not agree: a");
    says(spoiled(|seen| seen.receipts[0].mail = 2), "do not agree: a");
    says(spoiled(|seen| seen.receipts[0].email.push('x')), "do not agree: a");
    says(spoiled(|seen| seen.mails.taken[0].to.push('x')), "do not agree: a");
    says(spoiled(|seen| seen.receipts[0].order_id = "b".into()), "in the receipts, but not to be there: b");
    says(
        spoiled(|seen| seen.mails.taken[0].key = "z".into()),
        "in the mails, but not to be there: of no job",
    );
    says(spoiled(|seen| seen.outbox_rows = 1), "1 rows left in the outbox");
    says(spoiled(|seen| seen.dead_letters = 1), "1 dead letters");
}
