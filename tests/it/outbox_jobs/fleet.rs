//! Several dispatchers, versions and outages.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use trellis_runtime::broker::{Ack, Broker, Destination, First, Outgoing, PublishError};
use trellis_runtime::testing::FaultyBroker;
use trellis_runtime::{Dispatcher, OutboxError, SubmissionOutcome, Tables};

use crate::dispatcher::enqueue;
use crate::on_both_databases;
use crate::outbox_jobs::{JOB, SOON, STREAM, ahead, create, existing, letter, nats, outcome, patient};
use crate::support::{Bed, TestDb, until};

/// What an earlier version sees: rows of kinds from the future, around and between those it knows.
async fn kinds_from_the_future_are_left_alone<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = bed.outbox();
    let kinds = ["a.v1", "event.v2", "job.create.v2", "zebra.v1"];
    for kind in kinds {
        create(&outbox, kind.split_once('.').unwrap().0, 1).await.unwrap();
        bed.execute(&format!("UPDATE trellis_outbox SET kind = '{kind}' WHERE kind = 'job.create.v1'")).await;
    }
    create(&outbox, "known", 1).await.unwrap();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    outcome(&outbox, "known").await;
    dispatcher.stop(SOON).await;
    let stats = outbox.stats().await.unwrap();
    assert!(stats.unknown.keys().map(String::as_str).eq(kinds), "{:?}", stats.unknown);
    assert_eq!((stats.unsent(), stats.dispatched, nats.count(STREAM).await), (0, 1, 1));
}

/// Eight dispatchers on one table: each job is in the log once.
async fn eight_dispatchers_create_each_job_once<D: TestDb>() {
    const JOBS: u64 = 5000;
    let (bed, nats) = (Bed::<D>::new(12).await, nats().await);
    let outbox = bed.outbox();
    for chunk in (0..JOBS).collect::<Vec<_>>().chunks(250) {
        let done: Result<(), OutboxError> = outbox
            .transaction(async |tx| {
                for number in chunk {
                    JOB.post.letter.create(&mut *tx, letter(*number)).await?;
                }
                Ok(())
            })
            .await;
        done.unwrap();
    }
    let broker = Arc::new(FaultyBroker::counting(nats.broker()));
    let dispatchers: Vec<_> = (0..8).map(|_| Dispatcher::start(&bed.outbox(), broker.clone())).collect();
    until("all are decided", Duration::from_secs(60), || async {
        outbox.stats().await.unwrap().dispatched == JOBS
    })
    .await;
    for dispatcher in &dispatchers {
        dispatcher.stop(SOON).await;
    }
    assert_eq!((broker.publishes(), broker.acks()), (JOBS, JOBS));
    assert_eq!(dispatchers.iter().map(|dispatcher| dispatcher.stats().sent).sum::<u64>(), JOBS);
    let messages = nats.messages(STREAM).await;
    let subjects: std::collections::HashSet<_> =
        messages.iter().map(|message| message.subject.as_str()).collect();
    assert_eq!((messages.len() as u64, subjects.len() as u64), (JOBS, JOBS));
}

/// One that lost its lease decides nothing, and what it sends late changes nothing.
async fn a_late_owner_decides_nothing<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(6).await, nats().await);
    // By its clock the lease of the late one never ends, so that none of its lanes claims the row again.
    let outbox = ahead(&bed, &Arc::new(AtomicI64::new(31_000)), patient());
    create(&outbox, "one", 1).await.unwrap();
    let (told, go) = (Arc::new(tokio::sync::Semaphore::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let late = Held { inner: nats.broker(), told: Arc::clone(&told), go: Arc::clone(&go) };
    let late = Dispatcher::start(&bed.outbox(), Arc::new(late));
    drop(tokio::time::timeout(SOON, told.acquire()).await.unwrap().unwrap());
    let next = Dispatcher::start(&outbox, nats.broker());
    assert_eq!(existing(&outcome(&outbox, "one").await), Some(false));
    next.stop(SOON).await;
    bed.execute("UPDATE trellis_outbox SET outcome = '{\"v\":1,\"kind\":\"as it was\"}'").await;
    go.add_permits(1);
    until("the late one is through", SOON, || async { late.stats().sent == 1 }).await;
    late.stop(SOON).await;
    assert!(
        matches!(outcome(&outbox, "one").await, SubmissionOutcome::Other { kind, .. } if kind == "as it was")
    );
    assert_eq!(nats.count(STREAM).await, 1);
}

/// Tells that it holds a page, and publishes it when it is told to.
struct Held {
    inner: Arc<dyn Broker>,
    told: Arc<tokio::sync::Semaphore>,
    go: Arc<tokio::sync::Semaphore>,
}

impl Broker for Held {
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        Box::pin(async move {
            self.told.add_permits(1);
            self.go.acquire().await.unwrap().forget();
            self.inner.publish(page).await
        })
    }
    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>> {
        self.inner.probe(destination)
    }
    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        self.inner.first(filter)
    }
}

/// The server is killed and comes back while jobs are created and sent: each is in the log once.
async fn an_outage_under_load_loses_and_doubles_nothing<D: TestDb>() {
    let (bed, mut nats) = (Bed::<D>::new(6).await, nats().await);
    let outbox = bed.outbox();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    let done = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (outbox, done) = (outbox.clone(), Arc::clone(&done));
        async move {
            let mut jobs = 0;
            while !done.load(Ordering::SeqCst) {
                create(&outbox, &format!("job-{jobs}"), jobs).await.unwrap();
                jobs += 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            jobs
        }
    });
    for _ in 0..3 {
        let before = nats.count(STREAM).await;
        until("the load flows", SOON, || async { nats.count(STREAM).await > before + 50 }).await;
        nats.server.kill().unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        nats.server.restart().unwrap();
    }
    done.store(true, Ordering::SeqCst);
    let jobs = writer.await.unwrap();
    until("all are decided", Duration::from_secs(60), || async {
        outbox.stats().await.unwrap().dispatched == jobs
    })
    .await;
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, jobs);
    let stats = dispatcher.stats();
    assert_eq!((stats.sent, stats.dead, stats.failed, stats.rejected), (jobs, 0, 0, 0));
    assert_eq!(
        bed.number("SELECT count(*) FROM trellis_outbox WHERE outcome = '{\"v\":1,\"kind\":\"accepted\"}'")
            .await,
        i64::try_from(jobs).unwrap(),
        "none is taken for another's"
    );
}

/// The table of the first version, with rows in it, becomes the present one; both kinds leave.
async fn a_table_of_the_first_version_is_upgraded<D: TestDb>() {
    let (bed, nats) = (D::empty(4).await, nats().await);
    let artifacts = trellis_runtime::migrations::<D>(&Tables::default());
    let versions: Vec<i64> = artifacts.iter().map(|artifact| artifact.version).collect();
    assert_eq!(versions, [1, 2]);
    let first = sqlx::migrate::Migration::new(
        1,
        artifacts[0].description.into(),
        sqlx::migrate::MigrationType::Simple,
        sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(artifacts[0].up.clone())),
        false,
    );
    let hex = &artifacts[0].checksum;
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
    assert!(first.checksum.iter().copied().eq(bytes));
    let mut migrator = sqlx::migrate::Migrator::with_migrations(vec![first]);
    migrator.dangerous_set_table_name("trellis_outbox_migrations");
    migrator.run(&bed.pool).await.unwrap();

    let outbox = bed.outbox();
    let old = outbox.verify().await.unwrap_err();
    assert!(matches!(&old, OutboxError::NotMigrated { .. }), "{old:?}");
    // An enqueue needs nothing that is new.
    enqueue(&outbox, 0..20).await;
    bed.execute("UPDATE trellis_outbox SET state = 'failed', due_at = 0, attempts = 1 WHERE seq % 3 = 0")
        .await;
    bed.execute("UPDATE trellis_outbox SET state = 'dead', reason = 'old' WHERE seq % 3 = 1").await;
    trellis_runtime::migrate(&bed.pool).await.unwrap();
    trellis_runtime::migrate(&bed.pool).await.unwrap();
    outbox.verify().await.unwrap();

    create(&outbox, "new", 1).await.unwrap();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    outcome(&outbox, "new").await;
    until("the old rows left", SOON, || async { outbox.stats().await.unwrap().unsent() == 0 }).await;
    let dead = outbox.dead(100).await.unwrap();
    assert_eq!(nats.stored().await + dead.len() as u64, 20);
    for row in &dead {
        assert!(outbox.redrive(&row.id).await.unwrap());
    }
    until("the dead ones left", SOON, || async { nats.stored().await == 20 }).await;
    dispatcher.stop(SOON).await;
    // And back again, on one connection: others have yet to learn of a changed schema.
    let mut connection = bed.pool.acquire().await.unwrap();
    for artifact in artifacts.iter().rev() {
        for statement in artifact.down.split(';').filter(|statement| !statement.trim().is_empty()) {
            D::run(&mut connection, statement).await.unwrap();
        }
    }
}

on_both_databases!(
    kinds_from_the_future_are_left_alone,
    eight_dispatchers_create_each_job_once,
    a_late_owner_decides_nothing,
    an_outage_under_load_loses_and_doubles_nothing,
    a_table_of_the_first_version_is_upgraded,
);
