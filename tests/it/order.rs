//! Ordering keys: the stream has each key's rows in the order of their commits.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use trellis_runtime::testing::{Fault, FaultyBroker};
use trellis_runtime::{Dispatcher, OutboxConfig, OutboxError, SqlOutbox};

use crate::on_both_databases;
use crate::support::contract::{Added, EVENT, moved};
use crate::support::nats::Nats;
use crate::support::{Bed, TestDb, until};

const WRITERS: u64 = 16;
const KEYS: u64 = 20;
const TRANSACTIONS: u64 = 25;

fn quick() -> OutboxConfig {
    OutboxConfig {
        poll: Duration::from_millis(50),
        backoff_first: Duration::from_millis(10),
        backoff_longest: Duration::from_millis(50),
        max_attempts: 1000,
        ..OutboxConfig::default()
    }
}

/// 16 writers in overlapping transactions over 20 keys, 4 dispatchers, faults: order per key at
/// the stream equals commit order. A ledger, written in the same transactions after the enqueue,
/// is the witness: it numbers each key's rows while their key is held.
async fn stream_order_is_commit_order<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(24).await, Nats::with_event_stream().await);
    bed.execute("CREATE TABLE ledger (k TEXT, n BIGINT, id TEXT)").await;
    let outbox = || SqlOutbox::builder(bed.pool.clone()).config(quick()).build().unwrap();
    let writing = outbox();
    let broker = Arc::new(FaultyBroker::new(nats.broker(), |number, _| match number % 11 {
        3 => Fault::Lose,
        5 => Fault::LoseAck,
        7 => Fault::Refuse("injected fault: refused".into()),
        _ => Fault::None,
    }));
    let dispatchers: Vec<_> = (0..4).map(|_| Dispatcher::start(&outbox(), broker.clone())).collect();

    let writers = (0..WRITERS).map(|writer| tokio::spawn(write::<D>(writing.clone(), writer)));
    for writer in futures_util::future::join_all(writers).await {
        writer.unwrap();
    }
    until("all rows left", Duration::from_secs(90), || async { bed.rows().await == 0 }).await;
    for dispatcher in &dispatchers {
        dispatcher.stop(Duration::from_secs(10)).await;
    }

    let mut sent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in nats.messages("TRELLIS_EVENTS").await {
        let note: Added = serde_json::from_slice(&message.payload).unwrap();
        sent.entry(format!("key-{}", note.number)).or_default().push(note.text);
    }
    let mut rows = 0;
    for (key, sent) in sent {
        rows += sent.len();
        let sql = format!("SELECT count(*) FROM ledger WHERE k = '{key}'");
        assert_eq!(bed.number(&sql).await, i64::try_from(sent.len()).unwrap(), "{key}");
        for (at, id) in sent.iter().enumerate() {
            let sql = format!("SELECT n FROM ledger WHERE id = '{id}'");
            assert_eq!(
                bed.number(&sql).await,
                i64::try_from(at).unwrap() + 1,
                "{key}: {id} is not in its place"
            );
        }
    }
    assert_eq!(i64::try_from(rows).unwrap(), bed.number("SELECT count(*) FROM ledger").await);
    assert!(broker.publishes() > broker.acks(), "no fault was injected");
}

async fn write<D: TestDb>(outbox: SqlOutbox<D>, writer: u64) {
    let mut random = StdRng::seed_from_u64(writer);
    for number in 0..TRANSACTIONS {
        let mut keys = [random.random_range(0..KEYS), random.random_range(0..KEYS)];
        keys.sort_unstable();
        let (before, after) = (random.random_range(0..3), random.random_range(0..3));
        let done: Result<(), OutboxError> = outbox
            .transaction(async |tx| {
                for (at, key) in keys.into_iter().enumerate() {
                    let id = format!("{writer}-{number}-{at}");
                    tokio::time::sleep(Duration::from_millis(before)).await;
                    let note = Added { number: key, text: id.clone() };
                    EVENT.notes.added.enqueue(tx, note).ordered_by(format!("key-{key}")).await?;
                    let sql = format!(
                        "INSERT INTO ledger SELECT 'key-{key}', coalesce(max(n), 0) + 1, '{id}' FROM ledger WHERE k = 'key-{key}'"
                    );
                    D::run(tx, &sql).await.map_err(OutboxError::Database)?;
                }
                tokio::time::sleep(Duration::from_millis(after)).await;
                Ok(())
            })
            .await;
        done.unwrap();
    }
}

/// A key whose row fails holds up nobody else.
async fn a_failing_row_holds_its_own_key_only<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(quick()).build().unwrap();
    for step in 1..=30 {
        let done: Result<(), OutboxError> = outbox
            .transaction(async |tx| {
                for key in 0..10 {
                    EVENT.notes.moved.enqueue(tx, moved(key, step)).await?;
                }
                Ok(())
            })
            .await;
        done.unwrap();
    }
    let fails = |_: u64, message: &trellis_runtime::broker::Outgoing| {
        if message.body.starts_with(br#"{"key":3,"#) {
            Fault::Refuse("not this one".into())
        } else {
            Fault::None
        }
    };
    let broker = Arc::new(FaultyBroker::new(nats.broker(), fails));
    let dispatcher = Dispatcher::start(&outbox, broker);
    until("all other keys are through", Duration::from_secs(30), || async { nats.stored().await == 270 })
        .await;
    until("only that key is left", Duration::from_secs(10), || async { bed.rows().await == 30 }).await;
    dispatcher.stop(Duration::from_secs(1)).await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the last key is through", Duration::from_secs(30), || async { bed.rows().await == 0 }).await;
    dispatcher.stop(Duration::from_secs(10)).await;
    crate::dispatcher::each_key_is_in_order(&nats, 10, 30).await;
}

/// One hot key with thousands of rows slows no other down: they are not walked over.
async fn a_long_line_of_one_key_is_not_walked_over<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(quick()).build().unwrap();
    for _ in 0..10 {
        let done: Result<(), OutboxError> = outbox
            .transaction(async |tx| {
                for step in 1..=200 {
                    EVENT.notes.moved.enqueue(tx, moved(1, step)).await?;
                }
                Ok(())
            })
            .await;
        done.unwrap();
    }
    let hot_fails = FaultyBroker::new(nats.broker(), |_, message| {
        if message.subject.contains("moved") { Fault::Refuse("hot".into()) } else { Fault::None }
    });
    let dispatcher = Dispatcher::start(&outbox, Arc::new(hot_fails));
    until("the line is held", Duration::from_secs(20), || async {
        outbox.stats().await.unwrap().held == 1999
    })
    .await;
    crate::dispatcher::enqueue(&outbox, 0..10).await;
    until("the others pass", Duration::from_secs(20), || async { nats.stored().await == 10 }).await;
    dispatcher.stop(Duration::from_secs(1)).await;
}

on_both_databases!(
    stream_order_is_commit_order,
    a_failing_row_holds_its_own_key_only,
    a_long_line_of_one_key_is_not_walked_over,
);
