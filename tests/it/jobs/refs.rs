//! What can be done with a job from outside: ask, wait, cancel, redrive, dismiss.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::HeaderMap;
use futures_util::future::join_all;
use serde_json::json;
use sqlx::Sqlite;
use testbed::nats::Options;
use tokio::sync::mpsc;
use trellis::{Cancellation, JobError, JobId};
use trellis_runtime::{JobRefError, JobState, TriggerKind, WorkerConfig};

use crate::jobs::stage::{Gate, Stage, end, now};
use crate::support::hand::{Hand, JOB, SOON, Sum, host, host_at, number, quick, tokens, work};
use crate::support::log::{SUMS, append, ends, entry, log, worker};
use crate::support::nats::{Nats, connect};
use crate::support::tap::Tap;
use crate::support::{Bed, until};

/// A hand whose handlers wait at the gate.
fn gated(gate: &Gate) -> Hand<Sqlite> {
    let gate = gate.clone();
    Hand::sum(move |_, job| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok(job.payload.number)
        }
    })
}

#[tokio::test]
async fn a_job_that_has_ended_is_not_waited_for() {
    let stage = Stage::new(Hand::default()).await;
    let job = stage.sum(4).await;
    end(&job).await;
    for _ in 0..3 {
        let ended = job.wait(Duration::from_secs(3)).await.unwrap();
        assert_eq!((ended.state, ended.result().unwrap()), (JobState::Completed, Some(4)));
    }
    let read = stage.by_id(job.id().as_str()).get().await.unwrap().unwrap();
    assert_eq!((read.state, read.payload().unwrap()), (JobState::Completed, number(4)));
    assert!(stage.by_id("nobody").get().await.unwrap().is_none());
    stage.host.stop().await;
}

/// However quick it is, its end is not missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_very_fast_job_is_seen() {
    let stage = Stage::new(Hand::default()).await;
    for of in 0..300 {
        let job = stage.sum(of).await;
        // Without the live message it would take seconds.
        let ended = job.wait(Duration::from_millis(2900)).await.unwrap();
        assert_eq!(ended.result().unwrap(), Some(of));
    }
    stage.host.stop().await;
}

#[tokio::test]
async fn a_job_that_is_not_there_yet_is_waited_for() {
    let stage = Stage::new(Hand::default()).await;
    let job = stage.by_id("to-come");
    let waiting = tokio::spawn(async move { job.wait(SOON).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    stage.ctx.job.work.sum.create(&stage.ctx.nats, number(5)).id("to-come").await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().result().unwrap(), Some(5));
    stage.host.stop().await;
}

/// What it was then is said.
#[tokio::test]
async fn a_wait_that_times_out_says_what_the_job_is() {
    let gate = Gate::new();
    let stage = Stage::new(gated(&gate)).await;
    let short = Duration::from_millis(300);
    let nobody = stage.by_id("nobody").wait(short).await.unwrap_err();
    assert!(matches!(nobody, JobRefError::TimedOut { state: None, .. }), "{nobody:?}");
    assert_eq!(
        nobody.to_string(),
        "job `work.sum` with id `nobody` did not end in time, it is not there yet"
    );
    let job = stage.sum(1).await;
    gate.came(1).await;
    let active = job.wait(short).await.unwrap_err();
    assert!(matches!(active, JobRefError::TimedOut { state: Some(JobState::Active), .. }), "{active:?}");
    assert!(active.to_string().ends_with("did not end in time, it is active"), "{active}");
    gate.open(1);
    end(&job).await;
    stage.host.stop().await;
}

/// Its connection goes and comes while the job ends; and a reference outlives the connection it was made on.
#[tokio::test]
async fn a_reference_survives_its_connection() {
    let gate = Gate::new();
    let stage = Stage::new(gated(&gate)).await;
    let tap = Tap::start(&stage.nats.server.url()).await;
    let far = trellis_runtime::Nats::new(connect(&tap.url).await);
    let job = JOB.work.sum.create(&far, number(6)).await.unwrap();
    gate.came(1).await;
    let waiter = job.clone();
    let waiting = tokio::spawn(async move { waiter.wait(SOON).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    tap.cut();
    gate.open(1);
    let near = stage.by_id(job.id().as_str());
    assert_eq!(end(&near).await.state, JobState::Completed);
    // Nobody can be asked now, and that is said.
    let error = job.get().await.unwrap_err();
    assert!(matches!(error, JobRefError::Unavailable { .. }), "{error:?}");
    let error = job.wait(Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, JobRefError::Unavailable { .. }), "{error:?}");
    let error = tokio::time::timeout(SOON, job.updates()).await.unwrap().unwrap_err();
    assert!(matches!(error, JobRefError::Unavailable { .. }), "{error:?}");
    assert!(!waiting.is_finished());
    tap.mend();
    assert_eq!(waiting.await.unwrap().unwrap().result().unwrap(), Some(6));

    // 59: get, cancel and wait agree on the new connection, and one entry says so.
    let second = JOB.work.sum.create(&far, number(7)).await.unwrap();
    gate.came(1).await;
    tap.cut();
    tokio::time::sleep(Duration::from_millis(50)).await;
    tap.mend();
    let cancelled = second.cancel().await.unwrap();
    assert_eq!(cancelled.state, JobState::Cancelled);
    assert_eq!(second.get().await.unwrap().unwrap().state, JobState::Cancelled);
    assert_eq!(end(&second).await.state, JobState::Cancelled);
    assert_eq!(ends(&stage.nats, second.id()).await, ["cancelled"]);
    stage.host.stop().await;
}

/// A server whose user `deaf` hears nothing of the ends of jobs.
async fn server_with_a_deaf_user() -> Nats {
    let users = r#"
authorization { users: [
  { user: all, password: all },
  { user: deaf, password: deaf, permissions: { subscribe: { deny: ["trellis.jobs.*.*.*.>"] } } },
] }
no_auth_user: all
"#;
    Nats::start_with(Options { extra_config: users.to_owned(), ..Options::default() }).await
}

fn deaf_url(nats: &Nats) -> String {
    nats.server.url().replace("nats://", "nats://deaf:deaf@")
}

/// B-36: a cancellation whose live message is lost is noticed within half the ack wait, a wait within seconds.
#[tokio::test]
async fn what_is_not_heard_is_read() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, server_with_a_deaf_user().await);
    let (tell, mut told) = mpsc::unbounded_channel();
    let hand = Hand::sum(move |_, job| {
        let tell = tell.clone();
        async move {
            let reason = job.cancelled().await;
            tell.send(reason).unwrap();
            Ok(0)
        }
    });
    let config = WorkerConfig { ack_wait: Duration::from_secs(3), concurrency: 1, ..quick() };
    let host = host_at(&bed, &deaf_url(&nats), &hand).await.work_with::<Sum>(config).start().await.unwrap();
    let near = trellis_runtime::Nats::new(nats.client.clone());
    let job = JOB.work.sum.create(&near, number(1)).await.unwrap();
    until("it runs", SOON, || async { now(&job).await.state == JobState::Active }).await;
    let deaf = host.ctx();
    let waiter = deaf.job.work.sum.by_id(&deaf.nats, job.id().clone());
    let waiting = tokio::spawn(async move { waiter.wait(SOON).await });
    assert_eq!(job.cancel().await.unwrap().state, JobState::Cancelled);
    let reason = tokio::time::timeout(Duration::from_millis(2500), told.recv()).await;
    assert_eq!(reason.expect("within half the ack wait, and a busy machine").unwrap(), Cancellation::Job);
    assert_eq!(waiting.await.unwrap().unwrap().state, JobState::Cancelled);
    assert_eq!(ends(&nats, job.id()).await, ["cancelled"]);
    host.stop().await;
}

/// Others hear an append before it is judged: only what the log has counts.
#[tokio::test]
async fn a_cancellation_that_was_refused_is_none() {
    let gate = Gate::new();
    let (passes, told) = (gate.clone(), Arc::new(AtomicBool::new(false)));
    let heard = Arc::clone(&told);
    let stage = Stage::new(Hand::sum(move |_, job| {
        let (gate, told) = (passes.clone(), Arc::clone(&heard));
        async move {
            tokio::select! {
                () = gate.pass() => {}
                _ = job.cancelled() => told.store(true, Ordering::SeqCst),
            }
            Ok(job.payload.number)
        }
    }))
    .await;
    let job = stage.sum(8).await;
    gate.came(1).await;
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", "1");
    headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", format!("{SUMS}.{}.>", job.id()));
    let body = entry(job.id().as_str(), "cancelled", "cancelled", Some("pending")).to_string();
    let subject = format!("{SUMS}.{}.cancelled", job.id());
    let refused = stage.nats.context.publish_with_headers(subject, headers, body.into()).await.unwrap();
    assert!(refused.await.is_err());
    // One that is stored and says what is not so is none either.
    let wrong = entry(job.id().as_str(), "cancelled", "cancelled", Some("retry"));
    append(&stage.nats, &format!("{SUMS}.{}.cancelled", job.id()), wrong).await;
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert!(!told.load(Ordering::SeqCst));
    gate.open(1);
    assert_eq!(end(&job).await.result().unwrap(), Some(8));
    stage.host.stop().await;
}

/// Nobody works on it any more, in whatever state it was.
#[tokio::test]
async fn a_waiting_job_is_cancelled() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let hand = Hand::sum(move |_, job| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match job.payload.number {
                1 => Err(JobError::retry_after(Duration::from_millis(1500), "later")),
                2 => Err(JobError::snooze(Duration::from_millis(1500))),
                other => Ok(other),
            }
        }
    });
    let stage = Stage::idle().await;
    let pending = stage.sum(3).await;
    let cancelled = pending.cancel().await.unwrap();
    assert_eq!(
        (cancelled.state, cancelled.tries, cancelled.last_error.as_deref()),
        (JobState::Cancelled, 0, Some("cancelled"))
    );
    assert!(cancelled.completed_at.is_some());
    let host = stage.another(hand, quick()).await;
    let (retries, snoozes) = (stage.sum(1).await, stage.sum(2).await);
    for (job, tries) in [(&retries, 1), (&snoozes, 0)] {
        until("it waits", SOON, || async { now(job).await.due_at.is_some() }).await;
        let cancelled = job.cancel().await.unwrap();
        assert_eq!((cancelled.state, cancelled.tries, cancelled.due_at), (JobState::Cancelled, tries, None));
    }
    let settled = || async { worker(&stage.nats).await.num_ack_pending == 0 };
    until("the deliveries are settled", SOON, settled).await;
    assert_eq!(calls.load(Ordering::SeqCst), 2, "one try each of those that began");
    for job in [&pending, &retries, &snoozes] {
        assert_eq!(now(job).await.state, JobState::Cancelled);
        assert_eq!(ends(&stage.nats, job.id()).await, ["cancelled"]);
    }
    host.stop().await;
}

/// B-36: also while all slots are taken; when one is free, nothing is started.
#[tokio::test]
async fn a_job_that_waits_for_a_slot_is_cancelled() {
    let gate = Gate::new();
    let stage = Stage::with(gated(&gate), WorkerConfig { concurrency: 1, ..quick() }).await;
    let (first, second, third) = (stage.sum(1).await, stage.sum(2).await, stage.sum(3).await);
    gate.came(1).await;
    assert_eq!(second.cancel().await.unwrap().state, JobState::Cancelled);
    gate.open(2);
    assert_eq!(end(&first).await.state, JobState::Completed);
    assert_eq!(end(&third).await.state, JobState::Completed);
    gate.came(1).await;
    assert_eq!(gate.more(), 0, "the second was not started");
    assert_eq!(tokens(&stage.nats, second.id().as_str()).await, ["created", "cancelled"]);
    stage.host.stop().await;
}

/// B-47, 53: handlers are told, whatever they make of it; their slot is free for the next job.
#[tokio::test]
async fn a_running_job_is_cancelled_and_its_slot_is_free() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let hand = Hand::sum(move |_, job| {
        let tell = tell.clone();
        async move {
            let of = job.payload.number;
            if of > 5 {
                return Ok(of);
            }
            let reason = if of == 5 { std::future::pending().await } else { job.cancelled().await };
            tell.send((of, reason, job.cancellation())).unwrap();
            match of {
                1 => Ok(1),
                2 => Err(JobError::retry("told")),
                3 => panic!("told"),
                _ => std::future::pending().await,
            }
        }
    });
    let stage = Stage::with(hand, WorkerConfig { concurrency: 1, ..quick() }).await;
    for of in 1..=5 {
        let job = stage.sum(of).await;
        until("it runs", SOON, || async { now(&job).await.state == JobState::Active }).await;
        let next = stage.sum(10 + of).await;
        let cancelled = job.cancel().await.unwrap();
        assert_eq!((cancelled.state, cancelled.tries), (JobState::Cancelled, 1));
        if of < 5 {
            let told = tokio::time::timeout(SOON, told.recv()).await.unwrap().unwrap();
            assert_eq!(told, (of, Cancellation::Job, Some(Cancellation::Job)));
        }
        assert_eq!(end(&next).await.state, JobState::Completed, "{of}");
        let after = now(&job).await;
        assert_eq!((after.state, after.result().unwrap()), (JobState::Cancelled, None));
        assert_eq!(tokens(&stage.nats, job.id().as_str()).await, ["created", "started", "cancelled"]);
    }
    let settled = || async { worker(&stage.nats).await.num_ack_pending == 0 };
    until("all deliveries are settled", SOON, settled).await;
    stage.host.stop().await;
}

/// 53: one worker hears the cancellations of all its jobs, and only of those that are meant.
#[tokio::test]
async fn each_job_of_a_worker_is_cancelled_by_itself() {
    let gate = Gate::new();
    let (passes, told) = (gate.clone(), Arc::new(Mutex::new(Vec::new())));
    let heard = Arc::clone(&told);
    let stage = Stage::new(Hand::sum(move |_, job| {
        let (gate, told) = (passes.clone(), Arc::clone(&heard));
        async move {
            tokio::select! {
                () = gate.pass() => {}
                reason = job.cancelled() => told.lock().unwrap().push((job.payload.number, reason)),
            }
            Ok(job.payload.number)
        }
    }))
    .await;
    let jobs = [stage.sum(0).await, stage.sum(1).await, stage.sum(2).await, stage.sum(3).await];
    gate.came(4).await;
    let cancelled = join_all([jobs[3].cancel(), jobs[1].cancel(), jobs[2].cancel()]).await;
    assert!(cancelled.iter().all(|job| job.as_ref().unwrap().state == JobState::Cancelled));
    until("all were told", SOON, || async { told.lock().unwrap().len() == 3 }).await;
    gate.open(1);
    assert_eq!(end(&jobs[0]).await.result().unwrap(), Some(0));
    let mut told = told.lock().unwrap().clone();
    told.sort_unstable();
    assert_eq!(told, [1, 2, 3].map(|of| (of, Cancellation::Job)));
    for job in &jobs[1..] {
        assert_eq!(ends(&stage.nats, job.id()).await, ["cancelled"]);
    }
    stage.host.stop().await;
}

/// 67: of several reasons to end, a stop counts more than a cancellation, in either order.
#[tokio::test]
async fn a_stop_counts_more_than_a_cancellation() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let (gate, told) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
    let (passes, heard) = (gate.clone(), Arc::clone(&told));
    let hand = Hand::sum(move |_, job| {
        let (gate, told) = (passes.clone(), Arc::clone(&heard));
        async move {
            let first = job.cancelled().await;
            gate.pass().await;
            told.lock().unwrap().push((job.payload.number, first, job.cancellation()));
            Ok(1)
        }
    });
    let config = WorkerConfig { cancel_grace: Duration::from_secs(30), ..quick() };
    let host = host(&bed, &nats, &hand).await.work_with::<Sum>(config).start().await.unwrap();
    let ctx = host.ctx();
    let before = ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap();
    let after = ctx.job.work.sum.create(&ctx.nats, number(2)).await.unwrap();
    for job in [&before, &after] {
        until("it runs", SOON, || async { now(job).await.state == JobState::Active }).await;
    }
    before.cancel().await.unwrap();
    gate.came(1).await;
    let stopping = tokio::spawn(async move { host.stop().await });
    gate.came(1).await;
    after.cancel().await.unwrap();
    // Time for the worker to hear of it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    gate.open(2);
    tokio::time::timeout(SOON, stopping).await.unwrap().unwrap();
    let mut told = told.lock().unwrap().clone();
    told.sort_unstable();
    let stop = Cancellation::Shutdown;
    assert_eq!(told, [(1, Cancellation::Job, Some(stop)), (2, stop, Some(stop))]);
    for job in [&before, &after] {
        assert_eq!(now(job).await.state, JobState::Cancelled);
    }
}

/// 87: it yields the end as it was.
#[tokio::test]
async fn an_ended_job_is_not_cancelled() {
    let stage = Stage::new(Hand::sum(|_, job| async move {
        if job.payload.number == 1 { Ok(1) } else { Err(JobError::fail("no")) }
    }))
    .await;
    for (of, state) in [(1, JobState::Completed), (2, JobState::Failed)] {
        let job = stage.sum(of).await;
        end(&job).await;
        let before = tokens(&stage.nats, job.id().as_str()).await;
        let after = job.cancel().await.unwrap();
        assert_eq!((after.state, after.tries), (state, 1));
        assert_eq!(tokens(&stage.nats, job.id().as_str()).await, before);
    }
    let cancelled = stage.by_id("nobody").cancel().await.unwrap_err();
    assert!(matches!(cancelled, JobRefError::NotFound { .. }), "{cancelled:?}");
    stage.host.stop().await;
}

/// 59: however many cancel while it completes, one of them all is the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancels_and_completion_agree_on_one_end() {
    let gate = Gate::new();
    let stage = Stage::new(gated(&gate)).await;
    let (mut completed, mut cancelled) = (0, 0);
    for round in 0..30 {
        let job = stage.sum(round).await;
        gate.came(1).await;
        let cancels = (0..4).map(|n| {
            let job = job.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_micros(400 * n * (round % 6))).await;
                job.cancel().await.unwrap().state
            })
        });
        let cancels: Vec<_> = cancels.collect();
        gate.open(1);
        let states: Vec<JobState> = join_all(cancels).await.into_iter().map(Result::unwrap).collect();
        let ended = end(&job).await.state;
        assert!(states.iter().all(|state| *state == ended), "{states:?} and {ended}");
        assert_eq!(ends(&stage.nats, job.id()).await, [ended.to_string()]);
        // One that was cancelled before it came to the gate has not used its pass.
        until("the round is over", SOON, || async { worker(&stage.nats).await.num_ack_pending == 0 }).await;
        gate.close();
        *(if ended == JobState::Completed { &mut completed } else { &mut cancelled }) += 1;
    }
    println!("{completed} completed, {cancelled} cancelled");
    stage.host.stop().await;
}

/// B-55: right after its end it runs again, as often as it is told to, and a wait is for the new end.
#[tokio::test]
async fn a_redriven_job_runs_again_and_its_new_end_is_waited_for() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let stage = Stage::new(Hand::sum(move |_, job| {
        let call = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            assert!(job.facts.tries <= 3);
            match call {
                1 | 5 => Err(JobError::fail("no")),
                2..=4 => Err(JobError::retry("no")),
                _ => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    Ok(u64::from(call))
                }
            }
        }
    }))
    .await;
    let job = stage.sum(1).await;
    let first = end(&job).await;
    assert_eq!((first.state, first.run), (JobState::Failed, 1));
    for expected in [JobState::Dead, JobState::Failed, JobState::Completed] {
        let redriven = job.redrive("the disk is empty again").await.unwrap();
        assert_eq!((redriven.state, redriven.tries, redriven.max_tries), (JobState::Pending, 0, 3));
        assert_eq!((redriven.last_error.as_deref(), redriven.completed_at), (None, None));
        assert_eq!(redriven.trigger.as_ref().unwrap().kind, TriggerKind::ManualReplay);
        let ended = end(&job).await;
        assert_eq!((ended.state, ended.run), (expected, redriven.run));
    }
    let ended = now(&job).await;
    assert_eq!((ended.tries, ended.result().unwrap()), (1, Some(6)));
    assert_eq!((ended.created_at, ended.payload().unwrap()), (first.created_at, number(1)));
    let log = log(&stage.nats, job.id().as_str()).await;
    let retried: Vec<_> = log.iter().filter(|kept| kept.token == "retried").collect();
    assert_eq!(retried.len(), 3);
    assert!(
        retried.iter().all(|kept| kept.body["adminAction"] == json!({"reason": "the disk is empty again"}))
    );
    assert_eq!(calls.load(Ordering::SeqCst), 6);
    let settled = || async { worker(&stage.nats).await.num_ack_pending == 0 };
    until("the signals of all runs are settled", SOON, settled).await;
    stage.host.stop().await;
}

/// 61 without keys: the delivery of an old run that comes back says nothing about the new one.
#[tokio::test]
async fn redrives_at_once_open_one_run() {
    let gate = Gate::new();
    let passes = gate.clone();
    let stage = Stage::new(Hand::sum(move |_, job| {
        let gate = passes.clone();
        async move {
            if job.facts.run == 1 {
                return Err(JobError::fail("no"));
            }
            gate.pass().await;
            Ok(2)
        }
    }))
    .await;
    let job = stage.sum(1).await;
    end(&job).await;
    let redrives = join_all((0..8).map(|_| job.redrive("again"))).await;
    let (done, refused): (Vec<_>, Vec<_>) = redrives.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), refused.len()), (1, 7));
    assert!(
        refused.iter().all(|refused| matches!(refused, Err(JobRefError::WrongState { .. }))),
        "{refused:?}"
    );
    gate.came(1).await;
    gate.open(1);
    assert_eq!(end(&job).await.result().unwrap(), Some(2));
    let retried = tokens(&stage.nats, job.id().as_str()).await.into_iter().filter(|token| token == "retried");
    assert_eq!(retried.count(), 1);
    assert_eq!(gate.more(), 0);
    stage.host.stop().await;
}

/// What ended well, or was ended on purpose, is not started again; what is open is not either.
#[tokio::test]
async fn only_failed_and_dead_jobs_are_redriven_and_only_dead_ones_dismissed() {
    let gate = Gate::new();
    let passes = gate.clone();
    let stage = Stage::new(Hand::sum(move |_, job| {
        let gate = passes.clone();
        async move {
            match job.payload.number {
                1 => Ok(1),
                2 => Err(JobError::fail("no")),
                3 => Err(JobError::retry("no")),
                _ => {
                    gate.pass().await;
                    Ok(4)
                }
            }
        }
    }))
    .await;
    let refused = |error: JobRefError, words: &str| {
        assert!(matches!(error, JobRefError::WrongState { .. }), "{error:?}");
        assert!(error.to_string().ends_with(words), "{error}");
    };
    let completed = stage.sum(1).await;
    end(&completed).await;
    refused(completed.redrive("").await.unwrap_err(), "is completed: only failed and dead jobs are redriven");
    refused(completed.dismiss("").await.unwrap_err(), "is completed: only dead jobs are dismissed");
    let failed = stage.sum(2).await;
    end(&failed).await;
    refused(failed.dismiss("").await.unwrap_err(), "is failed: only dead jobs are dismissed");
    let active = stage.sum(4).await;
    gate.came(1).await;
    refused(active.redrive("").await.unwrap_err(), "is active: only failed and dead jobs are redriven");
    refused(active.dismiss("").await.unwrap_err(), "is active: only dead jobs are dismissed");
    active.cancel().await.unwrap();
    refused(active.redrive("").await.unwrap_err(), "is cancelled: only failed and dead jobs are redriven");

    let dead = stage.sum(3).await;
    assert_eq!(end(&dead).await.state, JobState::Dead);
    let dismissed = dead.dismiss("seen").await.unwrap();
    assert_eq!((dismissed.state, dismissed.tries), (JobState::Dismissed, 3));
    assert_eq!(dismissed.last_error.as_deref(), Some("3 of 3 tries are used up: no"), "why it died is kept");
    assert_eq!(log(&stage.nats, dead.id()).await.last().unwrap().body["adminAction"]["reason"], "seen");
    refused(dead.redrive("").await.unwrap_err(), "is dismissed: only failed and dead jobs are redriven");
    refused(dead.dismiss("").await.unwrap_err(), "is dismissed: only dead jobs are dismissed");
    assert_eq!(end(&dead).await.state, JobState::Dismissed);

    for error in [stage.by_id("nobody").redrive("").await, stage.by_id("nobody").dismiss("").await] {
        assert!(matches!(error, Err(JobRefError::NotFound { .. })), "{error:?}");
    }
    stage.host.stop().await;
}

/// A deadline that has passed would end a new run at once.
#[tokio::test]
async fn a_redrive_has_a_deadline_of_its_own() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let hand =
        Hand::timed(
            |_, job| async move { if job.facts.run == 1 { Err(JobError::fail("no")) } else { Ok(1) } },
        );
    let host = host(&bed, &nats, &hand).await.work_with::<work::Timed>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let job = ctx.job.work.timed.create(&ctx.nats, number(1)).await.unwrap();
    let first = end(&job).await;
    assert_eq!(first.state, JobState::Failed);
    tokio::time::sleep(Duration::from_millis(1600)).await;
    let redriven = job.redrive("again").await.unwrap();
    assert_eq!(
        redriven.deadline.unwrap().duration_since(redriven.updated_at).unwrap(),
        Duration::from_millis(1500)
    );
    assert!(redriven.deadline > first.deadline);
    assert_eq!(end(&job).await.state, JobState::Completed);
    host.stop().await;
}

/// A reason is an operator's, and may be as long as they like; it is kept cut.
#[tokio::test]
async fn a_reason_of_any_length_is_taken() {
    let stage = Stage::new(Hand::sum(|_, job| async move {
        if job.facts.run == 1 { Err(JobError::fail("no")) } else { Ok(1) }
    }))
    .await;
    let job = stage.sum(1).await;
    end(&job).await;
    job.redrive(&"r".repeat(4 << 20)).await.unwrap();
    assert_eq!(end(&job).await.state, JobState::Completed);
    let other = JobId::new("nobody").unwrap();
    assert!(stage.ctx.job.work.sum.by_id(&stage.ctx.nats, other).get().await.unwrap().is_none());
    stage.host.stop().await;
}
