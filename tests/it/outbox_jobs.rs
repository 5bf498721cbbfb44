//! Jobs that are created in a transaction: each becomes the first entry of its log, once, and it can be
//! asked what became of it.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, Message};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use trellis::{JobId, Outbox};
use trellis_runtime::broker::{Ack, Broker, Destination, First, Outgoing, PublishError};
use trellis_runtime::ports::DbClock;
use trellis_runtime::testing::{Fault, FaultyBroker, MemoryOutbox, ReadFault};
use trellis_runtime::wire::Environment;
use trellis_runtime::{
    Dispatcher, OutboxConfig, OutboxError, OutboxErrorKind, Rejection, SqlOutbox, SubmissionOutcome,
    SubmissionState, Tables,
};

use crate::dispatcher::enqueue;
use crate::on_both_databases;
use crate::support::nats::Nats;
use crate::support::{Bed, TestDb, until};

const SOON: Duration = Duration::from_secs(20);
const STREAM: &str = "TRELLIS_JOBS";

#[trellis::contract(id = "test.post@v1")]
mod post {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// A letter is to be brought.
    #[job("post.letter", retry(tries = 3))]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Letter {
        #[schemars(range(max = 1_000_000))]
        pub number: u64,
    }
}

use post::{JOB, Letter};

fn letter(number: u64) -> Letter {
    Letter { number }
}

fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

/// Create a job in a transaction of its own.
async fn create<D: TestDb>(outbox: &SqlOutbox<D>, job: &str, number: u64) -> Result<JobId, OutboxError> {
    outbox.transaction(async |tx| JOB.post.letter.create(&mut *tx, letter(number)).id(job).await).await
}

/// A server with the streams of events and of jobs.
async fn nats() -> Nats {
    let nats = Nats::with_event_stream().await;
    create_job_stream(&nats).await;
    nats
}

async fn create_job_stream(nats: &Nats) {
    let none = Environment::NONE;
    let config = jetstream::stream::Config {
        name: none.job_stream(),
        subjects: vec![none.job_stream_subjects()],
        duplicate_window: Duration::from_millis(100),
        ..Default::default()
    };
    nats.context.create_stream(config).await.unwrap();
}

/// Append by hand, as a direct submission would.
async fn append(nats: &Nats, job: &str, token: &str, body: &str) {
    let (mut headers, subject) =
        (HeaderMap::new(), format!("trellis.jobs.test-post.post-letter.{job}.{token}"));
    headers.insert("Trellis-Append-Id", "by-hand");
    nats.context.publish_with_headers(subject, headers, body.to_owned().into()).await.unwrap().await.unwrap();
}

async fn purge(nats: &Nats) {
    nats.context.get_stream(STREAM).await.unwrap().purge().await.unwrap();
}

async fn outcome<D: TestDb>(outbox: &SqlOutbox<D>, job: &str) -> SubmissionOutcome {
    let state = outbox.wait_outcome::<Letter>(&id(job), SOON).await.unwrap();
    state.outcome().unwrap_or_else(|| panic!("{job}: {state:?}")).clone()
}

fn existing(outcome: &SubmissionOutcome) -> Option<bool> {
    match outcome {
        SubmissionOutcome::Accepted { existing, .. } => Some(*existing),
        _ => None,
    }
}

/// An outbox whose database clock is `offset` ahead.
fn ahead<D: TestDb>(bed: &Bed<D>, offset: &Arc<AtomicI64>, config: OutboxConfig) -> SqlOutbox<D> {
    let clock = DbClock::Offset(Arc::clone(offset));
    SqlOutbox::builder(bed.pool.clone()).config(config).db_clock(clock).build().unwrap()
}

/// Quick to try again and slow to give up.
fn patient() -> OutboxConfig {
    OutboxConfig {
        backoff_first: Duration::from_millis(20),
        backoff_longest: Duration::from_millis(50),
        poll: Duration::from_millis(50),
        ..OutboxConfig::default()
    }
}

fn hours(hours: i64) -> i64 {
    hours * 3600 * 1000
}

fn header<'m>(message: &'m Message, name: &str) -> Option<&'m str> {
    message.headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str)
}

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
    until("only the jobs wait", SOON, || async { outbox.stats().await.unwrap().unsent() == 100 }).await;
    let stats = outbox.stats().await.unwrap();
    assert_eq!((stats.pending, stats.failed, stats.dead), (100, 0, 0));
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
    let (held, go) = (Arc::new(tokio::sync::Semaphore::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let late = Held { inner: nats.broker(), held: Arc::clone(&held), go: Arc::clone(&go) };
    let late = Dispatcher::start(&bed.outbox(), Arc::new(late));
    drop(tokio::time::timeout(SOON, held.acquire()).await.unwrap().unwrap());
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
    held: Arc<tokio::sync::Semaphore>,
    go: Arc<tokio::sync::Semaphore>,
}

impl Broker for Held {
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        Box::pin(async move {
            self.held.add_permits(1);
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
    let hex: String = first.checksum.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, artifacts[0].checksum);
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
    what_was_committed_is_in_the_log,
    events_leave_beside_jobs,
    an_id_is_one_job,
    a_lost_acknowledgement_is_made_good,
    a_replay_after_the_duplicate_window_is_one_job,
    a_job_that_is_there_decides,
    an_unknown_outcome_is_not_sent_again,
    an_old_row_is_decided_by_what_its_log_tells,
    a_row_that_was_never_sent_does_not_grow_old,
    what_is_not_found_is_asked_again,
    an_undecided_append_is_sent_again,
    a_missing_stream_of_jobs_holds_up_no_event,
    a_missing_stream_of_events_holds_up_no_job,
    a_stream_that_does_not_answer_holds_up_no_other,
    an_outcome_can_be_awaited,
    outcomes_are_kept_for_their_time,
    a_row_without_its_expectation_is_dead,
    kinds_from_the_future_are_left_alone,
    eight_dispatchers_create_each_job_once,
    a_late_owner_decides_nothing,
    an_outage_under_load_loses_and_doubles_nothing,
    a_table_of_the_first_version_is_upgraded,
);

/// Everything that is an outbox takes jobs alike.
async fn conforms<O: Outbox<Error = OutboxError>>(outbox: &mut O) {
    let first = JOB.post.letter.create(&mut *outbox, letter(1)).await.unwrap();
    let second = JOB.post.letter.create(&mut *outbox, letter(1)).await.unwrap();
    assert_ne!(first, second, "two are two");
    JOB.post.letter.create(&mut *outbox, letter(2)).id("two").await.unwrap();
    let again = JOB.post.letter.create(&mut *outbox, letter(2)).id("two").await.unwrap();
    assert_eq!(again.as_str(), "two");
    let other = JOB.post.letter.create(&mut *outbox, letter(3)).id("two").await.unwrap_err();
    assert!(matches!(&other, OutboxError::DuplicateId { id, .. } if id == "two"), "{other:?}");
    let bad_id = JOB.post.letter.create(&mut *outbox, letter(4)).id("a.b").await.unwrap_err();
    assert_eq!(bad_id.kind(), OutboxErrorKind::Invalid);
    let invalid = JOB.post.letter.create(&mut *outbox, letter(1_000_001)).await.unwrap_err();
    assert_eq!(invalid.kind(), OutboxErrorKind::Invalid);
}

#[tokio::test]
async fn the_outbox_in_memory_takes_jobs() {
    let mut outbox = MemoryOutbox::default();
    conforms(&mut outbox).await;
    assert_eq!(outbox.created::<Letter>(), [letter(1), letter(1), letter(2)]);
    outbox.assert_created::<Letter>(|letter| letter.number == 2);
    assert_eq!(outbox.subjects()[2], "trellis.jobs.test-post.post-letter.two.created");
    assert_eq!(outbox.len(), 3);
}

/// So do the real ones: ours, and joined.
async fn the_real_ones_take_jobs<D: TestDb>() {
    let bed = Bed::<D>::new(2).await;
    let outbox = bed.outbox();
    let mut tx = outbox.begin().await.unwrap();
    conforms(&mut tx).await;
    tx.rollback().await.unwrap();
    let begin = if D::NAME == "SQLite" { "BEGIN IMMEDIATE" } else { "BEGIN" };
    let mut tx = bed.pool.begin_with(begin).await.unwrap();
    let mut joined = outbox.join(&mut tx);
    conforms(&mut joined).await;
    let wake = joined.into_wake();
    tx.commit().await.unwrap();
    wake.wake();
    assert_eq!(bed.rows().await, 3);
    let mut connection = bed.pool.acquire().await.unwrap();
    let loose = JOB.post.letter.create(&mut outbox.join(&mut connection), letter(1)).await.unwrap_err();
    assert!(matches!(loose, OutboxError::NotInTransaction), "{loose:?}");
}

#[tokio::test]
async fn on_sqlite_the_real_ones_take_jobs() {
    the_real_ones_take_jobs::<sqlx::Sqlite>().await;
}

#[tokio::test]
async fn on_postgres_the_real_ones_take_jobs() {
    the_real_ones_take_jobs::<sqlx::Postgres>().await;
}
