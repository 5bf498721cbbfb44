//! Commit to log: everything that was committed is appended, once.
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use futures_util::StreamExt;
use trellis::JobId;
use trellis_runtime::testing::{Fault, FaultyBroker};
use trellis_runtime::{Dispatcher, OutboxConfig, OutboxError, OutboxErrorKind, SqlOutbox, SubmissionOutcome};

use crate::dispatcher::enqueue;
use crate::on_both_databases;
use crate::outbox_jobs::{JOB, SOON, STREAM, create, existing, header, id, letter, nats, outcome, patient};
use crate::support::nats::Nats;
use crate::support::{Bed, TestDb, until};

/// What was committed is the first entry of a log of its own; what was rolled back is nowhere.
async fn what_was_committed_is_in_the_log<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = bed.outbox();
    let undone: Result<(), OutboxError> = outbox
        .transaction(async |tx| {
            JOB.post.letter.create(&mut *tx, letter(1)).id("undone").await?;
            Err(OutboxError::NotInTransaction)
        })
        .await;
    undone.unwrap_err();
    create(&outbox, "chosen", 2).await.unwrap();
    let made: Result<JobId, OutboxError> =
        outbox.transaction(async |tx| JOB.post.letter.create(&mut *tx, letter(3)).await).await;
    let made = made.unwrap();
    assert_eq!(made.as_str().len(), 26, "a ULID");
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    assert_eq!(existing(&outcome(&outbox, "chosen").await), Some(false));
    assert_eq!(existing(&outcome(&outbox, made.as_str()).await), Some(false));
    dispatcher.stop(SOON).await;
    assert_eq!((dispatcher.stats().sent, dispatcher.stats().duplicates), (2, 0));

    let messages = nats.messages(STREAM).await;
    assert_eq!(messages.len(), 2);
    let tree = "trellis.jobs.test-post.post-letter.chosen";
    let chosen = messages.iter().find(|message| message.subject.starts_with(tree)).unwrap();
    assert_eq!(chosen.subject.as_str(), format!("{tree}.created"));
    assert_eq!(header(chosen, "Nats-Expected-Last-Subject-Sequence"), Some("0"));
    assert_eq!(header(chosen, "Nats-Expected-Last-Subject-Sequence-Subject"), Some(&*format!("{tree}.>")));
    assert_eq!(header(chosen, "Nats-Msg-Id"), None);
    assert!(header(chosen, "Trellis-Append-Id").is_some_and(|id| id.len() == 26));
    assert!(header(chosen, "traceparent").is_some());
    let entry: serde_json::Value = serde_json::from_slice(&chosen.payload).unwrap();
    for (field, value) in [
        ("v", serde_json::json!(1)),
        ("jobId", "chosen".into()),
        ("service", "test.post@v1".into()),
        ("jobType", "post.letter".into()),
        ("eventType", "created".into()),
        ("state", "pending".into()),
        ("tries", 0.into()),
        ("maxTries", 3.into()),
        ("payload", serde_json::json!({"number": 2})),
    ] {
        assert_eq!(entry[field], value, "{field}");
    }
    let stats = outbox.stats().await.unwrap();
    assert_eq!((stats.dispatched, stats.unsent(), stats.oldest), (2, 0, Duration::ZERO));
    assert_eq!(bed.rows().await, 2, "kept for those who ask");
}

/// Jobs and events of one transaction leave together; the row of the event goes, that of the job stays.
async fn events_leave_beside_jobs<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = bed.outbox();
    for number in 0..300 {
        create(&outbox, &format!("job-{number}"), number).await.unwrap();
        enqueue(&outbox, number..number + 1).await;
    }
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("all left", SOON, || async { outbox.stats().await.unwrap().unsent() == 0 }).await;
    dispatcher.stop(SOON).await;
    assert_eq!((nats.stored().await, nats.count(STREAM).await), (300, 300));
    assert_eq!((outbox.stats().await.unwrap().dispatched, bed.rows().await), (300, 300));
    assert_eq!((dispatcher.stats().sent, dispatcher.stats().failed), (600, 0));
}

/// The same id with the same payload is one job, whether its row waits or is decided; with another
/// payload it is refused as long as the row is kept.
async fn an_id_is_one_job<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = bed.outbox();
    for decided in [false, true] {
        if decided {
            let dispatcher = Dispatcher::start(&outbox, nats.broker());
            outcome(&outbox, "once").await;
            dispatcher.stop(SOON).await;
        }
        assert_eq!(create(&outbox, "once", 1).await.unwrap(), id("once"));
        assert_eq!(create(&outbox, "once", 1).await.unwrap(), id("once"));
        let other = create(&outbox, "once", 2).await.unwrap_err();
        assert_eq!(other.kind(), OutboxErrorKind::Duplicate);
        assert!(other.to_string().contains("`once` is taken by other content (`post.letter`)"), "{other}");
        assert_eq!(bed.rows().await, 1);
    }
    // An event may have the id that the job has.
    let event: Result<(), OutboxError> = outbox
        .transaction(async |tx| {
            let event = crate::support::contract::EVENT.notes.added;
            event.enqueue(tx, crate::support::contract::added(1)).id("once").await.map(drop)
        })
        .await;
    event.unwrap();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    until("the event left", SOON, || async { nats.stored().await == 1 }).await;
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, 1);
}

/// Every other acknowledgement is lost: what is sent again is found by its own name, and is there once.
async fn a_lost_acknowledgement_is_made_good<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = bed.outbox();
    for number in 0..50 {
        create(&outbox, &format!("job-{number}"), number).await.unwrap();
    }
    let broker = Arc::new(FaultyBroker::new(nats.broker(), |number, _| {
        if number < 50 && number % 2 == 0 { Fault::LoseAck } else { Fault::None }
    }));
    let dispatcher = Dispatcher::start(&outbox, broker.clone());
    for number in 0..50 {
        assert_eq!(existing(&outcome(&outbox, &format!("job-{number}")).await), Some(false), "{number}");
    }
    dispatcher.stop(SOON).await;
    assert_eq!((nats.count(STREAM).await, broker.publishes(), broker.reads()), (50, 75, 25));
    let stats = dispatcher.stats();
    assert_eq!((stats.sent, stats.duplicates, stats.failed, stats.rejected), (50, 25, 0, 0));
}

/// A row that was sent and not marked, found long after the broker's duplicate window.
async fn a_replay_after_the_duplicate_window_is_one_job<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let outbox = bed.outbox();
    create(&outbox, "again", 1).await.unwrap();
    for _ in 0..3 {
        let dispatcher = Dispatcher::start(&outbox, nats.broker());
        assert_eq!(existing(&outcome(&outbox, "again").await), Some(false));
        dispatcher.stop(SOON).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        bed.execute("UPDATE trellis_outbox SET state = 'pending', outcome = NULL, decided_at = NULL").await;
    }
    assert_eq!(nats.count(STREAM).await, 1);
}

/// Another append on the same log is on its way through the replicas (error 10164): nothing is decided,
/// and the row is sent again until something is.
async fn an_undecided_append_is_sent_again<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::with_event_stream().await);
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(patient()).build().unwrap();
    // A stream that is well and takes none of the subjects, so that the test can answer for it.
    let config = jetstream::stream::Config {
        name: STREAM.to_owned(),
        subjects: vec!["elsewhere.>".to_owned()],
        ..Default::default()
    };
    nats.context.create_stream(config).await.unwrap();
    let mut appends = nats.client.subscribe("trellis.jobs.>").await.unwrap();
    let client = nats.client.clone();
    let server = tokio::spawn(async move {
        for answered in 1..=6 {
            let append = appends.next().await.unwrap();
            let answer = match answered {
                6 => r#"{"stream":"TRELLIS_JOBS","seq":1}"#,
                _ => {
                    r#"{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"stream":"TRELLIS_JOBS","seq":0}"#
                }
            };
            client.publish(append.reply.unwrap(), answer.into()).await.unwrap();
        }
    });
    create(&outbox, "one", 1).await.unwrap();
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    assert_eq!(existing(&outcome(&outbox, "one").await), Some(false));
    dispatcher.stop(SOON).await;
    tokio::time::timeout(SOON, server).await.unwrap().unwrap();
    assert_eq!((dispatcher.stats().dead, dispatcher.stats().rejected), (0, 0));
}

/// Rows of jobs that nothing of ours wrote are not sent: an append that expects nothing would end
/// what the log promises.
async fn a_row_without_its_expectation_is_dead<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, nats().await);
    let config = OutboxConfig { max_attempts: 2, ..patient() };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    for job in ["bare", "foreign", "good"] {
        create(&outbox, job, 1).await.unwrap();
    }
    bed.execute("UPDATE trellis_outbox SET headers = '{}' WHERE id = 'job:post.letter:bare'").await;
    bed.execute("UPDATE trellis_outbox SET subject = 'trellis.jobs.a.b.c.created' WHERE id = 'job:post.letter:foreign'").await;
    let dispatcher = Dispatcher::start(&outbox, nats.broker());
    for (job, says) in [("bare", "no Trellis-Append-Id"), ("foreign", "expect its log to be empty")] {
        let dead = outcome(&outbox, job).await;
        assert!(matches!(&dead, SubmissionOutcome::Dead { reason, .. } if reason.contains(says)), "{dead:?}");
    }
    outcome(&outbox, "good").await;
    dispatcher.stop(SOON).await;
    assert_eq!(nats.count(STREAM).await, 1);
}

on_both_databases!(
    what_was_committed_is_in_the_log,
    events_leave_beside_jobs,
    an_id_is_one_job,
    a_lost_acknowledgement_is_made_good,
    a_replay_after_the_duplicate_window_is_one_job,
    an_undecided_append_is_sent_again,
    a_row_without_its_expectation_is_dead,
);
