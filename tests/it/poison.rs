//! Rows that can never be sent: they become dead with their reason, and nothing waits for them.
use std::time::Duration;

use trellis_runtime::{DeadKey, Dispatcher, OutboxConfig, SqlOutbox};

use crate::dispatcher::enqueue;
use crate::on_both_databases;
use crate::support::contract::{EVENT, Moved, moved};
use crate::support::nats::Nats;
use crate::support::{Bed, TestDb, until};

const SOON: Duration = Duration::from_secs(20);

/// Quick back-offs: three attempts within a second or so.
fn impatient() -> OutboxConfig {
    OutboxConfig {
        max_attempts: 3,
        backoff_first: Duration::from_millis(50),
        backoff_longest: Duration::from_millis(100),
        poll: Duration::from_millis(50),
        ..OutboxConfig::default()
    }
}

fn outbox<D: TestDb>(bed: &Bed<D>, config: OutboxConfig) -> SqlOutbox<D> {
    SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap()
}

/// Put a row into the table that no enqueue would write.
async fn insert_raw<D: TestDb>(
    bed: &Bed<D>,
    id: &str,
    kind: &str,
    subject: &str,
    headers: &str,
    body_bytes: usize,
) {
    let body = if D::NAME == "SQLite" {
        format!("zeroblob({body_bytes})")
    } else {
        format!("decode(repeat('20', {body_bytes}), 'hex')")
    };
    bed.execute(&format!(
        "INSERT INTO trellis_outbox (id, kind, name, subject, headers, body, enqueued_at) VALUES ('{id}', '{kind}', 'x', '{subject}', '{headers}', {body}, 0)"
    ))
    .await;
}

/// Four kinds of poison between a thousand good rows: the good ones leave, the bad ones are dead,
/// each with its reason, and can be redriven by id once the cause is gone.
async fn poison_is_dead_while_good_rows_leave<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = outbox(&bed, impatient());
    let good = r#"{"Nats-Msg-Id":"h"}"#;
    enqueue(&outbox, 0..500).await;
    insert_raw(&bed, "corrupt", "event.v1", "events.v1.x", "{not json", 2).await;
    insert_raw(&bed, "line-break", "event.v1", "events.v1.x", r#"{"A":"b\r\nC: d"}"#, 2).await;
    insert_raw(&bed, "uncovered", "event.v1", "elsewhere.x", good, 2).await;
    insert_raw(&bed, "illegal", "event.v1", "events.v1.a b", good, 2).await;
    insert_raw(&bed, "wildcard", "event.v1", "events.v1.>", good, 2).await;
    insert_raw(&bed, "too-large", "event.v1", "events.v1.x", good, 2_000_000).await;
    enqueue(&outbox, 500..1000).await;

    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the good rows left", SOON, || async { nats.stored().await >= 1000 }).await;
    until("the bad rows are dead", SOON, || async { outbox.stats().await.unwrap().dead == 6 }).await;
    let dead = outbox.dead(100).await.unwrap();
    let reason =
        |id: &str| dead.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("{dead:?}")).reason.clone();
    assert!(reason("corrupt").contains("no JSON object"), "{}", reason("corrupt"));
    assert!(reason("line-break").contains("no header value"), "{}", reason("line-break"));
    assert!(reason("uncovered").contains("no stream found"), "{}", reason("uncovered"));
    assert!(reason("illegal").contains("invalid subject"), "{}", reason("illegal"));
    assert!(reason("too-large").contains("max payload"), "{}", reason("too-large"));
    assert!(dead.iter().all(|row| row.attempts == 3), "{dead:?}");
    assert_eq!(dispatcher.paused(), None, "one bad row pauses nobody");

    assert!(!outbox.redrive("no-such-row").await.unwrap());
    bed.execute("UPDATE trellis_outbox SET headers = '{}' WHERE id = 'corrupt'").await;
    assert!(outbox.redrive("corrupt").await.unwrap());
    until("the mended row left", SOON, || async {
        outbox.stats().await.unwrap().dead == 5 && bed.rows().await == 5
    })
    .await;
    dispatcher.stop(SOON).await;
}

/// The server's limit is lowered below rows that are in the table already.
async fn a_lowered_limit_of_the_server_kills_only_what_it_refuses<D: TestDb>() {
    let (bed, mut nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = outbox(&bed, impatient());
    enqueue(&outbox, 0..500).await;
    insert_raw(&bed, "large", "event.v1", "events.v1.x", "{}", 100_000).await;
    enqueue(&outbox, 500..1000).await;
    let server = &mut nats.server;
    server.restart_with(|options| options.max_payload = Some(65_536)).unwrap();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the large row is dead", SOON, || async { outbox.stats().await.unwrap().dead == 1 }).await;
    until("the others left", SOON, || async { bed.rows().await == 1 }).await;
    assert!(outbox.dead(1).await.unwrap()[0].reason.contains("max payload"));
    assert_eq!(nats.stored().await, 1000);
    dispatcher.stop(SOON).await;
}

/// A row of a kind from the future is left for a process that knows it, and reported.
async fn an_unknown_kind_is_left_alone<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = outbox(&bed, impatient());
    for number in 0..700 {
        insert_raw(&bed, &format!("future-{number}"), "event.v9", "events.v1.x", "{}", 2).await;
    }
    enqueue(&outbox, 0..100).await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the known rows left", SOON, || async { nats.stored().await == 100 }).await;
    dispatcher.stop(SOON).await;
    let stats = outbox.stats().await.unwrap();
    assert_eq!((stats.unknown.get("event.v9"), stats.unsent(), stats.dead), (Some(&700), 0, 0));
    // A process that knows them: here by calling them what this version knows.
    bed.execute("UPDATE trellis_outbox SET kind = 'event.v1'").await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("they left", SOON, || async { bed.rows().await == 0 }).await;
    dispatcher.stop(SOON).await;
}

async fn one_dead_row_between<D: TestDb>(dead_key: DeadKey) -> (Bed<D>, Nats, SqlOutbox<D>, Dispatcher) {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = outbox(&bed, OutboxConfig { dead_key, ..impatient() });
    for (id, step) in [("one", 1), ("two", 2), ("three", 3)] {
        let done: Result<(), trellis_runtime::OutboxError> = outbox
            .transaction(async |tx| EVENT.notes.moved.enqueue(tx, moved(1, step)).id(id).await.map(drop))
            .await;
        done.unwrap();
    }
    bed.execute("UPDATE trellis_outbox SET headers = 'broken' WHERE id = 'two'").await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the second row is dead", SOON, || async { outbox.stats().await.unwrap().dead == 1 }).await;
    (bed, nats, outbox, dispatcher)
}

async fn steps(nats: &Nats) -> Vec<u64> {
    let step = |body: &[u8]| serde_json::from_slice::<Moved>(body).unwrap().step;
    nats.messages("TRELLIS_EVENTS").await.iter().map(|message| step(&message.payload)).collect()
}

/// A dead row blocks its key, and only its key; redriven, it goes first.
async fn a_dead_row_blocks_its_key<D: TestDb>() {
    let (bed, nats, outbox, dispatcher) = one_dead_row_between::<D>(DeadKey::Block).await;
    enqueue(&outbox, 0..1).await;
    until("another row passes", SOON, || async { nats.stored().await == 2 }).await;
    until("the dead row and the one behind it are left", SOON, || async { bed.rows().await == 2 }).await;
    bed.execute("UPDATE trellis_outbox SET headers = '{}' WHERE id = 'two'").await;
    assert!(outbox.redrive("two").await.unwrap());
    until("both left", SOON, || async { bed.rows().await == 0 }).await;
    dispatcher.stop(SOON).await;
    nats.context
        .get_stream("TRELLIS_EVENTS")
        .await
        .unwrap()
        .purge()
        .filter("events.v1.notes.added")
        .await
        .unwrap();
    assert_eq!(steps(&nats).await, [1, 2, 3]);
}

/// With the option to skip, the later rows of the key go on.
async fn a_dead_row_is_skipped_on_request<D: TestDb>() {
    let (bed, nats, outbox, dispatcher) = one_dead_row_between::<D>(DeadKey::Skip).await;
    until("the third row left", SOON, || async { bed.rows().await == 1 }).await;
    let more: Result<(), trellis_runtime::OutboxError> =
        outbox.transaction(async |tx| EVENT.notes.moved.enqueue(tx, moved(1, 4)).await.map(drop)).await;
    more.unwrap();
    until("a fourth row left", SOON, || async { bed.rows().await == 1 }).await;
    dispatcher.stop(SOON).await;
    assert_eq!(steps(&nats).await, [1, 3, 4]);
}

/// A dead row that is removed by hand frees its key when a dispatcher starts.
async fn a_row_removed_by_hand_frees_its_key<D: TestDb>() {
    let (bed, nats, outbox, dispatcher) = one_dead_row_between::<D>(DeadKey::Block).await;
    dispatcher.stop(SOON).await;
    bed.execute("DELETE FROM trellis_outbox WHERE id = 'two'").await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the third row left", SOON, || async { bed.rows().await == 0 }).await;
    dispatcher.stop(SOON).await;
    assert_eq!(steps(&nats).await, [1, 3]);
}

on_both_databases!(
    poison_is_dead_while_good_rows_leave,
    a_lowered_limit_of_the_server_kills_only_what_it_refuses,
    an_unknown_kind_is_left_alone,
    a_dead_row_blocks_its_key,
    a_dead_row_is_skipped_on_request,
    a_row_removed_by_hand_frees_its_key,
);
