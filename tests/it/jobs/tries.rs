//! How tries begin, fail and end.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use serde_json::json;
use sqlx::Sqlite;
use trellis::{ActiveJob, Cancellation, JobError, Work};
use trellis_runtime::ports::{Clock, Ports, SystemClock};
use trellis_runtime::{Host, JobRetention, JobState, OutboxError, SqlOutbox, StartError, WorkerConfig};

use crate::jobs::odd::{self, odd as jobs};
use crate::jobs::stage::{Gate, Stage, end, now};
use crate::on_both_databases;
use crate::support::hand::{Hand, JOB, SOON, Sum, WorkCtx, host, host_at, number, quick, tokens, work};
use crate::support::log::{SUMS, append, append_first, created, ends, entry, log, worker};
use crate::support::nats::{Nats, connect};
use crate::support::tap::Tap;
use crate::support::{Bed, TestDb, until};

async fn a_job_completes_with_its_result<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    let host = host(&bed, &nats, &Hand::default()).await.work_with::<work::Sum>(quick());
    let host = host.start().await.unwrap();
    let ctx = host.ctx();
    let direct = ctx.job.work.sum.create(&ctx.nats, number(7)).await.unwrap();
    let ended = direct.wait(SOON).await.unwrap();
    assert_eq!((ended.state, ended.tries), (JobState::Completed, 1));
    assert_eq!(ended.result().unwrap(), Some(7));
    assert_eq!(tokens(&nats, direct.id().as_str()).await, ["created", "started", "completed"]);

    let id = ctx.transaction(async |tx| JOB.work.sum.create(tx, number(8)).await).await.unwrap();
    let ended = ctx.job.work.sum.by_id(&ctx.nats, id).wait(SOON).await.unwrap();
    assert_eq!(ended.result().unwrap(), Some(8));
    host.stop().await;
}

async fn add_thing<D: TestDb>(ctx: &WorkCtx<D>, tries: u32) -> Result<u64, JobError> {
    let once = ctx.once(async |tx| {
        D::run(tx, "INSERT INTO things VALUES ('x')").await.map_err(OutboxError::Database)?;
        Ok::<_, OutboxError>(u64::from(tries) + 40)
    });
    Ok(once.await?)
}

/// Committed, then failed: the second try gets what the first one stored.
async fn a_second_try_repeats_no_effect<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    let hand = Hand::<D>::sum(|ctx, job| async move {
        let done = add_thing(&ctx, job.facts.tries).await?;
        if job.facts.tries == 1 { Err(JobError::retry("after the commit")) } else { Ok(done) }
    });
    let host = host(&bed, &nats, &hand).await.work_with::<Sum>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap();
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.tries, ended.result().unwrap()), (JobState::Completed, 2, Some(41)));
    assert_eq!(bed.things().await, 1);

    // A redrive is another run, with an effect of its own; a second job is another job.
    let other = ctx.job.work.sum.create(&ctx.nats, number(2)).await.unwrap();
    assert_eq!(end(&other).await.result().unwrap(), Some(41));
    assert_eq!(bed.things().await, 2);
    host.stop().await;
}

/// Committed, but the process is gone before `completed`: the next one finishes from the row.
async fn an_effect_whose_end_was_lost_is_not_repeated<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    let committed = Gate::new();
    let gate = committed.clone();
    let hand = Hand::<D>::sum(move |ctx, job| {
        let gate = gate.clone();
        async move {
            let done = add_thing(&ctx, job.facts.tries).await?;
            if job.facts.deliveries == 1 {
                gate.pass().await;
            }
            Ok(done)
        }
    });
    let config = WorkerConfig { ack_wait: Duration::from_secs(1), ..quick() };
    let lost = host(&bed, &nats, &hand).await.work_with::<Sum>(config.clone()).start().await.unwrap();
    let ctx = lost.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap();
    committed.came(1).await;
    drop(lost);
    let host = host(&bed, &nats, &hand).await.work_with::<Sum>(config).start().await.unwrap();
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.result().unwrap()), (JobState::Completed, Some(41)));
    assert_eq!(bed.things().await, 1);
    host.stop().await;
}

on_both_databases!(
    a_job_completes_with_its_result,
    a_second_try_repeats_no_effect,
    an_effect_whose_end_was_lost_is_not_repeated,
);

#[tokio::test]
async fn errors_retry_until_the_tries_are_used_up() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(2).await, Nats::start().await);
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let hand = Hand::sum(move |_, job| {
        let call = counted.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            assert_eq!(job.facts.tries, call);
            assert!(call != 2, "oh");
            Err(JobError::retry("no"))
        }
    });
    let host = host(&bed, &nats, &hand).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(7)).await.unwrap();
    let ended = job.wait(SOON).await.unwrap();
    assert_eq!((ended.state, ended.tries), (JobState::Dead, 3));
    assert_eq!(ended.last_error.as_deref(), Some("3 of 3 tries are used up: no"));
    assert_eq!(
        tokens(&nats, job.id().as_str()).await,
        ["created", "started", "retry", "started", "retry", "started", "dead"]
    );
    host.stop().await;
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

/// B-50: the delay is said to the server each time, and it is the declared one.
#[tokio::test]
async fn gaps_between_tries_follow_the_declared_delays() {
    let stage = Stage::new(Hand::sum(|_, _| async { Err(std::io::Error::other("no").into()) })).await;
    let job = stage.sum(1).await;
    assert_eq!(end(&job).await.state, JobState::Dead);
    let log = log(&stage.nats, job.id().as_str()).await;
    let mut delays = Vec::new();
    for pair in log.windows(2).filter(|pair| pair[0].token == "retry") {
        let delay = Duration::from_millis(pair[0].number("delayMs"));
        // One millisecond: the server's clock and what is said in whole ones.
        assert!(pair[1].after(&pair[0]) + Duration::from_millis(1) >= delay, "{log:?}");
        assert!(pair[1].after(&pair[0]) < delay + Duration::from_secs(2), "{log:?}");
        delays.push(delay.as_millis());
    }
    // 20 ms, then 80; half of it is jitter.
    assert!(matches!(delays[..], [10..=20, 40..=80]), "{delays:?}");
    stage.host.stop().await;
}

#[tokio::test]
async fn an_explicit_rule_retries_only_when_it_is_told_to() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let hand = Hand::explicit(|_, job| async move {
        match job.payload.number {
            1 => Err(std::io::Error::other("the disk is full").into()),
            2 => Err(JobError::retry("later")),
            3 if job.facts.tries == 1 => Err(JobError::retry_after(Duration::from_millis(10), "later")),
            4 => panic!("oh"),
            other => Ok(other),
        }
    });
    let host = host(&bed, &nats, &hand).await.work_with::<work::Explicit>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let mut ends = Vec::new();
    for of in 1..=4 {
        let job = ctx.job.work.explicit.create(&ctx.nats, number(of)).await.unwrap();
        let ended = end(&job).await;
        ends.push((ended.state, ended.tries, ended.last_error.clone().unwrap_or_default()));
    }
    assert_eq!(ends[0], (JobState::Failed, 1, "the disk is full".to_owned()));
    assert_eq!(ends[1], (JobState::Dead, 3, "3 of 3 tries are used up: later".to_owned()));
    assert_eq!((ends[2].0, ends[2].1), (JobState::Completed, 2));
    // A panic is no decision of the handler's.
    assert_eq!(ends[3].0, JobState::Dead);
    host.stop().await;
}

#[tokio::test]
async fn a_failure_that_no_later_try_can_mend_ends_the_job() {
    let stage = Stage::new(Hand::sum(|_, _| async {
        let cause = std::io::Error::other("no such address");
        Err(JobError::fail(cause))
    }))
    .await;
    let job = stage.sum(1).await;
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.tries), (JobState::Failed, 1));
    assert_eq!(ended.last_error.as_deref(), Some("no such address"));
    assert!(ended.completed_at.is_some() && ended.result().unwrap().is_none());
    assert_eq!(tokens(&stage.nats, job.id().as_str()).await, ["created", "started", "failed"]);
    stage.host.stop().await;
}

#[tokio::test]
async fn a_chosen_delay_is_exact() {
    let stage = Stage::new(Hand::sum(|_, job| async move {
        match job.facts.tries {
            1 => Err(JobError::retry_after(Duration::from_millis(700), "busy")),
            2 => Err(JobError::retry_after(Duration::ZERO, "busy")),
            _ => Ok(0),
        }
    }))
    .await;
    let job = stage.sum(1).await;
    assert_eq!((end(&job).await.state, now(&job).await.tries), (JobState::Completed, 3));
    let log = log(&stage.nats, job.id().as_str()).await;
    assert_eq!((log[2].number("delayMs"), log[4].number("delayMs")), (700, 0));
    let gaps = [log[3].after(&log[2]), log[5].after(&log[4])];
    assert!(gaps[0] >= Duration::from_millis(699) && gaps[0] < Duration::from_millis(2700), "{gaps:?}");
    assert!(gaps[1] < Duration::from_millis(2000), "{gaps:?}");
    stage.host.stop().await;
}

/// Half a day behind or ahead of the server: a delay is as long as it was chosen.
#[tokio::test]
async fn a_worker_whose_clock_is_wrong_tries_again_in_time() {
    struct Wrong(SystemClock, bool);
    impl Clock for Wrong {
        fn now(&self) -> SystemTime {
            let off = Duration::from_secs(12 * 3600);
            if self.1 { self.0.now() + off } else { self.0.now() - off }
        }
        fn monotonic(&self) -> Duration {
            self.0.monotonic()
        }
    }
    for ahead in [false, true] {
        let stage = Stage::idle().await;
        let ports = Ports { clock: Arc::new(Wrong(SystemClock::default(), ahead)), ..Ports::default() };
        let outbox = SqlOutbox::builder(stage.bed.pool.clone()).ports(ports).build().unwrap();
        let hand = Hand::<Sqlite>::sum(|_, job| async move {
            match job.facts.tries {
                1 => Err(JobError::retry_after(Duration::from_millis(300), "once more")),
                _ => Ok(1),
            }
        });
        let host = Host::builder(hand, outbox).client(connect(stage.nats.server.url()).await);
        let host = host.work_with::<Sum>(quick()).start().await.unwrap();
        let job = stage.sum(1).await;
        assert_eq!(
            (end(&job).await.state, now(&job).await.tries),
            (JobState::Completed, 2),
            "ahead: {ahead}"
        );
        let log = log(&stage.nats, job.id()).await;
        assert!(log[3].after(&log[2]) >= Duration::from_millis(299), "ahead: {ahead}: {log:?}");
        host.stop().await;
    }
}

/// More often than there are tries.
#[tokio::test]
async fn a_snooze_uses_no_try() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let stage = Stage::new(Hand::sum(move |_, job| {
        let call = counted.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            assert_eq!((job.facts.tries, job.facts.deliveries), (1, u64::from(call)));
            if call <= 5 { Err(JobError::snooze(Duration::from_millis(50))) } else { Ok(9) }
        }
    }))
    .await;
    let job = stage.sum(1).await;
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.tries, ended.result().unwrap()), (JobState::Completed, 1, Some(9)));
    let log = log(&stage.nats, job.id().as_str()).await;
    let mut expected = vec!["created"];
    expected.extend(["started", "handed_back"].repeat(5));
    expected.extend(["started", "completed"]);
    assert_eq!(log.iter().map(|kept| kept.token.as_str()).collect::<Vec<_>>(), expected);
    for pair in log.windows(2).filter(|pair| pair[0].token == "handed_back") {
        assert!(pair[1].after(&pair[0]) >= Duration::from_millis(49), "{log:?}");
    }
    stage.host.stop().await;
}

/// One that looks again and again for days is as cheap to read as any other.
#[tokio::test]
async fn a_job_that_snoozes_for_long_keeps_a_short_log() {
    const SNOOZES: u64 = 80;
    let stage = Stage::new(Hand::sum(|_, job| async move {
        match job.facts.deliveries {
            1 => Err(JobError::retry_after(Duration::ZERO, "not yet")),
            2..=SNOOZES => Err(JobError::snooze(Duration::ZERO)),
            deliveries => Ok(deliveries),
        }
    }))
    .await;
    let job = stage.sum(1).await;
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.tries), (JobState::Completed, 2), "the try that failed counts");
    assert_eq!((ended.result().unwrap(), ended.payload().unwrap()), (Some(SNOOZES + 1), number(1)));
    assert!(ended.last > 2 * SNOOZES);
    let kept = log(&stage.nats, job.id()).await.len();
    assert!(kept < 110, "{kept} entries are kept");
    stage.host.stop().await;
}

/// Nobody falls over a delay that no clock can hold: it is a very long one.
#[tokio::test]
async fn a_delay_without_end_is_a_long_one() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let stage = Stage::new(Hand::sum(move |_, job| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            Err(match job.payload.number {
                1 => JobError::retry_after(Duration::MAX, "never"),
                _ => JobError::snooze(Duration::MAX),
            })
        }
    }))
    .await;
    for (of, state) in [(1, JobState::Retry), (2, JobState::Pending)] {
        let job = stage.sum(of).await;
        until("it waits", SOON, || async { now(&job).await.due_at.is_some() }).await;
        assert_eq!(now(&job).await.state, state);
        assert_eq!(job.cancel().await.unwrap().state, JobState::Cancelled);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    // The server has understood how long: nothing comes back at once.
    assert_eq!(worker(&stage.nats).await.delivered.consumer_sequence, 2);
    stage.host.stop().await;
}

/// B-51, 34: as long as it takes, it runs once. Also when it blocks its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_of_several_ack_waits_runs_once() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let long = Duration::from_millis(4500);
    let hand = Hand::sum(move |_, job| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            match job.payload.number {
                1 => std::thread::sleep(long),
                _ => tokio::time::sleep(long).await,
            }
            Ok(job.facts.deliveries)
        }
    });
    let config = WorkerConfig { ack_wait: Duration::from_secs(2), ..quick() };
    let stage = Stage::with(hand, config.clone()).await;
    // Somebody to whom it could be redelivered.
    let other = stage.another(Hand::default(), config).await;
    let (first, second) = (stage.sum(1).await, stage.sum(2).await);
    for job in [first, second] {
        let ended = end(&job).await;
        assert_eq!((ended.state, ended.tries), (JobState::Completed, 1));
        assert_eq!(tokens(&stage.nats, job.id().as_str()).await, ["created", "started", "completed"]);
    }
    assert_eq!(worker(&stage.nats).await.num_redelivered, 0);
    other.stop().await;
    stage.host.stop().await;
}

/// 82: it counts from the submission, not from the delivery.
#[tokio::test]
async fn a_deadline_before_the_first_try_ends_the_job_without_one() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let stage = Stage::idle().await;
    let job = stage.ctx.job.work.timed.create(&stage.ctx.nats, number(1)).await.unwrap();
    let waits = now(&job).await;
    assert_eq!(
        waits.deadline.unwrap().duration_since(waits.created_at).unwrap(),
        Duration::from_millis(1500)
    );
    tokio::time::sleep(Duration::from_millis(1600)).await;
    let hand = Hand::timed(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(1) }
    });
    let host =
        host(&stage.bed, &stage.nats, &hand).await.work_with::<work::Timed>(quick()).start().await.unwrap();
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.tries, ended.started_at), (JobState::Expired, 0, None));
    assert_eq!(ended.last_error.as_deref(), Some("the deadline passed before the first try"));
    assert_eq!(tokens(&stage.nats, job.id().as_str()).await, ["created", "expired"]);
    host.stop().await;
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

/// The handler is told, may clean up, and is dropped when it does not end.
#[tokio::test]
async fn a_deadline_during_a_try_ends_it() {
    struct Dropped(Arc<AtomicU32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let told = Arc::new(Mutex::new(Vec::new()));
    let dropped = Arc::new(AtomicU32::new(0));
    let (heard, drops) = (Arc::clone(&told), Arc::clone(&dropped));
    let hand = Hand::timed(move |_, job| {
        let (heard, dropped) = (Arc::clone(&heard), Dropped(Arc::clone(&drops)));
        async move {
            let reason = job.cancelled().await;
            heard.lock().unwrap().push((job.payload.number, reason, job.cancellation()));
            match job.payload.number {
                1 => Ok(1),
                2 => Err(JobError::retry("told")),
                3 => panic!("told"),
                _ => {
                    std::future::pending::<()>().await;
                    drop(dropped);
                    Ok(1)
                }
            }
        }
    });
    let host = host(&bed, &nats, &hand).await.work_with::<work::Timed>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let mut jobs = Vec::new();
    for of in 1..=4 {
        jobs.push(ctx.job.work.timed.create(&ctx.nats, number(of)).await.unwrap());
    }
    for job in &jobs {
        let ended = end(job).await;
        let of = ended.payload().unwrap().number;
        assert_eq!((ended.state, ended.tries), (JobState::Expired, 1), "{of}: {ended:?}");
        assert_eq!(ended.last_error.as_deref(), Some("the deadline passed during a try"));
        assert!(ended.result().unwrap().is_none(), "what is returned then does not count");
        assert!(ended.completed_at >= ended.deadline);
        let late = ended.completed_at.unwrap().duration_since(ended.deadline.unwrap()).unwrap();
        assert!(of < 4 || late >= Duration::from_millis(290), "{late:?}: before the grace was over");
        assert_eq!(tokens(&nats, job.id().as_str()).await, ["created", "started", "expired"]);
    }
    let mut told = told.lock().unwrap().clone();
    told.sort_by_key(|(of, ..)| *of);
    let expected = (1..=4).map(|of| (of, Cancellation::Deadline, Some(Cancellation::Deadline)));
    assert_eq!(told, expected.collect::<Vec<_>>());
    assert_eq!(dropped.load(Ordering::SeqCst), 4);
    host.stop().await;
}

/// A handler that goes on after its time gets none from a stop: its job ends as it would have, and soon.
#[tokio::test]
async fn a_stop_does_not_prolong_a_try_that_is_over() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let (told, passes) = (Gate::new(), Gate::new());
    let (tell, waits) = (told.clone(), passes.clone());
    let hand = Hand::timed(move |_, job| {
        let (tell, waits) = (tell.clone(), waits.clone());
        async move {
            job.cancelled().await;
            tell.open(1);
            waits.pass().await;
            Ok(1)
        }
    });
    let config = WorkerConfig { cancel_grace: Duration::from_secs(1), ..quick() };
    let host = host(&bed, &nats, &hand).await.work_with::<work::Timed>(config).start().await.unwrap();
    let ctx = host.ctx();
    let expires = ctx.job.work.timed.create(&ctx.nats, number(1)).await.unwrap();
    until("it runs", SOON, || async { now(&expires).await.state == JobState::Active }).await;
    told.pass().await;
    let cancelled = ctx.job.work.timed.create(&ctx.nats, number(2)).await.unwrap();
    until("it runs", SOON, || async { now(&cancelled).await.state == JobState::Active }).await;
    cancelled.cancel().await.unwrap();
    told.pass().await;
    // Its time-out would be half a minute.
    tokio::time::timeout(Duration::from_secs(10), host.stop()).await.unwrap();
    assert_eq!(now(&cancelled).await.state, JobState::Cancelled);
    let expired = now(&expires).await;
    assert_eq!((expired.state, expired.tries), (JobState::Expired, 1));
    assert_eq!(expired.last_error.as_deref(), Some("the deadline passed during a try"));
}

/// It does not wait for the next try, which would come later.
#[tokio::test]
async fn a_deadline_between_two_tries_ends_the_job() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let hand = Hand::timed(|_, _| async { Err(JobError::retry_after(Duration::from_secs(60), "no")) });
    let host = host(&bed, &nats, &hand).await.work_with::<work::Timed>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let job = ctx.job.work.timed.create(&ctx.nats, number(1)).await.unwrap();
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.tries), (JobState::Expired, 1));
    assert_eq!(ended.last_error.as_deref(), Some("the deadline passed between two tries"));
    assert!(ended.completed_at >= ended.deadline);
    assert_eq!(tokens(&nats, job.id().as_str()).await, ["created", "started", "retry", "expired"]);
    host.stop().await;
}

/// Nobody can work on it: dead, with the reason, without a try; and the next job is not held up.
#[tokio::test]
async fn undecodable_work_is_dead_with_its_reason() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let stage = Stage::new(Hand::sum(move |_, job| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(job.payload.number) }
    }))
    .await;
    let of = |id: &str, payload| created(id, payload).to_string();
    let mut no_payload = created("no-payload", json!(0));
    no_payload.as_object_mut().unwrap().remove("payload");
    let bad = [
        ("no-json", "{".to_owned(), "no entry of a job's log"),
        ("no-entry", "{}".to_owned(), "no entry of a job's log"),
        ("other-job", of("somebody", json!({"number": 1})), "of another job"),
        ("no-payload", no_payload.to_string(), "invalid type: null"),
        ("shape", of("shape", json!({"number": "seven"})), "payload at `number`: invalid type"),
        ("missing", of("missing", json!({"text": ""})), "missing field `number`"),
        ("schema", of("schema", json!({"number": 2_000_000})), "invalid at `/number`"),
    ];
    for (id, body, reason) in bad {
        append_first(&stage.nats, &format!("{SUMS}.{id}"), body).await;
        let job = stage.by_id(id);
        let ended = end(&job).await;
        assert_eq!((ended.state, ended.tries), (JobState::Dead, 0), "{id}");
        let said = ended.last_error.clone().unwrap_or_default();
        assert!(said.contains(reason), "{id}: {said}");
        assert_eq!(tokens(&stage.nats, id).await, ["created", "dead"], "{id}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(end(&stage.sum(3).await).await.result().unwrap(), Some(3));
    until("everything is settled", SOON, || async { worker(&stage.nats).await.num_ack_pending == 0 }).await;

    // It can be redriven like any other, and is as undecodable as before.
    let again = stage.by_id("shape");
    assert!(now(&again).await.payload().is_err());
    assert_eq!(again.redrive("try again").await.unwrap().state, JobState::Pending);
    assert_eq!(end(&again).await.state, JobState::Dead);
    stage.host.stop().await;
}

/// What no subject of ours looks like cannot be given an end; it does not come back either.
#[tokio::test]
async fn a_signal_that_names_no_job_is_delivered_once() {
    let stage = Stage::new(Hand::default()).await;
    append(&stage.nats, &format!("{SUMS}.ü:1.created"), created("ü:1", json!({"number": 1}))).await;
    append(&stage.nats, &format!("{SUMS}.{}.created", "x".repeat(65)), "{}").await;
    assert_eq!(end(&stage.sum(3).await).await.result().unwrap(), Some(3));
    until("everything is settled", SOON, || async { worker(&stage.nats).await.num_ack_pending == 0 }).await;
    assert_eq!(worker(&stage.nats).await.delivered.consumer_sequence, 3);
    stage.host.stop().await;
}

/// A later version of this library wrote it: it is not this version's to bury.
#[tokio::test]
async fn a_job_of_a_later_format_is_left() {
    let stage = Stage::new(Hand::default()).await;
    for (id, body) in [
        ("whole", json!({"v": 2, "everything": "else"})),
        ("alike", {
            let mut alike = created("alike", json!({"number": 1}));
            alike["v"] = 2.into();
            alike
        }),
    ] {
        append_first(&stage.nats, &format!("{SUMS}.{id}"), body).await;
    }
    assert_eq!(end(&stage.sum(3).await).await.result().unwrap(), Some(3));
    let seen = || async { worker(&stage.nats).await.delivered.consumer_sequence >= 3 };
    until("all were delivered", SOON, seen).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    for id in ["whole", "alike"] {
        assert_eq!(tokens(&stage.nats, id).await, ["created"]);
        let error = stage.by_id(id).get().await.unwrap_err().to_string();
        assert!(error.contains("format 2"), "{error}");
        let error = stage.by_id(id).cancel().await.unwrap_err().to_string();
        assert!(error.contains("format 2"), "{error}");
        let error = stage.by_id(id).wait(SOON).await.unwrap_err().to_string();
        assert!(error.contains("format 2"), "{error}");
    }
    let info = worker(&stage.nats).await;
    assert_eq!(
        (info.num_ack_pending, info.delivered.consumer_sequence),
        (2, 3),
        "they wait for another instance"
    );
    stage.host.stop().await;
}

/// 31, 72: whoever publishes a second `created`, with or without an expectation, runs nothing twice.
#[tokio::test]
async fn a_second_beginning_begins_nothing() {
    let (gate, calls) = (Gate::new(), Arc::new(AtomicU32::new(0)));
    let (passes, counted) = (gate.clone(), Arc::clone(&calls));
    let stage = Stage::new(Hand::sum(move |_, job| {
        counted.fetch_add(1, Ordering::Relaxed);
        let gate = passes.clone();
        async move {
            gate.pass().await;
            Ok(job.payload.number)
        }
    }))
    .await;
    let job = stage.sum(1).await;
    let subject = format!("{SUMS}.{}.created", job.id());
    let twice = || append(&stage.nats, &subject, created(job.id().as_str(), json!({"number": 2})));
    gate.came(1).await;
    // While it runs.
    twice().await;
    let settled = || async { worker(&stage.nats).await.num_ack_pending == 1 };
    until("the second signal is settled", SOON, settled).await;
    assert_eq!((now(&job).await.state, gate.more()), (JobState::Active, 0));
    gate.open(1);
    assert_eq!(end(&job).await.result().unwrap(), Some(1));
    // After its end.
    twice().await;
    let settled = || async {
        let info = worker(&stage.nats).await;
        info.num_ack_pending == 0 && info.num_pending == 0
    };
    until("the third signal is settled", SOON, settled).await;
    let after = now(&job).await;
    assert_eq!((after.state, after.tries, after.result().unwrap()), (JobState::Completed, 1, Some(1)));
    assert_eq!(after.payload().unwrap(), number(1));
    stage.host.stop().await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(ends(&stage.nats, job.id()).await, ["completed"]);
}

/// 64: an end that comes too late, from whoever, ends nothing again.
#[tokio::test]
async fn a_late_end_changes_nothing() {
    let stage = Stage::idle().await;
    let job = stage.sum(1).await;
    job.cancel().await.unwrap();
    for (event, previous) in
        [("completed", "active"), ("completed", "cancelled"), ("retry", "active"), ("retried", "cancelled")]
    {
        let late = entry(job.id().as_str(), event, event, Some(previous));
        let late = if event == "retried" {
            entry(job.id().as_str(), event, "pending", Some(previous))
        } else {
            late
        };
        append(&stage.nats, &format!("{SUMS}.{}.{event}", job.id()), late).await;
    }
    let hand = Hand::sum(|_, _| async { panic!("it was cancelled") });
    let host = stage.another(hand, quick()).await;
    let settled = || async {
        let info = worker(&stage.nats).await;
        info.num_ack_pending == 0 && info.num_pending == 0
    };
    until("the signals are settled", SOON, settled).await;
    let after = now(&job).await;
    assert_eq!((after.state, after.tries), (JobState::Cancelled, 0));
    host.stop().await;
}

/// A result nobody could read or store: no later try would have another one.
#[tokio::test]
async fn a_result_that_cannot_be_kept_fails_the_job() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let host = odd::host(&bed, &nats).await;
    let ctx = host.ctx();
    for (letters, state, reason) in [
        (1, JobState::Completed, ""),
        (0, JobState::Failed, "the result is invalid at `/text`"),
        (2 << 20, JobState::Failed, "the result cannot be stored"),
    ] {
        let job = ctx.job.odd.write.create(&ctx.nats, jobs::Write { letters }).await.unwrap();
        let ended = end(&job).await;
        assert_eq!((ended.state, ended.tries), (state, 1), "{letters}");
        let said = ended.last_error.clone().unwrap_or_default();
        assert!(said.starts_with(reason), "{letters}: {said}");
        assert_eq!(ends(&nats, job.id()).await.len(), 1);
    }
    host.stop().await;
}

/// JSON's `null` is a payload and a result like any other.
#[tokio::test]
async fn a_job_without_words_completes() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let host = odd::host(&bed, &nats).await;
    let ctx = host.ctx();
    let job = ctx.job.odd.bare.create(&ctx.nats, jobs::Bare).id("bare").await.unwrap();
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.last_error.as_deref()), (JobState::Completed, None));
    assert_eq!((ended.payload().unwrap(), ended.result().unwrap()), (jobs::Bare, Some(())));
    let again = ctx.job.odd.bare.create(&ctx.nats, jobs::Bare).id("bare").await.unwrap();
    assert_eq!(now(&again).await.state, JobState::Completed);
    host.stop().await;
}

/// 49: a slot is a pending delivery; what no slot is free for stays at the broker, for others.
#[tokio::test]
async fn concurrency_is_a_limit_that_is_used() {
    let gate = Gate::new();
    let (passes, most, at_once) =
        (gate.clone(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let hand = Hand::sum(move |_, _| {
        let (gate, seen, at_once) = (passes.clone(), Arc::clone(&seen), Arc::clone(&at_once));
        async move {
            seen.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.pass().await;
            at_once.fetch_sub(1, Ordering::SeqCst);
            Ok(0)
        }
    });
    for slots in [1_u32, 3] {
        most.store(0, Ordering::SeqCst);
        let config = WorkerConfig { concurrency: u16::try_from(slots).unwrap(), ..quick() };
        let stage = Stage::with(hand.clone(), config).await;
        let mut jobs = Vec::new();
        for of in 0..8 {
            jobs.push(stage.sum(of).await);
        }
        gate.came(slots).await;
        // A second pull has been issued and has ended by then.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        let info = worker(&stage.nats).await;
        assert_eq!((info.num_ack_pending, info.num_pending), (slots as usize, u64::from(8 - slots)));
        assert_eq!(gate.more(), 0);
        // One ends, one begins.
        gate.open(1);
        gate.came(1).await;
        assert_eq!(gate.more(), 0);
        gate.open(7);
        for job in &jobs {
            assert_eq!(end(job).await.state, JobState::Completed);
        }
        assert_eq!(most.load(Ordering::SeqCst), slots as usize, "all slots, and no more");
        gate.came(7 - slots).await;
        stage.host.stop().await;
    }
}

/// 46: a signal is acknowledged after its job's end is known to be stored, and not before.
#[tokio::test]
async fn an_end_is_confirmed_before_its_signal_is_acknowledged() {
    let gate = Gate::new();
    let (passes, calls) = (gate.clone(), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&calls);
    let hand = Hand::sum(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let gate = passes.clone();
        async move {
            gate.pass().await;
            Ok(1)
        }
    });
    let stage = Stage::idle().await;
    let tap = Tap::start(&stage.nats.server.url()).await;
    let config = WorkerConfig { ack_wait: Duration::from_secs(30), ..quick() };
    let host = host_at(&stage.bed, &tap.url, &hand).await.work_with::<Sum>(config).start().await.unwrap();
    let job = stage.sum(1).await;
    gate.came(1).await;
    // From here on the worker hears nothing: its end is stored, and it cannot know.
    tap.mute();
    gate.open(1);
    assert_eq!(end(&job).await.state, JobState::Completed);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(worker(&stage.nats).await.num_ack_pending, 1);
    tap.cut();
    tap.mend();
    // It asks again, and finds its own entry.
    until("the signal is settled", SOON, || async { worker(&stage.nats).await.num_ack_pending == 0 }).await;
    assert_eq!(worker(&stage.nats).await.num_redelivered, 0);
    assert_eq!(tokens(&stage.nats, job.id().as_str()).await, ["created", "started", "completed"]);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    host.stop().await;
}

/// As many as may wait at a server's default, and more: others are worked on all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_retries_do_not_stop_the_queue() {
    let hand = Hand::sum(|_, job| async move {
        if job.payload.number == 0 {
            Ok(7)
        } else {
            Err(JobError::retry_after(Duration::from_secs(600), "later"))
        }
    });
    let stage = Stage::with(hand, WorkerConfig { concurrency: 64, ..quick() }).await;
    let creates = futures_util::stream::iter(1..=1100).map(|of| stage.sum(of)).buffer_unordered(64);
    creates.for_each(|_| async {}).await;
    let waiting = || async { worker(&stage.nats).await.num_pending == 0 };
    until("all wait for their next try", Duration::from_secs(60), waiting).await;
    assert_eq!(end(&stage.sum(0).await).await.result().unwrap(), Some(7));
    assert!(worker(&stage.nats).await.num_ack_pending >= 1100);
    stage.host.stop().await;
}

/// 42: before anything is asked of the server, in words that say what is right.
#[tokio::test]
async fn a_configuration_that_cannot_work_is_refused() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let hour = Duration::from_secs(3600);
    let retention = JobRetention { at_least: 24 * hour, at_most: hour, ..JobRetention::default() };
    let short = JobRetention { at_least: hour, at_most: hour, ..JobRetention::default() };
    for (config, words) in [
        (WorkerConfig { concurrency: 0, ..quick() }, "`concurrency` must be at least 1"),
        (WorkerConfig { ack_wait: Duration::from_millis(999), ..quick() }, "`ack_wait` must be at least 1 s"),
        (WorkerConfig { retention, ..quick() }, "`retention.at_most` must not be shorter"),
        (WorkerConfig { retention: short, ..quick() }, "shorter than the outbox's `job_horizon`"),
        (WorkerConfig { upkeep_every: Duration::ZERO, ..quick() }, "`upkeep_every` must be at least 100 ms"),
    ] {
        let host = host(&bed, &nats, &Hand::default()).await.work_with::<Sum>(config);
        let error = host.start().await.unwrap_err();
        assert!(matches!(error, StartError::Config(_)), "{error:?}");
        let said = error.to_string();
        assert!(said.contains(words) && said.contains("work.sum"), "{said}");
    }
    assert!(nats.context.get_stream("TRELLIS_JOBS").await.is_err(), "nothing was made");
}

impl Work<jobs::Bare> for Hand<Sqlite> {
    async fn work(&self, _: &WorkCtx<Sqlite>, _: ActiveJob<jobs::Bare>) -> Result<(), JobError> {
        Ok(())
    }
}

/// 84, and a job that another contract owns.
#[tokio::test]
async fn a_job_has_one_worker_and_it_is_its_owners() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let twice = host(&bed, &nats, &Hand::default()).await.work::<Sum>().work_with::<Sum>(quick());
    let said = twice.start().await.unwrap_err().to_string();
    assert!(said.contains("`work.sum`") && said.contains("mounted twice"), "{said}");
    let foreign = host(&bed, &nats, &Hand::default()).await.work::<jobs::Bare>();
    let said = foreign.start().await.unwrap_err().to_string();
    assert!(said.contains("belongs to `test.odd@v1`, this is a host of `test.work@v1`"), "{said}");
}

/// Whatever the mixture: each job ends, once, as it should.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mixed_backlog_ends_each_job_once() {
    const JOBS: u64 = 2000;
    let clock = SystemClock::default();
    let completions = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
    let counted = Arc::clone(&completions);
    let hand = Hand::sum(move |_, job| {
        let counted = Arc::clone(&counted);
        async move {
            let tries = job.facts.tries;
            match job.payload.number % 10 {
                0 if tries == 1 => return Err(JobError::retry("once more")),
                1 => return Err(JobError::fail("never")),
                2 if job.facts.deliveries == 1 => return Err(JobError::snooze(Duration::from_millis(30))),
                3 if tries == 1 => panic!("oh"),
                4 => return Err(JobError::retry("never")),
                5 => tokio::time::sleep(Duration::from_millis(5)).await,
                _ => {}
            }
            *counted.lock().unwrap().entry(job.id().to_string()).or_default() += 1;
            Ok(job.payload.number)
        }
    });
    let config = WorkerConfig { concurrency: 64, ack_wait: Duration::from_secs(10), ..quick() };
    let stage = Stage::idle().await;
    let creates = futures_util::stream::iter(0..JOBS).map(|of| stage.sum(of)).buffer_unordered(64);
    let jobs: Vec<_> = creates.collect().await;
    let hosts = [stage.another(hand.clone(), config.clone()).await, stage.another(hand, config).await];
    let done = || async {
        let info = worker(&stage.nats).await;
        info.num_pending == 0 && info.num_ack_pending == 0
    };
    until("all jobs have ended", Duration::from_secs(60), done).await;
    for host in hosts {
        host.stop().await;
    }
    assert_eq!(jobs.len(), usize::try_from(JOBS).unwrap());

    let mut ends: HashMap<String, Vec<String>> = HashMap::new();
    for message in stage.nats.messages("TRELLIS_JOBS").await {
        let mut tokens = message.subject.rsplit('.');
        let (token, id) = (tokens.next().unwrap(), tokens.next().unwrap());
        if !["created", "started", "retry", "handed_back"].contains(&token) {
            ends.entry(id.to_owned()).or_default().push(token.to_owned());
        }
    }
    let mut counts = HashMap::<&str, u64>::new();
    for (id, of) in &ends {
        assert_eq!(of.len(), 1, "{id}: {of:?}");
        *counts.entry(of[0].as_str()).or_default() += 1;
    }
    assert_eq!(
        counts,
        HashMap::from([("completed", JOBS / 10 * 8), ("failed", JOBS / 10), ("dead", JOBS / 10)])
    );
    let completions = completions.lock().unwrap();
    assert_eq!(completions.len() as u64, JOBS / 10 * 8);
    assert!(completions.values().all(|times| *times == 1), "a handler succeeded twice");
    println!("{JOBS} jobs in {:?}", clock.monotonic());
}
