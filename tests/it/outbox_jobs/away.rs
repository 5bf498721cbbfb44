//! One stream is away: the rows for the other one do not wait.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use trellis_runtime::broker::{Ack, Broker, Destination, First, Outgoing, PublishError};
use trellis_runtime::{Dispatcher, OutboxConfig, SqlOutbox};

use crate::dispatcher::enqueue;
use crate::on_both_databases;
use crate::outbox_jobs::{
    SOON, STREAM, ahead, create, create_job_stream, existing, hours, nats, outcome, patient,
};
use crate::support::nats::Nats;
use crate::support::{Bed, TestDb, until};

/// A missing stream of jobs holds up no event, and the jobs leave once it is made.
async fn a_missing_stream_of_jobs_holds_up_no_event<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let offset = Arc::new(AtomicI64::new(0));
    let outbox = ahead(&bed, &offset, OutboxConfig { max_attempts: 2, ..patient() });
    for number in 0..100 {
        create(&outbox, &format!("job-{number}"), number).await.unwrap();
    }
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the jobs pause", SOON, || async {
        dispatcher.paused().is_some_and(|reason| reason.contains(STREAM))
    })
    .await;
    for round in 0..10 {
        enqueue(&outbox, round * 100..(round + 1) * 100).await;
        until("the events leave", SOON, || async { nats.stored().await == (round + 1) * 100 }).await;
        offset.fetch_add(hours(3), Ordering::SeqCst);
    }
    // One more lane may have claimed them just before the pause; it gives them back.
    until("only the jobs wait", SOON, || async {
        let stats = outbox.stats().await.unwrap();
        (stats.pending, stats.unsent()) == (100, 100)
    })
    .await;
    let stats = outbox.stats().await.unwrap();
    assert_eq!((stats.failed, stats.dead), (0, 0));
    assert!(dispatcher.paused().is_some());
    create_job_stream(&nats).await;
    until("the jobs leave", SOON, || async { outbox.stats().await.unwrap().dispatched == 100 }).await;
    assert_eq!(dispatcher.paused(), None);
    dispatcher.stop(SOON).await;
    assert_eq!((nats.count(STREAM).await, dispatcher.stats().dead), (100, 0));
}

/// And the other way round; a stop does not wait for what is away, and leaves it to be sent.
async fn a_missing_stream_of_events_holds_up_no_job<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    create_job_stream(&nats).await;
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(patient()).build().unwrap();
    enqueue(&outbox, 0..100).await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the events pause", SOON, || async { dispatcher.paused().is_some() }).await;
    for number in 0..20 {
        create(&outbox, &format!("job-{number}"), number).await.unwrap();
        outcome(&outbox, &format!("job-{number}")).await;
    }
    create(&outbox, "last", 1).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), dispatcher.stop(Duration::from_secs(60))).await.unwrap();
    let stats = outbox.stats().await.unwrap();
    assert_eq!((stats.pending, stats.dispatched, stats.failed, stats.dead), (100, 21, 0, 0));
    nats.create_event_stream().await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the events leave", SOON, || async { nats.stored().await == 100 }).await;
    dispatcher.stop(SOON).await;
}

/// Only one stream's probe fails, and hangs: the rows for the other one keep their pace.
async fn a_stream_that_does_not_answer_holds_up_no_other<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(patient()).build().unwrap();
    let broker = SlowJobs { inner: nats.broker(), away: AtomicBool::new(true) };
    let broker = Arc::new(broker);
    create(&outbox, "slow", 1).await.unwrap();
    let dispatcher = Dispatcher::start(&outbox, broker.clone());
    until("the jobs pause", SOON, || async { dispatcher.paused().is_some() }).await;
    let began = crate::support::reader::now();
    for round in 0..50 {
        enqueue(&outbox, round..round + 1).await;
        until("the event left", SOON, || async { nats.stored().await == round + 1 }).await;
    }
    let took = crate::support::reader::now().saturating_sub(began);
    assert!(took < Duration::from_secs(10), "50 events took {took:?}");
    broker.away.store(false, Ordering::SeqCst);
    assert_eq!(existing(&outcome(&outbox, "slow").await), Some(false));
    dispatcher.stop(SOON).await;
}

/// While it is away, everything about jobs takes two seconds and fails.
struct SlowJobs {
    inner: Arc<dyn Broker>,
    away: AtomicBool,
}

impl Broker for SlowJobs {
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        let jobs = page.iter().any(|message| message.subject.starts_with("trellis.jobs."));
        if !(jobs && self.away.load(Ordering::SeqCst)) {
            return self.inner.publish(page);
        }
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            page.iter().map(|_| Err(PublishError::Unavailable("no answer".to_owned()))).collect()
        })
    }
    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>> {
        if destination == Destination::Events || !self.away.load(Ordering::SeqCst) {
            return self.inner.probe(destination);
        }
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Err("no answer".to_owned())
        })
    }
    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        self.inner.first(filter)
    }
}

on_both_databases!(
    a_missing_stream_of_jobs_holds_up_no_event,
    a_missing_stream_of_events_holds_up_no_job,
    a_stream_that_does_not_answer_holds_up_no_other,
);
