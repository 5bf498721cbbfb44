//! Rows that are old: what may have run is not made to run again.
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use trellis_runtime::testing::{Fault, FaultyBroker, ReadFault};
use trellis_runtime::{Dispatcher, OutboxConfig, SqlOutbox, SubmissionOutcome};

use crate::on_both_databases;
use crate::outbox_jobs::{
    Letter, SOON, STREAM, ahead, create, existing, hours, id, nats, outcome, patient, purge,
};
use crate::support::nats::Nats;
use crate::support::{Bed, TestDb, until};

/// Send `job` so that it is stored and nobody learns of it; the row is given back.
async fn send_in_vain<D: TestDb>(outbox: &SqlOutbox<D>, nats: &Nats, fault: Fault) {
    let broker = FaultyBroker::new(nats.broker(), move |_, _| fault.clone());
    let broker = broker.probe_fails(|| Err("away".to_owned()));
    let dispatcher = Dispatcher::start(outbox, Arc::new(broker));
    until("the row is given back", SOON, || async { dispatcher.stats().released > 0 }).await;
    dispatcher.stop(Duration::ZERO).await;
    assert_eq!(outbox.stats().await.unwrap().pending, 1);
}

/// A row that may have been sent long ago is not sent again where its log may have been removed since.
async fn an_unknown_outcome_is_not_sent_again<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let offset = Arc::new(AtomicI64::new(0));
    let outbox = ahead(&bed, &offset, patient());
    create(&outbox, "ran", 1).await.unwrap();
    send_in_vain(&outbox, &nats, Fault::LoseAck).await;
    assert_eq!(nats.count(STREAM).await, 1);
    // It ran, and is no longer kept.
    purge(&nats).await;
    offset.fetch_add(hours(25), Ordering::SeqCst);
    let broker = Arc::new(FaultyBroker::counting(nats.broker()));
    let dispatcher = Dispatcher::start(&outbox, broker.clone());
    let dead = outcome(&outbox, "ran").await;
    let SubmissionOutcome::Dead { reason, .. } = &dead else { panic!("{dead:?}") };
    assert!(reason.starts_with("outcome unknown: it was first sent 900"), "{reason}");
    assert_eq!((broker.publishes(), nats.count(STREAM).await), (0, 0));
    assert_eq!(outbox.dead(1).await.unwrap()[0].reason, *reason);
    // An operator knows better.
    assert!(outbox.redrive("job:post.letter:ran").await.unwrap());
    until("it is accepted", SOON, || async {
        let state = outbox.wait_outcome::<Letter>(&id("ran"), SOON).await.unwrap();
        state.outcome().is_some_and(SubmissionOutcome::is_accepted)
    })
    .await;
    dispatcher.stop(SOON).await;
    assert_eq!((nats.count(STREAM).await, dispatcher.stats().dead), (1, 1));
}

/// Where the log still tells, a row of any age is decided.
async fn an_old_row_is_decided_by_what_its_log_tells<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let offset = Arc::new(AtomicI64::new(0));
    let outbox = ahead(&bed, &offset, patient());
    create(&outbox, "kept", 1).await.unwrap();
    send_in_vain(&outbox, &nats, Fault::LoseAck).await;
    offset.fetch_add(hours(25), Ordering::SeqCst);
    let broker = FaultyBroker::counting(nats.broker())
        .read_fails(|number, _| if number < 3 { ReadFault::Fail("not now".into()) } else { ReadFault::None });
    let broker = Arc::new(broker);
    let dispatcher = Dispatcher::start(&outbox, broker.clone());
    assert_eq!(existing(&outcome(&outbox, "kept").await), Some(false));
    dispatcher.stop(SOON).await;
    assert_eq!((broker.publishes(), nats.count(STREAM).await), (0, 1));
}

/// A row that was claimed and never sent does not grow old, however long the broker is away.
async fn a_row_that_was_never_sent_does_not_grow_old<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let offset = Arc::new(AtomicI64::new(0));
    let outbox = ahead(&bed, &offset, patient());
    create(&outbox, "waits", 1).await.unwrap();
    for _ in 0..3 {
        send_in_vain(&outbox, &nats, Fault::Unsent).await;
        offset.fetch_add(hours(25), Ordering::SeqCst);
    }
    assert_eq!(bed.number("SELECT count(*) FROM trellis_outbox WHERE first_sent_at IS NULL").await, 1);
    // What was sent once may be there, whatever became of the later sends.
    send_in_vain(&outbox, &nats, Fault::Lose).await;
    let first = "SELECT first_sent_at FROM trellis_outbox";
    let sent_at = bed.number(first).await;
    offset.fetch_add(hours(1), Ordering::SeqCst);
    send_in_vain(&outbox, &nats, Fault::Unsent).await;
    assert_eq!(bed.number(first).await, sent_at);
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    assert_eq!(existing(&outcome(&outbox, "waits").await), Some(false));
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, 1);
}

/// What was refused, however often and long ago, is not there: redriven, it is sent.
async fn a_refused_row_does_not_grow_old<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let offset = Arc::new(AtomicI64::new(0));
    let outbox = ahead(&bed, &offset, OutboxConfig { max_attempts: 3, ..patient() });
    create(&outbox, "refused", 1).await.unwrap();
    let refuse = FaultyBroker::new(nats.broker(), |_, _| Fault::Refuse("no".to_owned()));
    let dispatcher = Dispatcher::start(&outbox, Arc::new(refuse));
    let dead = outcome(&outbox, "refused").await;
    assert!(matches!(&dead, SubmissionOutcome::Dead { reason, .. } if reason == "no"), "{dead:?}");
    dispatcher.stop(SOON).await;
    offset.fetch_add(hours(25), Ordering::SeqCst);
    assert!(outbox.redrive("job:post.letter:refused").await.unwrap());
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    assert_eq!(existing(&outcome(&outbox, "refused").await), Some(false));
    dispatcher.stop(SOON).await;
}

/// A row that may have been sent keeps its age over a redrive, unless it was given up for its age.
async fn a_redrive_of_what_may_be_there_keeps_its_age<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let offset = Arc::new(AtomicI64::new(0));
    let outbox = ahead(&bed, &offset, OutboxConfig { max_attempts: 3, ..patient() });
    create(&outbox, "maybe", 1).await.unwrap();
    let refuse = FaultyBroker::new(nats.broker(), |number, _| match number {
        0 => Fault::LoseAck,
        _ => Fault::Refuse("no".to_owned()),
    });
    let dispatcher = Dispatcher::start(&outbox, Arc::new(refuse));
    outcome(&outbox, "maybe").await;
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, 1);
    purge(&nats).await;
    offset.fetch_add(hours(25), Ordering::SeqCst);
    assert!(outbox.redrive("job:post.letter:maybe").await.unwrap());
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    let dead = outcome(&outbox, "maybe").await;
    assert!(
        matches!(&dead, SubmissionOutcome::Dead { reason, .. } if reason.starts_with("outcome unknown")),
        "{dead:?}"
    );
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, 0);
}

on_both_databases!(
    a_refused_row_does_not_grow_old,
    a_redrive_of_what_may_be_there_keeps_its_age,
    an_unknown_outcome_is_not_sent_again,
    an_old_row_is_decided_by_what_its_log_tells,
    a_row_that_was_never_sent_does_not_grow_old,
);
