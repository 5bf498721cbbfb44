//! Something is in the log already: what is there decides.
use std::sync::Arc;

use trellis_runtime::testing::{FaultyBroker, ReadFault};
use trellis_runtime::{Dispatcher, Rejection, SqlOutbox, SubmissionOutcome};

use crate::on_both_databases;
use crate::outbox_jobs::{SOON, STREAM, append, create, existing, nats, outcome, patient};
use crate::support::{Bed, TestDb};

/// A job of the same id was created another way: the same payload is that job, another one is refused.
async fn a_job_that_is_there_decides<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = bed.outbox();
    append(&nats, "same", "created", r#"{"v":1,"payload":{"number":1}}"#).await;
    append(&nats, "same", "started", r#"{"v":1}"#).await;
    append(&nats, "redriven", "retried", r#"{"v":1,"payload":{"number":1}}"#).await;
    append(&nats, "other", "created", r#"{"v":1,"payload":{"number":2}}"#).await;
    append(&nats, "rubbish", "created", "rubbish").await;
    for job in ["same", "redriven", "other", "rubbish"] {
        create(&outbox, job, 1).await.unwrap();
    }
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    for job in ["same", "redriven"] {
        assert_eq!(existing(&outcome(&outbox, job).await), Some(true), "{job}");
    }
    for job in ["other", "rubbish"] {
        let rejected = outcome(&outbox, job).await;
        assert!(
            matches!(&rejected, SubmissionOutcome::Rejected { reason: Rejection::DuplicateId, .. }),
            "{job}: {rejected:?}"
        );
    }
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, 5);
    let stats = dispatcher.stats();
    assert_eq!((stats.sent, stats.duplicates, stats.rejected, stats.dead), (2, 2, 2, 0));
    assert_eq!(outbox.stats().await.unwrap().dispatched, 4);
    assert_eq!(
        bed.text("SELECT outcome FROM trellis_outbox WHERE id = 'job:post.letter:other'").await.as_deref(),
        Some(r#"{"v":1,"kind":"rejected","reason":"duplicate-id"}"#)
    );
}

/// "Not found" proves nothing: one who lags says so. The row is tried until somebody knows.
async fn what_is_not_found_is_asked_again<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(patient()).build().unwrap();
    append(&nats, "there", "created", r#"{"v":1,"payload":{"number":1}}"#).await;
    append(&nats, "later", "created", r#"{"v":2,"everything":"else"}"#).await;
    create(&outbox, "there", 1).await.unwrap();
    create(&outbox, "later", 1).await.unwrap();
    let broker = FaultyBroker::counting(nats.broker()).read_fails(|number, _| match number {
        0..8 => ReadFault::FindNothing,
        _ => ReadFault::None,
    });
    let dispatcher = Dispatcher::start(&outbox, Arc::new(broker));
    assert_eq!(existing(&outcome(&outbox, "there").await), Some(true));
    // What a later version wrote is neither the same nor another: given up after all its attempts.
    let dead = outcome(&outbox, "later").await;
    assert!(
        matches!(&dead, SubmissionOutcome::Dead { reason, .. } if reason.contains("a later version")),
        "{dead:?}"
    );
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, 2);
}

on_both_databases!(a_job_that_is_there_decides, what_is_not_found_is_asked_again,);
