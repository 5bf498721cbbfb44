//! What became of a job: asked, awaited, kept for its time.
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use trellis_runtime::{Dispatcher, OutboxConfig, OutboxError, SqlOutbox, SubmissionState};

use crate::on_both_databases;
use crate::outbox_jobs::{Letter, SOON, STREAM, ahead, create, existing, hours, id, nats, outcome, patient};
use crate::support::{Bed, TestDb, until};

/// An outcome can be awaited, in the process that sends and in another one.
async fn an_outcome_can_be_awaited<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(6).await, nats().await);
    // Each with a wake-up of its own, as processes have it.
    let (here, elsewhere) = (bed.outbox(), bed.outbox());
    let ask = async |outbox: &SqlOutbox<D>, job: &str, limit: Duration| {
        outbox.wait_outcome::<Letter>(&id(job), limit).await.unwrap()
    };
    assert_eq!(ask(&here, "nobody", SOON).await, SubmissionState::Unknown);
    create(&here, "one", 1).await.unwrap();
    assert_eq!(here.job_submission_outcome::<Letter>(&id("one")).await.unwrap(), SubmissionState::Pending);
    assert_eq!(ask(&here, "one", Duration::from_millis(200)).await, SubmissionState::Pending);
    assert_eq!(ask(&here, "one", Duration::ZERO).await, SubmissionState::Pending);
    let waiting = |outbox: &SqlOutbox<D>| {
        let outbox = outbox.clone();
        tokio::spawn(async move { outbox.wait_outcome::<Letter>(&id("one"), SOON).await.unwrap() })
    };
    let waiting = [waiting(&here), waiting(&here), waiting(&elsewhere)];
    tokio::time::sleep(Duration::from_millis(100)).await;
    let dispatcher = Dispatcher::start(&here, nats.broker());
    for waiting in waiting {
        let state = waiting.await.unwrap();
        assert_eq!(state.outcome().and_then(existing), Some(false), "{state:?}");
    }
    assert_eq!(
        here.job_submission_outcome::<Letter>(&id("one")).await.unwrap(),
        ask(&elsewhere, "one", SOON).await
    );
    dispatcher.stop(SOON).await;
    bed.execute("UPDATE trellis_outbox SET outcome = 'rubbish'").await;
    let unreadable = here.job_submission_outcome::<Letter>(&id("one")).await.unwrap_err();
    assert!(matches!(unreadable, OutboxError::StoredOutcome(_)), "{unreadable:?}");
}

/// Outcomes are kept for their time and then removed, however many there are; nothing else is.
async fn outcomes_are_kept_for_their_time<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let offset = Arc::new(AtomicI64::new(0));
    let config = OutboxConfig { job_outcome_retention: Duration::from_secs(3600), ..patient() };
    let outbox = ahead(&bed, &offset, config);
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    create(&outbox, "old", 1).await.unwrap();
    outcome(&outbox, "old").await;
    offset.fetch_add(hours(1) + 1000, Ordering::SeqCst);
    create(&outbox, "new", 1).await.unwrap();
    outcome(&outbox, "new").await;
    dispatcher.stop(SOON).await;
    for (name, kind, state) in [
        ("v1", "job.create.v1", "dispatched"),
        ("v9", "job.create.v9", "dispatched"),
        ("dead", "job.create.v1", "dead"),
    ] {
        let count = if name == "v1" { 3500 } else { 1 };
        let body = if D::NAME == "SQLite" { "zeroblob(2)" } else { "'aa'::bytea" };
        bed.execute(&format!(
            "INSERT INTO trellis_outbox (id, kind, name, subject, headers, body, enqueued_at, state, decided_at, outcome) \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
             SELECT 'job:{name}:' || i, '{kind}', 'x', 'x', '{{}}', {body}, 0, '{state}', 0, '{{}}' FROM n"
        ))
        .await;
    }
    assert_eq!(outbox.stats().await.unwrap().dispatched, 3503);
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the old ones are gone", SOON, || async { bed.rows().await == 3 }).await;
    dispatcher.stop(SOON).await;
    let gone = outbox.wait_outcome::<Letter>(&id("old"), SOON).await.unwrap();
    assert_eq!(gone, SubmissionState::Unknown);
    assert_eq!(existing(&outcome(&outbox, "new").await), Some(false));
    // The row is gone, the job is not: a repeated command yields it all the same.
    create(&outbox, "old", 1).await.unwrap();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    assert_eq!(existing(&outcome(&outbox, "old").await), Some(true));
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, 2);
}

on_both_databases!(an_outcome_can_be_awaited, outcomes_are_kept_for_their_time,);
