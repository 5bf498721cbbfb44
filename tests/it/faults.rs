//! Faults that a hostile review found, each held by its right value.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use trellis_runtime::broker::{Ack, Broker, Destination, First, NatsBroker, Outgoing, PublishError};
use trellis_runtime::testing::{Fault, FaultyBroker};
use trellis_runtime::{DeadKey, Dispatcher, Host, OutboxConfig, OutboxError, SqlOutbox};

use crate::dispatcher::{SilentBroker, enqueue};
use crate::on_both_databases;
use crate::support::contract::{EVENT, added, moved};
use crate::support::nats::Nats;
use crate::support::{Bed, TestDb, until};

const SOON: Duration = Duration::from_secs(20);

async fn place<D: TestDb>(outbox: &SqlOutbox<D>, id: &str, step: u64) {
    let done: Result<(), OutboxError> = outbox
        .transaction(async |tx| EVENT.notes.moved.enqueue(tx, moved(1, step)).id(id).await.map(drop))
        .await;
    done.unwrap();
}

/// An enqueue whose error is swallowed spoils its transaction like any other failed statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swallowed_error_of_an_enqueue_is_no_silent_rollback() {
    let bed = Bed::<sqlx::Postgres>::new(4).await;
    let outbox = bed.outbox();
    let mut other = outbox.begin().await.unwrap();
    EVENT.notes.moved.enqueue(&mut other, moved(7, 1)).await.unwrap();
    let work = async |tx: &mut trellis_runtime::Tx<sqlx::Postgres>| {
        sqlx::query("SET LOCAL lock_timeout = '200ms'").execute(&mut **tx).await?;
        sqlx::query("INSERT INTO things VALUES ('state')").execute(&mut **tx).await?;
        EVENT.notes.added.enqueue(tx, added(1)).await?;
        assert!(EVENT.notes.moved.enqueue(tx, moved(7, 2)).await.is_err(), "the key is locked");
        Ok::<_, OutboxError>(())
    };
    let in_transaction = outbox.transaction(work).await.unwrap_err();
    assert!(matches!(in_transaction, OutboxError::Aborted(_)), "{in_transaction:?}");
    let in_once = outbox.once("stock", "root", work).await.unwrap_err();
    assert!(matches!(in_once, OutboxError::Aborted(_)), "{in_once:?}");
    other.rollback().await.unwrap();
    assert_eq!((bed.things().await, bed.rows().await), (0, 0));
}

/// A process with a short lease takes nothing out of another one's long lease.
async fn a_lease_holds_against_other_settings<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(8).await, Nats::with_event_stream().await);
    // Its other lanes look once, and then wait to be woken.
    let never = Duration::from_secs(600);
    let long = OutboxConfig { lease: Duration::from_secs(120), poll: never, ..OutboxConfig::default() };
    let long = SqlOutbox::builder(bed.pool.clone()).config(long).build().unwrap();
    let quick = OutboxConfig {
        backoff_longest: Duration::from_secs(60),
        poll: Duration::from_millis(50),
        ..OutboxConfig::default()
    };
    let quick = SqlOutbox::builder(bed.pool.clone()).config(quick).build().unwrap();
    enqueue(&long, 0..3).await;
    let holder = Dispatcher::start(&long, Arc::new(SilentBroker));
    until("held", SOON, || async { long.stats().await.unwrap().leased == 3 }).await;
    // Gone without a word, as a killed process is; not amid a claim, which would take the next row too.
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(holder);
    let other = Dispatcher::start(&quick, nats.broker());
    enqueue(&quick, 3..4).await;
    until("the other one claims", SOON, || async { nats.stored().await > 0 }).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((nats.stored().await, quick.stats().await.unwrap().leased), (1, 3));
    other.stop(SOON).await;
}

/// A message that makes the server cut the connection takes its page down with it: only that one is
/// found guilty.
struct CutsTheConnection {
    inner: Arc<NatsBroker>,
    away: Arc<AtomicUsize>,
}

impl Broker for CutsTheConnection {
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        let cuts = page.iter().any(|message| message.body.starts_with(br#"{"number":13,"#));
        if cuts {
            self.away.store(2, Ordering::SeqCst);
            let lost = || Err(PublishError::Unavailable("broken pipe".to_owned()));
            return Box::pin(std::future::ready(page.iter().map(|_| lost()).collect()));
        }
        self.inner.publish(page)
    }
    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        self.inner.first(filter)
    }
    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>> {
        let away = self.away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if away.is_ok() {
            Box::pin(std::future::ready(Err("reconnecting".to_owned())))
        } else {
            self.inner.probe(destination)
        }
    }
}

async fn one_row_takes_no_other_down_with_it<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let config = OutboxConfig {
        max_attempts: 2,
        backoff_first: Duration::from_millis(50),
        backoff_longest: Duration::from_millis(100),
        poll: Duration::from_millis(50),
        ..OutboxConfig::default()
    };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    enqueue(&outbox, 0..100).await;
    let broker = CutsTheConnection { inner: nats.broker(), away: Arc::default() };
    let dispatcher = Dispatcher::start(&outbox, Arc::new(broker));
    until("the guilty one is dead", Duration::from_secs(60), || async {
        outbox.stats().await.unwrap().dead == 1
    })
    .await;
    until("the others left", SOON, || async { bed.rows().await == 1 }).await;
    dispatcher.stop(SOON).await;
    assert_eq!((nats.stored().await, dispatcher.stats().failed), (99, 2));
}

/// A panic costs a page its lease; the dispatcher goes on, and tells.
async fn a_panicking_lane_is_told_and_goes_on<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    let broker = FaultyBroker::new(nats.broker(), |number, _| {
        assert!(number >= 3, "injected panic");
        Fault::None
    });
    let dispatcher = Dispatcher::start(&outbox, Arc::new(broker));
    for number in 0..3 {
        enqueue(&outbox, number..number + 1).await;
        until("held", SOON, || async { outbox.stats().await.unwrap().leased == number + 1 }).await;
    }
    until("the panic is told", SOON, || async {
        dispatcher.paused().is_some_and(|reason| reason.contains("injected panic"))
    })
    .await;
    enqueue(&outbox, 10..20).await;
    until("the rest leaves", SOON, || async { nats.stored().await == 10 }).await;
    dispatcher.stop(SOON).await;
}

/// Rows that were sent and cannot be marked are not sent again and again, and it is told.
async fn marks_that_are_refused_are_told<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    if D::NAME == "SQLite" {
        bed.execute("CREATE TRIGGER no_marks BEFORE DELETE ON trellis_outbox BEGIN SELECT RAISE(ABORT, 'not now'); END").await;
    } else {
        bed.execute(
            "CREATE FUNCTION no_marks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$",
        )
        .await;
        bed.execute("CREATE TRIGGER no_marks BEFORE DELETE ON trellis_outbox FOR EACH ROW EXECUTE FUNCTION no_marks()").await;
    }
    let config = OutboxConfig {
        lease: Duration::from_secs(1),
        ack_timeout: Duration::from_millis(250),
        ..OutboxConfig::default()
    };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    enqueue(&outbox, 0..5).await;
    let broker = Arc::new(FaultyBroker::counting(nats.broker()));
    let dispatcher = Dispatcher::start(&outbox, broker.clone());
    until("it is told", SOON, || async {
        dispatcher.paused().is_some_and(|reason| reason.contains("cannot be marked"))
    })
    .await;
    // Several leases long.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(broker.publishes(), 5);
    let drop_trigger =
        if D::NAME == "SQLite" { "DROP TRIGGER no_marks" } else { "DROP TRIGGER no_marks ON trellis_outbox" };
    bed.execute(drop_trigger).await;
    until("they are gone", SOON, || async { bed.rows().await == 0 }).await;
    until("all is well", SOON, || async { dispatcher.paused().is_none() }).await;
    dispatcher.stop(SOON).await;
    assert_eq!(broker.publishes(), 5);
}

/// Good rows do not wait for the judgement of one that is never answered.
async fn an_unanswered_row_holds_nothing_up<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    for step in 1..=5 {
        place(&outbox, &format!("row-{step}"), step).await;
    }
    // Somebody listens on the first row's subject, and no stream: so there is no answer at all.
    bed.execute("UPDATE trellis_outbox SET subject = 'elsewhere.x', order_key = NULL WHERE id = 'row-1'")
        .await;
    let _listener = nats.client.subscribe("elsewhere.x").await.unwrap();
    let dispatcher = Dispatcher::start(
        &outbox,
        Arc::new(NatsBroker::new(nats.client.clone(), "TRELLIS_EVENTS", Duration::from_secs(2))),
    );
    until("the good rows left", Duration::from_secs(6), || async { nats.stored().await == 4 }).await;
    dispatcher.stop(Duration::from_secs(1)).await;
}

/// Answers for the first message of a page only.
struct Short(Arc<NatsBroker>);

impl Broker for Short {
    fn publish(&self, mut page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        page.truncate(1);
        self.0.publish(page)
    }
    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>> {
        self.0.probe(destination)
    }
    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        self.0.first(filter)
    }
}

async fn a_missing_answer_is_no_success<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = bed.outbox();
    enqueue(&outbox, 0..10).await;
    let dispatcher = Dispatcher::start(&outbox, Arc::new(Short(nats.broker())));
    until("all left, one by one", SOON, || async { bed.rows().await == 0 }).await;
    dispatcher.stop(SOON).await;
    assert_eq!(nats.stored().await, 10);
}

/// Where dead rows are skipped, one that is redriven goes first, and still only one of its key is in
/// flight.
async fn a_redriven_row_goes_first<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let config = OutboxConfig {
        dead_key: DeadKey::Skip,
        max_attempts: 1,
        poll: Duration::from_millis(50),
        ..OutboxConfig::default()
    };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    place(&outbox, "one", 1).await;
    let refuse = FaultyBroker::new(nats.broker(), |_, _| Fault::Refuse("no".into()));
    let dispatcher = Dispatcher::start(&outbox, Arc::new(refuse));
    until("dead", SOON, || async { outbox.stats().await.unwrap().dead == 1 }).await;
    dispatcher.stop(Duration::from_secs(5)).await;
    place(&outbox, "two", 2).await;
    place(&outbox, "three", 3).await;
    outbox.redrive("one").await.unwrap();
    let largest = Arc::new(AtomicUsize::new(0));
    let pages = Pages { inner: nats.broker(), largest: Arc::clone(&largest) };
    let dispatcher = Dispatcher::start(&outbox, Arc::new(pages));
    until("all left", SOON, || async { bed.rows().await == 0 }).await;
    dispatcher.stop(SOON).await;
    assert_eq!(largest.load(Ordering::SeqCst), 1, "rows of one key in one page");
    let steps = nats.messages("TRELLIS_EVENTS").await;
    let steps: Vec<u64> = steps
        .iter()
        .map(|message| {
            serde_json::from_slice::<crate::support::contract::Moved>(&message.payload).unwrap().step
        })
        .collect();
    assert_eq!(steps, [1, 2, 3]);
}

/// Notes the largest page.
struct Pages {
    inner: Arc<NatsBroker>,
    largest: Arc<AtomicUsize>,
}

impl Broker for Pages {
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        self.largest.fetch_max(page.len(), Ordering::SeqCst);
        self.inner.publish(page)
    }
    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>> {
        self.inner.probe(destination)
    }
    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        self.inner.first(filter)
    }
}

on_both_databases!(
    a_lease_holds_against_other_settings,
    one_row_takes_no_other_down_with_it,
    a_panicking_lane_is_told_and_goes_on,
    marks_that_are_refused_are_told,
    an_unanswered_row_holds_nothing_up,
    a_missing_answer_is_no_success,
    a_redriven_row_goes_first,
);

/// Two processes on one SQLite file: a steady writer keeps nobody out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_file_meet_no_busy() {
    let bed = Bed::<sqlx::Sqlite>::new(2).await;
    let url = format!("sqlite://{}", bed.url);
    // Each with a pool and an outbox of its own, as processes have them, and an impatient time-out.
    let pool = || {
        let options: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
        sqlx::SqlitePool::connect_lazy_with(options.busy_timeout(Duration::from_millis(50)))
    };
    let (busy, other) = (SqlOutbox::new(pool()).unwrap(), SqlOutbox::new(pool()).unwrap());
    let writer = tokio::spawn(async move {
        loop {
            let done: Result<(), OutboxError> = busy
                .transaction(async |tx| {
                    EVENT.notes.added.enqueue(tx, added(1)).await?;
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    Ok(())
                })
                .await;
            done.unwrap();
        }
    });
    for number in 0..20 {
        let done: Result<(), OutboxError> =
            other.transaction(async |tx| EVENT.notes.added.enqueue(tx, added(number)).await.map(drop)).await;
        done.unwrap();
    }
    writer.abort();
}

#[trellis::contract(id = "twin.shop@v1")]
mod one {
    #[event("twins.seen")]
    #[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Seen {
        pub number: u64,
    }
}

#[trellis::contract(id = "twin.shop@v2")]
mod two {
    #[event("twins.seen")]
    #[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Seen {
        pub number: u64,
    }
}

struct One;
impl trellis::Service for One {
    type Ctx = trellis_runtime::Ctx<one::Contract, sqlx::Sqlite>;
}

struct Two;
impl trellis::Service for Two {
    type Ctx = trellis_runtime::Ctx<two::Contract, sqlx::Sqlite>;
}

/// Two versions of one contract start at the same moment, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_versions_of_a_contract_start_together() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::with_event_stream().await);
    for _ in 0..8 {
        let first = Host::builder(One, bed.outbox()).client(nats.client.clone()).start();
        let second = Host::builder(Two, bed.outbox()).client(nats.client.clone()).start();
        let (first, second) = tokio::join!(first, second);
        let (first, second) = (first.unwrap(), second.unwrap());
        first.stop().await;
        second.stop().await;
    }
    let stream = nats.context.get_stream("TRELLIS_EVENTS").await.unwrap();
    let owner = stream.cached_info().config.metadata.get("trellis.owner.events.v1.twins.seen").cloned();
    assert_eq!(owner.as_deref(), Some("twin.shop@v2 0"));
}
