//! How jobs come to be without a transaction: stored or an error, once per id, with what they come from.
use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::Sqlite;
use testbed::nats::Options;
use tokio::sync::mpsc;
use trellis::{ActiveJob, Cancellation, HandlerError, JobError, On, Received, Service, Work};
use trellis_runtime::ports::Ports;
use trellis_runtime::wire::Environment;
use trellis_runtime::{
    CreateError, Ctx, Host, JobRecord, JobState, OutboxError, SqlOutbox, SubmissionError, TraceContext,
    TriggerKind,
};

use crate::jobs::odd::{self, odd as jobs};
use crate::jobs::stage::{Gate, Stage, end, now};
use crate::support::hand::{Hand, JOB, SOON, Sum, number, quick, tokens};
use crate::support::log::{log, worker};
use crate::support::nats::{Nats, connect};
use crate::support::tap::Tap;
use crate::support::{Bed, until};

fn way(nats: &Nats) -> trellis_runtime::Nats {
    trellis_runtime::Nats::new(nats.client.clone())
}

/// Never "created" and gone: it says that it was not stored, as soon as patience ends.
#[tokio::test]
async fn a_job_that_cannot_be_stored_is_not_created() {
    let nats = Nats::start().await;
    let tap = Tap::start(&nats.server.url()).await;
    let far = trellis_runtime::Nats::new(connect(&tap.url).await);
    tap.cut();
    let gone = || async { far.connection_state() != async_nats::connection::State::Connected };
    until("the connection is gone", SOON, gone).await;
    let near = way(&nats);
    let no_stream = JOB.work.sum.create(&near, number(1)).id("no-stream");
    let no_server = JOB.work.sum.create(&far, number(1)).id("no-server");
    let both = async { tokio::join!(no_stream, no_server) };
    let (no_stream, no_server) = tokio::time::timeout(SOON, both).await.unwrap();
    let (no_stream, no_server) = (no_stream.unwrap_err(), no_server.unwrap_err());
    assert!(matches!(no_stream, CreateError::NotCreated { .. }), "{no_stream:?}");
    assert!(no_stream.to_string().contains("is `TRELLIS_JOBS` there?"), "{no_stream}");
    assert!(matches!(no_server, CreateError::NotCreated { .. }), "{no_server:?}");
    assert!(no_server.to_string().contains("no connection to the server"), "{no_server}");

    // Nor does it come to life afterwards.
    tap.mend();
    let stage = Stage::on(nats, Hand::default()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stage.nats.count("TRELLIS_JOBS").await, 0);
    stage.host.stop().await;
}

/// B-64's spirit: what is missing for a moment is waited for.
#[tokio::test]
async fn a_stream_that_comes_later_takes_the_job() {
    let nats = Nats::start().await;
    let near = way(&nats);
    let creating = tokio::spawn(async move { JOB.work.sum.create(&near, number(3)).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let stage = Stage::on(nats, Hand::default()).await;
    let job = tokio::time::timeout(SOON, creating).await.unwrap().unwrap().unwrap();
    assert_eq!(end(&job).await.result().unwrap(), Some(3));
    stage.host.stop().await;
}

/// Its storage was not confirmed: created again with the same id it is there once.
#[tokio::test]
async fn a_lost_acknowledgement_makes_no_second_job() {
    let stage = Stage::idle().await;
    let tap = Tap::start(&stage.nats.server.url()).await;
    let far = trellis_runtime::Nats::new(connect(&tap.url).await);
    tap.mute();
    let unheard = JOB.work.sum.create(&far, number(3)).id("lost");
    let unheard = tokio::time::timeout(Duration::from_millis(500), unheard.into_future()).await;
    assert!(unheard.is_err(), "nobody could have said so");
    assert_eq!(tokens(&stage.nats, "lost").await, ["created"]);
    tap.cut();
    tap.mend();
    let again = JOB.work.sum.create(&far, number(3)).id("lost").await.unwrap();
    assert_eq!(again.id().as_str(), "lost");
    assert_eq!(tokens(&stage.nats, "lost").await, ["created"]);

    // One call finds out by itself, when it hears again.
    tap.mute();
    let creating = JOB.work.sum.create(&far, number(4)).id("found");
    let mending = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        tap.cut();
        tap.mend();
    };
    let (created, ()) = tokio::join!(creating.into_future(), mending);
    assert_eq!(created.unwrap().id().as_str(), "found");
    assert_eq!(tokens(&stage.nats, "found").await, ["created"]);
}

/// Decided before anything is sent.
#[tokio::test]
async fn what_no_worker_could_take_is_refused() {
    let stage = Stage::new(Hand::default()).await;
    let create = |sum: Sum| async { JOB.work.sum.create(&stage.ctx.nats, sum).await.unwrap_err() };
    let invalid = create(number(2_000_000)).await;
    assert!(matches!(invalid, CreateError::Submission(SubmissionError::Invalid(_))), "{invalid:?}");
    assert!(invalid.to_string().contains("`/number`"), "{invalid}");
    let large = create(Sum { number: 1, text: "x".repeat(2 << 20) }).await;
    assert!(matches!(large, CreateError::Submission(SubmissionError::TooLarge { .. })), "{large:?}");
    for id in ["", "a.b", "a b", "*", "ü"] {
        let wrong = JOB.work.sum.create(&stage.ctx.nats, number(1)).id(id).await.unwrap_err();
        assert!(matches!(wrong, CreateError::Submission(SubmissionError::Payload(_))), "{wrong:?}");
    }
    assert_eq!(stage.nats.count("TRELLIS_JOBS").await, 0);
    assert_eq!(end(&stage.sum(1).await).await.state, JobState::Completed, "the connection is as it was");
    stage.host.stop().await;
}

/// B-63: a server that takes less than was configured refuses it, and nothing else breaks.
#[tokio::test]
async fn a_server_with_a_smaller_limit_refuses_what_is_larger() {
    let options = Options { max_payload: Some(64 << 10), ..Options::default() };
    let nats = Nats::start_with(options).await;
    nats.context
        .create_stream(async_nats::jetstream::stream::Config {
            name: "TRELLIS_JOBS".to_owned(),
            subjects: vec!["trellis.jobs.>".to_owned()],
            ..Default::default()
        })
        .await
        .unwrap();
    let near = way(&nats);
    let began = nats.client.statistics().connects.load(std::sync::atomic::Ordering::Relaxed);
    let large = Sum { number: 1, text: "x".repeat(128 << 10) };
    let error = JOB.work.sum.create(&near, large).id("large").await.unwrap_err();
    assert!(matches!(error, CreateError::NotCreated { .. }), "{error:?}");
    let job = JOB.work.sum.create(&near, number(1)).await.unwrap();
    assert_eq!(now(&job).await.state, JobState::Pending);
    assert_eq!(nats.client.statistics().connects.load(std::sync::atomic::Ordering::Relaxed), began);
    assert!(tokens(&nats, "large").await.is_empty());
}

/// The idempotency key, whatever has become of the job.
#[tokio::test]
async fn the_same_command_is_the_same_job() {
    let gate = Gate::new();
    let passes = gate.clone();
    let stage = Stage::new(Hand::sum(move |_, job| {
        let gate = passes.clone();
        async move {
            gate.pass().await;
            match job.payload.number {
                1 => Ok(1),
                2 => Err(JobError::fail("no")),
                _ => {
                    job.cancelled().await;
                    Ok(3)
                }
            }
        }
    }))
    .await;
    let create =
        |of: u64| JOB.work.sum.create(&stage.ctx.nats, number(of)).id(format!("job-{of}")).into_future();
    for (of, state) in [(1, JobState::Completed), (2, JobState::Failed), (3, JobState::Cancelled)] {
        let job = create(of).await.unwrap();
        gate.came(1).await;
        let active = now(&create(of).await.unwrap()).await;
        assert_eq!((active.id.as_str(), active.state), (job.id().as_str(), JobState::Active));
        gate.open(1);
        if state == JobState::Cancelled {
            job.cancel().await.unwrap();
        }
        end(&job).await;
        assert_eq!(now(&create(of).await.unwrap()).await.state, state);
        let error =
            JOB.work.sum.create(&stage.ctx.nats, number(9)).id(format!("job-{of}")).await.unwrap_err();
        assert!(matches!(error, CreateError::DuplicateId { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("`job-{of}` exists with another payload")), "{error}");
    }
    // Also after a redrive.
    let job = create(2).await.unwrap();
    job.redrive("again").await.unwrap();
    gate.came(1).await;
    assert_eq!(now(&create(2).await.unwrap()).await.state, JobState::Active);
    gate.open(1);
    end(&job).await;
    assert_eq!(gate.more(), 0);
    for of in 1..=3 {
        let created =
            tokens(&stage.nats, &format!("job-{of}")).await.into_iter().filter(|token| token == "created");
        assert_eq!(created.count(), 1);
    }
    stage.host.stop().await;
}

/// However many say so at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twins_create_one_job() {
    let stage = Stage::new(Hand::default()).await;
    for round in 0..10 {
        let id = format!("twins-{round}");
        // Two of them mean something else.
        let twins = (0..16).map(|n| {
            JOB.work.sum.create(&stage.ctx.nats, number(u64::from(n == 3 || n == 9))).id(&id).into_future()
        });
        let made = join_all(twins).await;
        let same = made.iter().filter(|made| made.is_ok()).count();
        let others = made.iter().filter(|made| matches!(made, Err(CreateError::DuplicateId { .. }))).count();
        assert_eq!(same + others, 16, "{made:?}");
        assert!(same == 14 || same == 2, "{same}");
        assert_eq!(end(&stage.by_id(&id)).await.state, JobState::Completed);
        assert_eq!(tokens(&stage.nats, &id).await, ["created", "started", "completed"]);
    }
    stage.host.stop().await;
}

/// A payload is the same in whatever order its fields are written.
#[tokio::test]
async fn a_payload_without_an_order_is_the_same_payload() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let host = odd::host(&bed, &nats).await;
    let ctx = host.ctx();
    let tags = || (0..20).map(|n| (format!("tag {n}"), n)).collect::<HashMap<String, u64>>();
    for _ in 0..5 {
        // Each map has an order of its own.
        let job = ctx.job.odd.tag.create(&ctx.nats, jobs::Tag { tags: tags() }).id("tags").await.unwrap();
        assert_eq!(end(&job).await.result().unwrap(), Some(20));
    }
    let other = tags().into_iter().map(|(tag, n)| (tag, n + 1)).collect();
    let error = ctx.job.odd.tag.create(&ctx.nats, jobs::Tag { tags: other }).id("tags").await.unwrap_err();
    assert!(matches!(error, CreateError::DuplicateId { .. }), "{error:?}");
    assert_eq!(tokens(&nats, "tags").await, ["created", "started", "completed"]);
    host.stop().await;
}

/// 1: what the first entry says, in its body and in its headers.
#[tokio::test]
async fn the_first_entry_says_all() {
    let stage = Stage::idle().await;
    let trace = TraceContext::parse(PARENT, Some("vendor=1")).unwrap();
    let creating = JOB.work.timed.create(&stage.ctx.nats, number(3)).id("said").into_future();
    trace.scope(creating).await.unwrap();
    let log = log(&stage.nats, "said").await;
    let (body, headers) = (&log[0].body, &log[0].headers);
    for (field, value) in [
        ("v", serde_json::json!(1)),
        ("jobId", "said".into()),
        ("service", "test.work@v1".into()),
        ("jobType", "work.timed".into()),
        ("eventType", "created".into()),
        ("state", "pending".into()),
        ("tries", 0.into()),
        ("maxTries", 5.into()),
        ("payload", serde_json::json!({"number": 3, "text": ""})),
        ("trigger", serde_json::json!({"kind": "serviceCode"})),
    ] {
        assert_eq!(body[field], value, "{field}");
    }
    assert!(body.get("previousState").is_none() && body.get("lineage").is_none());
    let context = &body["context"];
    assert_eq!(context["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(context["tracestate"], "vendor=1");
    assert_eq!(context["requestId"].as_str().unwrap().len(), 26);
    let header = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
    assert_eq!(header("traceparent").as_deref(), context["traceparent"].as_str());
    assert_ne!(header("traceparent").as_deref(), Some(PARENT), "a span of its own");
    assert_eq!(header("tracestate").as_deref(), Some("vendor=1"));
    assert_eq!(header("Nats-Expected-Last-Subject-Sequence").as_deref(), Some("0"));
    assert_eq!(
        header("Nats-Expected-Last-Subject-Sequence-Subject").as_deref(),
        Some("trellis.jobs.test-work.work-timed.said.>")
    );
    assert!(header("Trellis-Append-Id").is_some() && header("Nats-Msg-Id").is_none());
    let record =
        now(&stage.ctx.job.work.timed.by_id(&stage.ctx.nats, trellis::JobId::new("said").unwrap())).await;
    assert_eq!(
        record.deadline.unwrap().duration_since(record.created_at).unwrap(),
        Duration::from_millis(1500)
    );

    // Without a trace around it, it begins one.
    let alone = now(&stage.sum(1).await).await;
    let context = alone.context.clone().unwrap();
    assert_eq!(context.trace_id, context.traceparent[3..35]);
    assert_ne!(context.trace_id, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((alone.max_tries, alone.deadline), (3, None));
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A chain of jobs that an event begins.
#[trellis::contract(id = "test.chain@v1")]
pub mod chain {
    use super::{Deserialize, JsonSchema, Serialize};

    #[event("chain.begun")]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Begun {
        pub links: u32,
    }

    #[group("beginners")]
    pub struct Beginners(Begun);

    #[job("chain.link")]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Link {
        pub links: u32,
    }
}

type ChainCtx = Ctx<chain::Contract, Sqlite>;

/// Each link makes the next one, directly or in a transaction; all are told of.
#[derive(Clone)]
struct Chain(mpsc::UnboundedSender<trellis::JobId>);

impl Service for Chain {
    type Ctx = ChainCtx;
}

impl On<chain::Begun> for Chain {
    async fn on(&self, ctx: &ChainCtx, event: Received<chain::Begun>) -> Result<(), HandlerError> {
        let link = ctx.job.chain.link.create(&ctx.nats, chain::Link { links: event.payload.links }).await?;
        self.0.send(link.id().clone()).unwrap();
        Ok(())
    }
}

impl Work<chain::Link> for Chain {
    async fn work(&self, ctx: &ChainCtx, job: ActiveJob<chain::Link>) -> Result<(), JobError> {
        let link = chain::Link { links: job.payload.links.saturating_sub(1) };
        match job.payload.links {
            0 => return Ok(()),
            1 => {
                let made = ctx.transaction(async |tx| ctx.job.chain.link.create(tx, link).await);
                self.0.send(made.await?).unwrap();
            }
            _ => self.0.send(ctx.job.chain.link.create(&ctx.nats, link).await?.id().clone()).unwrap(),
        }
        Ok(())
    }
}

/// 3: who made it, which job was the first, and in which trace, through events and jobs.
#[tokio::test]
async fn a_job_knows_what_it_comes_from() {
    let (bed, nats) = (Bed::<Sqlite>::new(4).await, Nats::start().await);
    let (tell, mut made) = mpsc::unbounded_channel();
    let host = Host::builder(Chain(tell), bed.outbox()).client(connect(nats.server.url()).await);
    let host = host.mount::<chain::Beginners>().work::<chain::Link>().start().await.unwrap();
    let ctx = host.ctx();
    let trace = TraceContext::parse(PARENT, None).unwrap();
    let enqueue = ctx.event.chain.begun;
    let commit = ctx.transaction(async |tx| {
        enqueue.enqueue(tx, chain::Begun { links: 3 }).id("the-event").await?;
        Ok::<_, OutboxError>(())
    });
    Box::pin(trace.scope(commit)).await.unwrap();
    let mut links: Vec<JobRecord> = Vec::new();
    for _ in 0..4 {
        let id = tokio::time::timeout(SOON, made.recv()).await.unwrap().unwrap();
        let link = ctx.job.chain.link.by_id(&ctx.nats, id);
        links.push(end(&link).await.into_record());
    }
    let first = &links[0];
    let trigger = first.trigger.as_ref().unwrap();
    assert_eq!((trigger.kind, trigger.id.as_deref()), (TriggerKind::Event, Some("the-event")));
    assert_eq!(trigger.subject.as_deref(), Some("events.v1.chain.begun"));
    assert!(first.lineage.is_none());
    let context = first.context.clone().unwrap();
    assert_eq!(context.trace_id, "0af7651916cd43dd8448eb211c80319c");
    for pair in links.windows(2) {
        let (parent, child) = (&pair[0], &pair[1]);
        let (trigger, lineage) = (child.trigger.as_ref().unwrap(), child.lineage.as_ref().unwrap());
        assert_eq!(
            (trigger.kind, trigger.parent_job_id.as_deref()),
            (TriggerKind::ParentJob, Some(parent.id.as_str()))
        );
        assert_eq!((&lineage.parent_job_id, &lineage.root_job_id), (&parent.id, &first.id));
        assert_eq!(child.context.as_ref(), Some(&context), "one context for the whole chain");
    }
    host.stop().await;
}

/// Several environments share a server, and nothing else.
#[tokio::test]
async fn jobs_of_two_environments_do_not_meet() {
    let stage = Stage::new(Hand::default()).await;
    let blue = Environment::new("blue").unwrap();
    let outbox = SqlOutbox::builder(stage.bed.pool.clone()).environment(blue.clone()).build().unwrap();
    let hand = Hand::<Sqlite>::sum(|_, job| async move { Ok(job.payload.number + 100) });
    let host = Host::builder(hand, outbox).client(connect(stage.nats.server.url()).await);
    let host = host.work_with::<Sum>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let theirs = ctx.job.work.sum.create(&ctx.nats, number(1)).id("same").await.unwrap();
    let ours = JOB.work.sum.create(&stage.ctx.nats, number(1)).id("same").await.unwrap();
    assert_eq!(
        (end(&theirs).await.result().unwrap(), end(&ours).await.result().unwrap()),
        (Some(101), Some(1))
    );
    let alone = trellis_runtime::Nats::with(stage.nats.client.clone(), blue, Ports::default());
    let from_outside = JOB.work.sum.create(&alone, number(2)).await.unwrap();
    assert_eq!(end(&from_outside).await.result().unwrap(), Some(102));
    assert_eq!((stage.nats.count("TRELLIS_JOBS").await, stage.nats.count("BLUE_TRELLIS_JOBS").await), (3, 6));
    host.stop().await;
    stage.host.stop().await;
}

/// What a handler creates is created whatever becomes of its own job.
#[tokio::test]
async fn a_child_of_a_cancelled_job_lives() {
    let (tell, mut made) = mpsc::unbounded_channel();
    let stage = Stage::new(Hand::sum(move |ctx, job| {
        let tell = tell.clone();
        async move {
            if job.payload.number == 1 {
                let child = ctx.job.work.sum.create(&ctx.nats, number(2)).await?;
                tell.send(child).unwrap();
                assert_eq!(job.cancelled().await, Cancellation::Job);
            }
            Ok(job.payload.number)
        }
    }))
    .await;
    let parent = stage.sum(1).await;
    let child = tokio::time::timeout(SOON, made.recv()).await.unwrap().unwrap();
    parent.cancel().await.unwrap();
    assert_eq!(end(&child).await.result().unwrap(), Some(2));
    assert_eq!(now(&parent).await.state, JobState::Cancelled);
    until("both are settled", SOON, || async { worker(&stage.nats).await.num_ack_pending == 0 }).await;
    stage.host.stop().await;
}
