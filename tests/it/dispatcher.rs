//! The dispatcher: everything that was committed leaves, once, whatever happens around it.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use futures_util::future::BoxFuture;
use trellis_runtime::broker::{Ack, Broker, Destination, First, Outgoing, PublishError};
use trellis_runtime::ports::DbClock;
use trellis_runtime::testing::{Fault, FaultyBroker};
use trellis_runtime::wire::Environment;
use trellis_runtime::{Dispatcher, OutboxConfig, OutboxError, SqlOutbox};

use crate::on_both_databases;
use crate::support::contract::{EVENT, added, moved};
use crate::support::nats::Nats;
use crate::support::{Bed, TestDb, until};

const SOON: Duration = Duration::from_secs(20);

/// Commit `count` events, a hundred to a transaction.
pub async fn enqueue<D: TestDb>(outbox: &SqlOutbox<D>, numbers: std::ops::Range<u64>) {
    for chunk in numbers.collect::<Vec<_>>().chunks(100) {
        let done: Result<(), OutboxError> = outbox
            .transaction(async |tx| {
                for number in chunk {
                    EVENT.notes.added.enqueue(tx, added(*number)).await?;
                }
                Ok(())
            })
            .await;
        done.unwrap();
    }
}

async fn drained<D: TestDb>(bed: &Bed<D>, limit: Duration) {
    until("the outbox is empty", limit, || async { bed.rows().await == 0 }).await;
}

/// What was committed is in the stream, byte for byte, and gone from the table.
async fn what_was_committed_is_sent<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    let done: Result<(), OutboxError> = outbox
        .transaction(async |tx| {
            EVENT.notes.added.enqueue(tx, added(1)).id("first").await?;
            EVENT.notes.moved.enqueue(tx, moved(7, 1)).id("second").await.map(drop)
        })
        .await;
    done.unwrap();
    drained(&bed, SOON).await;
    let messages = nats.messages("TRELLIS_EVENTS").await;
    let of = |id: &str| {
        let has_id =
            |m: &&jetstream::Message| m.headers.as_ref().unwrap().get("Nats-Msg-Id").unwrap().as_str() == id;
        messages.iter().find(has_id).unwrap()
    };
    assert_eq!(of("first").payload.as_ref(), br#"{"number":1,"text":"note 1"}"#);
    assert_eq!(of("second").subject.as_str(), "events.v1.notes.moved.e~2E~u");
    assert_eq!(messages.len(), 2);
    dispatcher.stop(SOON).await;
    let stats = dispatcher.stats();
    assert_eq!((stats.sent, stats.duplicates, stats.failed, stats.released), (2, 0, 0, 0));
}

/// A commit wakes the dispatcher: nothing waits for the poll.
async fn a_commit_wakes_the_dispatcher<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let config = OutboxConfig { poll: Duration::from_secs(600), ..OutboxConfig::default() };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    for number in 0..5 {
        enqueue(&outbox, number..number + 1).await;
        drained(&bed, SOON).await;
    }
    dispatcher.stop(SOON).await;
    assert_eq!(nats.stored().await, 5);
}

/// Rows left by an earlier process leave without a wake; a rollback in between leaves no gap.
async fn rows_of_an_earlier_process_leave_at_the_start<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    enqueue(&outbox, 0..1000).await;
    let undone: Result<(), OutboxError> = outbox
        .transaction(async |tx| {
            EVENT.notes.added.enqueue(tx, added(1)).await?;
            Err(OutboxError::NotInTransaction)
        })
        .await;
    assert!(undone.is_err());
    enqueue(&outbox, 1000..1500).await;
    let dispatcher = Dispatcher::start(&bed.outbox(), nats.broker());
    drained(&bed, SOON).await;
    assert_eq!(nats.stored().await, 1500);
    dispatcher.stop(SOON).await;
}

/// Eight dispatchers on one table: each row is published once, and none is a duplicate.
async fn eight_dispatchers_publish_each_row_once<D: TestDb>() {
    const ROWS: u64 = 20_000;
    let (bed, nats) = (Bed::<D>::new(12).await, Nats::with_event_stream().await);
    enqueue(&bed.outbox(), 0..ROWS).await;
    let broker = Arc::new(FaultyBroker::counting(nats.broker()));
    // Each with an outbox of its own, as processes have it.
    let dispatchers: Vec<_> = (0..8).map(|_| Dispatcher::start(&bed.outbox(), broker.clone())).collect();
    drained(&bed, Duration::from_secs(60)).await;
    for dispatcher in &dispatchers {
        dispatcher.stop(SOON).await;
    }
    assert_eq!((broker.publishes(), broker.acks(), broker.duplicates()), (ROWS, ROWS, 0));
    assert_eq!(nats.stored().await, ROWS);
}

/// A row inserted first and committed last is sent all the same.
async fn a_late_commit_is_not_skipped() {
    let (bed, nats) = (Bed::<sqlx::Postgres>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    let mut early = outbox.begin().await.unwrap();
    EVENT.notes.added.enqueue(&mut early, added(1)).await.unwrap();
    enqueue(&outbox, 2..3).await;
    until("the later row left", SOON, || async { nats.stored().await == 1 }).await;
    early.commit().await.unwrap();
    until("the earlier row left", SOON, || async { nats.stored().await == 2 }).await;
    dispatcher.stop(SOON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_late_commit_is_not_skipped() {
    a_late_commit_is_not_skipped().await;
}

/// The server is away for 20 s under load: nothing is lost, dead or sent twice into the stream.
async fn an_outage_under_load_loses_nothing<D: TestDb>() {
    let (bed, mut nats) = (Bed::<D>::new(6).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    let done = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (outbox, done) = (outbox.clone(), Arc::clone(&done));
        async move {
            let mut step = 0;
            while !done.load(Ordering::SeqCst) {
                step += 1;
                let written: Result<(), OutboxError> = outbox
                    .transaction(async |tx| {
                        for key in 0..5 {
                            EVENT.notes.moved.enqueue(tx, moved(key, step)).await?;
                        }
                        EVENT.notes.added.enqueue(tx, added(step)).await.map(drop)
                    })
                    .await;
                written.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            step
        }
    });
    until("the load flows", SOON, || async { nats.stored().await > 50 }).await;
    nats.server.kill().unwrap();
    until("the dispatcher pauses", SOON, || async { dispatcher.paused().is_some() }).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    nats.server.restart().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    done.store(true, Ordering::SeqCst);
    let steps = writer.await.unwrap();
    drained(&bed, Duration::from_secs(60)).await;
    dispatcher.stop(SOON).await;
    let stats = dispatcher.stats();
    assert_eq!((stats.dead, stats.failed), (0, 0), "an outage is no row's fault");
    assert_eq!(nats.stored().await, steps * 6);
    each_key_is_in_order(&nats, 5, steps).await;
}

/// Steps of each key as the stream has them: 1, 2, 3 …
pub async fn each_key_is_in_order(nats: &Nats, keys: u64, steps: u64) {
    let mut seen = vec![Vec::new(); usize::try_from(keys).unwrap()];
    for message in nats.messages("TRELLIS_EVENTS").await {
        if message.subject.starts_with("events.v1.notes.moved") {
            let moved: crate::support::contract::Moved = serde_json::from_slice(&message.payload).unwrap();
            seen[usize::try_from(moved.key).unwrap()].push(moved.step);
        }
    }
    for (key, seen) in seen.iter().enumerate() {
        assert_eq!(*seen, (1..=steps).collect::<Vec<_>>(), "key {key}");
    }
}

/// The server is away for longer than all attempts and back-offs together, by the database's
/// clock: nothing is dead, and all rows leave in order without a restart of ours.
async fn an_outage_longer_than_all_attempts_kills_no_row<D: TestDb>() {
    let (bed, mut nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let offset = Arc::new(AtomicI64::new(0));
    let clock = DbClock::Offset(Arc::clone(&offset));
    let outbox = SqlOutbox::builder(bed.pool.clone()).db_clock(clock).build().unwrap();
    let broker = Arc::new(FaultyBroker::counting(nats.broker()));
    nats.server.kill().unwrap();
    until("the client noticed", SOON, || async {
        nats.client.connection_state() != async_nats::connection::State::Connected
    })
    .await;
    for step in 1..=20 {
        let done: Result<(), OutboxError> = outbox
            .transaction(async |tx| {
                for key in 0..3 {
                    EVENT.notes.moved.enqueue(tx, moved(key, step)).await?;
                }
                EVENT.notes.added.enqueue(tx, added(step)).await.map(drop)
            })
            .await;
        done.unwrap();
    }
    let dispatcher = Dispatcher::start(&outbox, broker.clone());
    // 20 attempts with back-offs of at most 5 min are under 2 h: let 12 h pass.
    for _ in 0..24 {
        offset.fetch_add(30 * 60 * 1000, Ordering::SeqCst);
        until("the dispatcher has met the outage", SOON, || async { dispatcher.paused().is_some() }).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(outbox.stats().await.unwrap().dead, 0);
    assert!(outbox.stats().await.unwrap().oldest >= Duration::from_secs(11 * 3600));
    nats.server.restart().unwrap();
    drained(&bed, Duration::from_secs(60)).await;
    dispatcher.stop(SOON).await;
    assert_eq!(dispatcher.stats().dead, 0);
    each_key_is_in_order(&nats, 3, 20).await;
}

/// A server that accepts everything and answers nothing: the dispatcher notices, holds nothing up,
/// and goes on when the server does.
async fn a_mute_server_is_noticed<D: TestDb>() {
    let (bed, mut nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let config = OutboxConfig { ack_timeout: Duration::from_secs(1), ..OutboxConfig::default() };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    nats.server.suspend().unwrap();
    enqueue(&outbox, 0..3000).await;
    let broker = trellis_runtime::broker::NatsBroker::new(
        nats.client.clone(),
        Environment::NONE.event_stream(),
        Duration::from_secs(1),
    );
    let dispatcher = Dispatcher::start(&outbox, Arc::new(broker));
    until("the dispatcher pauses", SOON, || async { dispatcher.paused().is_some() }).await;
    nats.server.resume().unwrap();
    drained(&bed, Duration::from_secs(60)).await;
    nats.server.suspend().unwrap();
    enqueue(&outbox, 3000..4000).await;
    tokio::time::timeout(Duration::from_secs(30), dispatcher.stop(Duration::from_secs(1))).await.unwrap();
    nats.server.resume().unwrap();
    assert_eq!((dispatcher.stats().failed, dispatcher.stats().dead), (0, 0));
    until("all came through once", SOON, || async { nats.stored().await >= 3000 }).await;
}

/// The stream is missing at the start and made later: rows leave, none is dead.
async fn a_missing_stream_is_no_fault_of_the_rows<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    let config = OutboxConfig { max_attempts: 2, ..OutboxConfig::default() };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    enqueue(&outbox, 0..100).await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the dispatcher pauses", SOON, || async { dispatcher.paused().is_some() }).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stats = outbox.stats().await.unwrap();
    assert_eq!((stats.dead, stats.failed, stats.unsent()), (0, 0, 100));
    nats.create_event_stream().await;
    drained(&bed, SOON).await;
    dispatcher.stop(SOON).await;
    assert_eq!(nats.stored().await, 100);
}

/// A full stream that discards new messages is no fault of the rows either.
async fn a_full_stream_is_no_fault_of_the_rows<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    let none = Environment::NONE;
    let stream = nats
        .context
        .create_stream(jetstream::stream::Config {
            name: none.event_stream(),
            subjects: vec![none.event_stream_subjects()],
            discard: jetstream::stream::DiscardPolicy::New,
            max_messages: 30,
            ..Default::default()
        })
        .await
        .unwrap();
    let config = OutboxConfig { max_attempts: 1, ..OutboxConfig::default() };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    enqueue(&outbox, 0..40).await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the dispatcher pauses", SOON, || async { dispatcher.paused().is_some() }).await;
    assert_eq!(nats.stored().await, 30);
    stream.purge().await.unwrap();
    drained(&bed, SOON).await;
    dispatcher.stop(SOON).await;
    assert_eq!((nats.stored().await, dispatcher.stats().dead), (10, 0));
}

/// A dispatcher that is gone holds its rows no longer than its lease, by the database's clock.
async fn a_lease_ends<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let offset = Arc::new(AtomicI64::new(0));
    let clock = DbClock::Offset(Arc::clone(&offset));
    let config = OutboxConfig { poll: Duration::from_millis(100), ..OutboxConfig::default() };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).db_clock(clock).build().unwrap();
    enqueue(&outbox, 0..3).await;
    // A broker that never answers is as good as a process that was killed after its claim.
    let stuck = Dispatcher::start(&outbox, Arc::new(SilentBroker));
    until("the rows are held", SOON, || async { outbox.stats().await.unwrap().leased == 3 }).await;
    drop(stuck);
    let next = Dispatcher::start(&outbox, nats.broker());
    offset.fetch_add(25_000, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(nats.stored().await, 0, "taken before the lease ended");
    offset.fetch_add(6_000, Ordering::SeqCst);
    drained(&bed, SOON).await;
    assert_eq!(nats.stored().await, 3);
    next.stop(SOON).await;
}

/// A lease made by a clock that was set back since does not hold for hours.
async fn a_clock_set_back_does_not_strand_rows<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let offset = Arc::new(AtomicI64::new(6 * 3600 * 1000));
    let clock = DbClock::Offset(Arc::clone(&offset));
    let outbox = SqlOutbox::builder(bed.pool.clone()).db_clock(clock).build().unwrap();
    enqueue(&outbox, 0..3).await;
    let stuck = Dispatcher::start(&outbox, Arc::new(SilentBroker));
    until("the rows are held", SOON, || async { outbox.stats().await.unwrap().leased == 3 }).await;
    drop(stuck);
    offset.store(0, Ordering::SeqCst);
    let next = Dispatcher::start(&outbox, nats.broker());
    drained(&bed, SOON).await;
    next.stop(SOON).await;
    assert_eq!(nats.stored().await, 3);
}

/// Takes pages and never answers.
#[derive(Debug)]
pub struct SilentBroker;

impl Broker for SilentBroker {
    fn publish(&self, _: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        Box::pin(std::future::pending())
    }
    fn probe(&self, _: Destination) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn first(&self, _: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        Box::pin(std::future::pending())
    }
}

/// A lost acknowledgement is a success at the second try: the broker has it already.
async fn a_lost_acknowledgement_is_made_good<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    enqueue(&bed.outbox(), 0..50).await;
    let broker = Arc::new(FaultyBroker::new(nats.broker(), |number, _| {
        if number < 50 && number % 2 == 0 { Fault::LoseAck } else { Fault::None }
    }));
    let dispatcher = Dispatcher::start(&bed.outbox(), broker.clone());
    drained(&bed, SOON).await;
    dispatcher.stop(SOON).await;
    assert_eq!((nats.stored().await, broker.duplicates()), (50, 25));
    assert_eq!((dispatcher.stats().failed, dispatcher.stats().duplicates), (0, 25));
}

/// The database refuses the mark once: the row is sent at most twice, under one id, and then gone.
async fn a_failed_mark_is_repeated<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    bed.execute("CREATE TABLE switch (name TEXT)").await;
    if D::NAME == "SQLite" {
        bed.execute("CREATE TRIGGER no_marks BEFORE DELETE ON trellis_outbox WHEN EXISTS (SELECT 1 FROM switch) BEGIN SELECT RAISE(ABORT, 'not now'); END").await;
    } else {
        bed.execute("CREATE FUNCTION no_marks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM switch) THEN RAISE 'not now'; END IF; RETURN OLD; END $$").await;
        bed.execute("CREATE TRIGGER no_marks BEFORE DELETE ON trellis_outbox FOR EACH ROW EXECUTE FUNCTION no_marks()").await;
    }
    bed.execute("INSERT INTO switch VALUES ('on')").await;
    enqueue(&bed.outbox(), 0..5).await;
    let broker = Arc::new(FaultyBroker::counting(nats.broker()));
    let dispatcher = Dispatcher::start(&bed.outbox(), broker.clone());
    until("the rows were sent", SOON, || async { nats.stored().await == 5 }).await;
    bed.execute("DELETE FROM switch").await;
    drained(&bed, Duration::from_secs(60)).await;
    dispatcher.stop(SOON).await;
    assert!(broker.publishes() <= 10, "{} publishes", broker.publishes());
    assert_eq!(nats.stored().await, 5);
}

/// An outbox that cannot be read is told, and read again once it can be.
async fn an_outbox_that_cannot_be_read_is_told<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    enqueue(&outbox, 0..5).await;
    drained(&bed, SOON).await;
    bed.execute("ALTER TABLE trellis_outbox RENAME TO away").await;
    until("the trouble is told", SOON, || async {
        dispatcher.paused().is_some_and(|reason| reason.contains("`trellis_outbox` is missing"))
    })
    .await;
    bed.execute("ALTER TABLE away RENAME TO trellis_outbox").await;
    enqueue(&outbox, 5..10).await;
    drained(&bed, SOON).await;
    until("all is well again", SOON, || async { dispatcher.paused().is_none() }).await;
    dispatcher.stop(SOON).await;
}

/// stop() sends what is left and can be called again; a broker that is away does not hold it up.
async fn a_stop_drains_and_ends<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    enqueue(&outbox, 0..3000).await;
    dispatcher.stop(Duration::from_secs(30)).await;
    assert_eq!((bed.rows().await, nats.stored().await), (0, 3000));
    dispatcher.stop(SOON).await;

    enqueue(&outbox, 0..10).await;
    let away = FaultyBroker::new(nats.broker(), |_, _| Fault::Lose).probe_fails(|| Err("away".into()));
    let dispatcher = Dispatcher::start(&outbox, Arc::new(away));
    until("the dispatcher pauses", SOON, || async { dispatcher.paused().is_some() }).await;
    tokio::time::timeout(Duration::from_secs(5), dispatcher.stop(Duration::from_secs(60))).await.unwrap();
    assert_eq!(outbox.stats().await.unwrap().pending, 10, "given back for the next process");
}

on_both_databases!(
    what_was_committed_is_sent,
    a_commit_wakes_the_dispatcher,
    rows_of_an_earlier_process_leave_at_the_start,
    eight_dispatchers_publish_each_row_once,
    an_outage_under_load_loses_nothing,
    an_outage_longer_than_all_attempts_kills_no_row,
    a_mute_server_is_noticed,
    a_missing_stream_is_no_fault_of_the_rows,
    a_full_stream_is_no_fault_of_the_rows,
    a_lease_ends,
    a_clock_set_back_does_not_strand_rows,
    a_lost_acknowledgement_is_made_good,
    a_failed_mark_is_repeated,
    an_outbox_that_cannot_be_read_is_told,
    a_stop_drains_and_ends,
    a_page_of_large_rows_ends_early,
);

/// A database call that is never answered does not stop the dispatcher for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_database_call_is_given_up() {
    let (bed, nats) = (Bed::<sqlx::Postgres>::new(4).await, Nats::with_event_stream().await);
    let proxy = crate::support::proxy::Proxy::start(&bed.url).await;
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(8).connect(&proxy.url).await.unwrap();
    let config = OutboxConfig {
        lease: Duration::from_secs(4),
        ack_timeout: Duration::from_secs(1),
        poll: Duration::from_millis(50),
        ..OutboxConfig::default()
    };
    let outbox = SqlOutbox::builder(pool).config(config).build().unwrap();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    enqueue(&bed.outbox(), 0..10).await;
    drained(&bed, SOON).await;
    proxy.hang_open_connections();
    enqueue(&bed.outbox(), 10..20).await;
    drained(&bed, Duration::from_secs(60)).await;
    assert_eq!(nats.stored().await, 20);
    dispatcher.stop(SOON).await;
}

/// A page of large rows ends early: memory does not grow with the number of rows in a page.
async fn a_page_of_large_rows_ends_early<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    for number in 0..40 {
        let note = crate::support::contract::Added { number, text: "x".repeat(1_000_000) };
        let done: Result<(), OutboxError> =
            outbox.transaction(async |tx| EVENT.notes.added.enqueue(tx, note).await.map(drop)).await;
        done.unwrap();
    }
    let largest = Arc::new(std::sync::Mutex::new(0));
    let broker = PageSizes { inner: nats.broker(), largest: Arc::clone(&largest) };
    let dispatcher = Dispatcher::start(&outbox, Arc::new(broker));
    drained(&bed, SOON).await;
    dispatcher.stop(SOON).await;
    let largest = *largest.lock().unwrap();
    assert!((16..=18).contains(&largest), "{largest} rows of 1 MB in one page");
    assert_eq!(nats.stored().await, 40);
}

struct PageSizes {
    inner: Arc<trellis_runtime::broker::NatsBroker>,
    largest: Arc<std::sync::Mutex<usize>>,
}

impl Broker for PageSizes {
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        let mut largest = self.largest.lock().unwrap();
        *largest = page.len().max(*largest);
        self.inner.publish(page)
    }
    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>> {
        self.inner.probe(destination)
    }
    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        self.inner.first(filter)
    }
}
