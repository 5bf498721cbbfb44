//! What a job tells on the way: progress, log lines, waits, updates.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use sqlx::Sqlite;
use tokio::sync::{mpsc, oneshot};
use trellis::{ActiveJob, JobError, LogLevel, Progress, UpdateError, WaitKind, WaitTarget};
use trellis_runtime::{JobState, Update, WorkerConfig};

use crate::jobs::stage::{Gate, Stage, end, now};
use crate::support::hand::{Hand, SOON, Sum, host, number, quick, tokens, work};
use crate::support::log::log;
use crate::support::nats::Nats;
use crate::support::{Bed, until};

/// How long nothing of a try may be missing in the log, when it is told every 50 ms.
const TOLD: Duration = Duration::from_millis(50);

/// 4: a handler tells; whoever looks sees it while it runs, and afterwards.
#[tokio::test]
async fn what_a_handler_tells_is_in_the_job() {
    let gate = Gate::new();
    let passes = gate.clone();
    let stage = Stage::new(Hand::sum(move |_, job| {
        let gate = passes.clone();
        async move {
            job.progress(Progress::of(1, 2).step("render").message("half-way"));
            job.log(LogLevel::Info, "begun");
            job.log(LogLevel::Warn, "slow");
            let waited: Result<(), &str> = job
                .wait_for(WaitTarget::external("payment gateway"), async {
                    gate.pass().await;
                    Err("what it waited for has failed")
                })
                .await;
            assert_eq!(waited, Err("what it waited for has failed"), "what was awaited is what is returned");
            gate.pass().await;
            job.log(LogLevel::Error, "at last");
            job.progress(Progress::of(2, 2));
            Ok(0)
        }
    }))
    .await;
    let job = stage.sum(1).await;
    gate.came(1).await;
    until("the wait is stored", SOON, || async { !now(&job).await.waiting_on.is_empty() }).await;
    let seen = now(&job).await;
    assert_eq!(seen.state, JobState::Active);
    assert_eq!(seen.progress, Some(Progress::of(1, 2).step("render").message("half-way")));
    let lines: Vec<_> = seen.logs.iter().map(|line| (line.level, line.message.as_str())).collect();
    assert_eq!(lines, [(LogLevel::Info, "begun"), (LogLevel::Warn, "slow")]);
    assert_eq!(seen.waiting_on.len(), 1);
    assert_eq!(seen.waiting_on[0].target, WaitTarget::external("payment gateway"));

    gate.open(1);
    gate.came(1).await;
    until("the wait is over", SOON, || async { now(&job).await.waiting_on.is_empty() }).await;
    assert_eq!(now(&job).await.state, JobState::Active);
    gate.open(1);
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.progress.clone()), (JobState::Completed, Some(Progress::of(2, 2))));
    assert_eq!(
        ended.logs.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(),
        ["begun", "slow", "at last"]
    );
    stage.host.stop().await;
}

/// 4: a wait that is given up is over as well.
#[tokio::test]
async fn a_wait_that_is_dropped_has_ended() {
    let gate = Gate::new();
    let passes = gate.clone();
    let stage = Stage::new(Hand::sum(move |_, job| {
        let gate = passes.clone();
        async move {
            let waits = job.wait_for(WaitTarget::external("nobody"), std::future::pending::<()>());
            assert!(tokio::time::timeout(Duration::from_millis(300), waits).await.is_err());
            gate.pass().await;
            Ok(0)
        }
    }))
    .await;
    let job = stage.sum(1).await;
    until("the wait is stored", SOON, || async { !now(&job).await.waiting_on.is_empty() }).await;
    gate.came(1).await;
    until("the wait is over", SOON, || async { now(&job).await.waiting_on.is_empty() }).await;
    gate.open(1);
    assert_eq!(end(&job).await.state, JobState::Completed);
    stage.host.stop().await;
}

/// 5: awaiting another job says so by itself, with its service, its kind and its id.
#[tokio::test]
async fn a_job_says_which_job_it_waits_for() {
    let (bed, nats) = (Bed::<Sqlite>::new(2).await, Nats::start().await);
    let gate = Gate::new();
    let hand = Hand::sum(|ctx, job| async move {
        let child = ctx.job.work.timed.create(&ctx.nats, number(job.payload.number)).id("the-child").await?;
        let ended = child.wait(SOON).await?;
        Ok(ended.result()?.unwrap_or_default() + 1)
    });
    let passes = gate.clone();
    let child = Hand::timed(move |_, job| {
        let gate = passes.clone();
        async move {
            gate.pass().await;
            Ok(job.payload.number)
        }
    });
    let parents = host(&bed, &nats, &hand).await.work_with::<Sum>(quick()).start().await.unwrap();
    let children = host(&bed, &nats, &child).await.work_with::<work::Timed>(quick()).start().await.unwrap();
    let ctx = parents.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(4)).await.unwrap();
    gate.came(1).await;
    until("the wait is stored", SOON, || async { !now(&job).await.waiting_on.is_empty() }).await;
    let target = now(&job).await.waiting_on[0].target.clone();
    assert_eq!(target.kind, WaitKind::Job);
    assert_eq!(
        (target.service.as_deref(), target.name.as_deref(), target.id.as_deref()),
        (Some("test.work@v1"), Some("work.timed"), Some("the-child"))
    );
    gate.open(1);
    let ended = end(&job).await;
    assert_eq!((ended.result().unwrap(), ended.waiting_on.len()), (Some(5), 0));
    // Outside of a handler, a wait is nobody's.
    assert!(job.wait(SOON).await.unwrap().waiting_on.is_empty());
    parents.stop().await;
    children.stop().await;
}

/// As often as it is told, it is stored once per interval; the last is never missing.
#[tokio::test]
async fn what_is_told_within_an_interval_is_stored_once() {
    let config = WorkerConfig { observe_every: Duration::from_millis(400), ..quick() };
    let hand = Hand::sum(|_, job| async move {
        for n in 1..=100 {
            job.progress(Progress::of(n, 100));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(0)
    });
    let stage = Stage::with(hand, config).await;
    let job = stage.sum(1).await;
    assert_eq!(end(&job).await.progress, Some(Progress::of(100, 100)));
    let log = log(&stage.nats, job.id().as_str()).await;
    let stored: Vec<_> = log.iter().filter(|kept| kept.token == "progress").collect();
    // Half a second and more: at once, and each 400 ms after that.
    let span = log.last().unwrap().after(&log[1]).as_millis() / 400 + 2;
    assert!(!stored.is_empty() && stored.len() as u128 <= span, "{} in {span} intervals", stored.len());
    for pair in stored.windows(2) {
        assert!(pair[1].after(pair[0]) >= Duration::from_millis(390), "{log:?}");
    }
    assert_eq!(log.last().unwrap().body["progress"]["current"], 100, "it is told with the end");
    stage.host.stop().await;
}

/// However a try ends, what was told right before is there.
#[tokio::test]
async fn the_last_words_of_a_try_are_kept() {
    let config = WorkerConfig { observe_every: Duration::from_secs(60), ..quick() };
    let hand = Hand::sum(|_, job| async move {
        let of = job.payload.number;
        // Uses up the interval.
        job.log(LogLevel::Info, "first words");
        tokio::time::sleep(Duration::from_millis(100)).await;
        job.log(LogLevel::Info, "last words");
        job.progress(Progress::of(of, 9));
        match of {
            1 => Ok(1),
            2 => Err(JobError::fail("no")),
            3 => panic!("oh"),
            4 if job.facts.deliveries == 1 => Err(JobError::retry("once more")),
            5 if job.facts.deliveries == 1 => Err(JobError::snooze(Duration::ZERO)),
            _ => Ok(of),
        }
    });
    let stage = Stage::with(hand, config).await;
    for (of, state, tries) in [
        (1, JobState::Completed, 1),
        (2, JobState::Failed, 1),
        (3, JobState::Dead, 3),
        (4, JobState::Completed, 2),
        (5, JobState::Completed, 2),
    ] {
        let job = stage.sum(of).await;
        let ended = end(&job).await;
        assert_eq!((ended.state, ended.progress.clone()), (state, Some(Progress::of(of, 9))));
        let words: Vec<_> = ended.logs.iter().map(|line| line.message.as_str()).collect();
        assert_eq!(words, ["first words", "last words"].repeat(tries), "{of}");
    }
    stage.host.stop().await;
}

/// 29's spirit: a talkative job is read as quickly as a silent one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_words_leave_a_small_log() {
    const WORDS: u64 = 50_000;
    let config = WorkerConfig { observe_every: Duration::from_millis(1), ..quick() };
    let hand = Hand::sum(|_, job| async move {
        let said = Arc::new(AtomicU64::new(0));
        for n in 1..=WORDS {
            job.progress(Progress::of(n, WORDS));
            if n % 50 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            said.fetch_add(1, Ordering::Relaxed);
        }
        Ok(said.load(Ordering::Relaxed))
    });
    let stage = Stage::with(hand, config).await;
    let job = stage.sum(1).await;
    let ended = job.wait(Duration::from_secs(60)).await.unwrap();
    assert_eq!(
        (ended.result().unwrap(), ended.progress.clone()),
        (Some(WORDS), Some(Progress::of(WORDS, WORDS)))
    );
    let told = ended.last - ended.run;
    let kept = stage.nats.count("TRELLIS_JOBS").await;
    // A try keeps the latest hundred, and trims at two hundred.
    assert!(kept <= 204, "{kept} messages are kept");
    assert!(told > 204, "only {told} were stored at all: nothing was trimmed");
    assert_eq!(ends_of(&stage, &job).await, ["created", "started", "completed"]);
    stage.host.stop().await;
}

async fn ends_of(stage: &Stage, job: &trellis_runtime::JobRef<Sum>) -> Vec<String> {
    let tokens = tokens(&stage.nats, job.id().as_str()).await;
    tokens.into_iter().filter(|token| token != "progress").collect()
}

/// What a job waits for is known for as long as it waits, however much it says meanwhile.
#[tokio::test]
async fn a_long_wait_outlives_the_words_around_it() {
    let config = WorkerConfig { observe_every: Duration::from_millis(1), ..quick() };
    let gate = Gate::new();
    let passes = gate.clone();
    let hand = Hand::sum(move |_, job| {
        let gate = passes.clone();
        async move {
            job.wait_for(WaitTarget::external("a long one"), async {
                for n in 0..400 {
                    job.progress(Progress::of(n, 400));
                    tokio::time::sleep(Duration::from_millis(4)).await;
                }
                gate.pass().await;
            })
            .await;
            gate.pass().await;
            Ok(0)
        }
    });
    let stage = Stage::with(hand, config).await;
    let job = stage.sum(1).await;
    gate.came(1).await;
    let all = || async { now(&job).await.progress == Some(Progress::of(399, 400)) };
    until("all is stored", SOON, all).await;
    let seen = now(&job).await;
    assert!(seen.last - seen.run > 202, "nothing was trimmed");
    assert_eq!(seen.waiting_on.len(), 1, "it still waits");
    gate.open(1);
    gate.came(1).await;
    until("the wait is over", SOON, || async { now(&job).await.waiting_on.is_empty() }).await;
    gate.open(1);
    assert_eq!(end(&job).await.state, JobState::Completed);
    stage.host.stop().await;
}

/// A thousand lines wait at most, and those that were left out are counted.
#[tokio::test]
async fn log_lines_are_bounded_and_counted() {
    let stage = Stage::new(Hand::sum(|_, job| async move {
        for n in 0..5000 {
            job.log(LogLevel::Info, format!("line {n}"));
        }
        Ok(0)
    }))
    .await;
    let job = stage.sum(1).await;
    let ended = end(&job).await;
    assert_eq!((ended.state, ended.logs.len()), (JobState::Completed, 1000));
    let last = ended.logs.last().unwrap();
    assert_eq!(
        (last.level, last.message.as_str()),
        (LogLevel::Warn, "4000 lines were left out: too many at once")
    );
    assert_eq!(ended.logs[998].message, "line 999");
    stage.host.stop().await;
}

/// However long the lines are, and however large the result beside them: the job ends as it should.
#[tokio::test]
async fn long_lines_do_not_keep_a_job_from_its_end() {
    let hand = Hand::sum(|_, job| async move {
        for n in 0..900 {
            // Of characters that JSON writes in six bytes each.
            job.log(LogLevel::Info, format!("{n} {}", "\u{1}".repeat(10_000)));
            job.progress(Progress::default().message("m".repeat(2 << 20)));
        }
        match job.payload.number {
            1 => Ok(1),
            2 => Err(JobError::fail("e".repeat(2 << 20))),
            _ => Err(JobError::retry("e".repeat(2 << 20))),
        }
    });
    let stage = Stage::new(hand).await;
    for (of, state) in [(1, JobState::Completed), (2, JobState::Failed), (3, JobState::Dead)] {
        let job = stage.sum(of).await;
        let ended = end(&job).await;
        assert_eq!(ended.state, state, "{:?}", ended.last_error);
        assert!(ended.logs.len() > 10 && ended.logs[0].message.starts_with("0 \u{1}"));
        assert!(
            ended.logs.iter().any(|line| line.message.ends_with("lines were left out: too many at once"))
        );
        assert!(ended.progress.is_some());
    }
    stage.host.stop().await;
}

/// Hears a job's updates to their end.
async fn updates_of(job: &trellis_runtime::JobRef<Sum>) -> tokio::task::JoinHandle<Vec<(u32, u64, u64)>> {
    let mut updates = job.updates().await.unwrap();
    tokio::spawn(async move {
        let mut heard = Vec::new();
        while let Some(Update { attempt, sequence, update, .. }) = updates.next().await {
            heard.push((attempt, sequence, update.percent));
        }
        heard
    })
}

/// 88: typed, numbered by their try, to the end of the job.
#[tokio::test]
async fn updates_are_numbered_per_try() {
    let hand = Hand::sum(|_, job| async move {
        let tries = u64::from(job.facts.tries);
        for n in 1..=3 {
            job.update(&work::Step { percent: 10 * tries + n }).await?;
        }
        let invalid = job.update(&work::Step { percent: 101 }).await;
        assert!(
            matches!(&invalid, Err(UpdateError::Invalid { problem, .. }) if problem.contains("percent")),
            "{invalid:?}"
        );
        if tries < 2 { Err(JobError::retry("once more")) } else { Ok(0) }
    });
    let stage = Stage::new(hand).await;
    // Nobody has created it yet.
    let heard = updates_of(&stage.by_id("told")).await;
    stage.ctx.job.work.sum.create(&stage.ctx.nats, number(1)).id("told").await.unwrap();
    let heard = tokio::time::timeout(SOON, heard).await.unwrap().unwrap();
    assert_eq!(heard, [(1, 1, 11), (1, 2, 12), (1, 3, 13), (2, 1, 21), (2, 2, 22), (2, 3, 23)]);
    // Of one that has ended there are none.
    let none = updates_of(&stage.by_id("told")).await;
    assert_eq!(tokio::time::timeout(SOON, none).await.unwrap().unwrap(), []);
    assert_eq!(tokens(&stage.nats, "told").await.len(), 5, "they are not stored");
    stage.host.stop().await;
}

/// Section 2.6: what is no update of this job's latest try is dropped.
#[tokio::test]
async fn what_is_no_update_is_dropped() {
    let stage = Stage::idle().await;
    let job = stage.sum(1).await;
    let mut updates = job.updates().await.unwrap();
    let subject = format!("trellis.job_updates.test-work.work-sum.{}", job.id());
    let envelope = |attempt: i64, sequence: i64, percent: i64| {
        json!({
            "v": 1, "jobId": job.id().as_str(), "attempt": attempt, "sequence": sequence,
            "timestamp": "2026-01-01T00:00:00Z", "update": {"percent": percent},
        })
    };
    let with = |field: &str, value: serde_json::Value| {
        let mut changed = envelope(2, 5, 66);
        changed[field] = value;
        changed
    };
    let send = async |body: String| stage.nats.client.publish(subject.clone(), body.into()).await.unwrap();
    send(envelope(2, 1, 1).to_string()).await;
    for dropped in [
        envelope(1, 9, 66),
        envelope(2, 1, 66),
        envelope(2, 0, 66),
        envelope(0, 9, 66),
        envelope(3, 0, 66),
        envelope(-1, 9, 66),
        with("jobId", json!("another")),
        with("v", json!(2)),
        with("update", json!({"percent": "many"})),
        with("update", json!({"percent": 101})),
        with("update", json!(null)),
        json!({}),
    ] {
        send(dropped.to_string()).await;
    }
    for dropped in ["", "no json", "\u{0}", "[]"] {
        send(dropped.to_owned()).await;
    }
    send(envelope(2, 7, 2).to_string()).await;
    send(envelope(4, 1, 3).to_string()).await;
    send(envelope(3, 9, 66).to_string()).await;
    send(envelope(4, 2, 100).to_string()).await;
    let mut heard = Vec::new();
    for _ in 0..4 {
        let update = tokio::time::timeout(SOON, updates.next()).await.unwrap().unwrap();
        heard.push((update.attempt, update.sequence, update.update.percent));
    }
    assert_eq!(heard, [(2, 1, 1), (2, 7, 2), (4, 1, 3), (4, 2, 100)]);
    job.cancel().await.unwrap();
    assert!(tokio::time::timeout(SOON, updates.next()).await.unwrap().is_none());
}

/// A try that has ended has nothing more to say, whoever kept it.
#[tokio::test]
async fn nothing_can_be_told_after_the_try() {
    let (tell, mut kept) = mpsc::unbounded_channel::<(ActiveJob<Sum>, oneshot::Sender<()>)>();
    let config = WorkerConfig { ack_wait: Duration::from_secs(30), ..quick() };
    let hand = Hand::sum(move |_, job| {
        let tell = tell.clone();
        async move {
            let of = job.payload.number;
            let cancelled = job.cancelled();
            if of == 3 {
                cancelled.await;
            } else {
                drop(cancelled);
            }
            let (go_on, goes_on) = oneshot::channel();
            tell.send((job, go_on)).unwrap();
            goes_on.await.unwrap();
            match of {
                1 => Ok(1),
                2 => Err(JobError::fail("no")),
                _ => Ok(3),
            }
        }
    });
    let stage = Stage::with(hand, config).await;
    for (of, state) in [(1, JobState::Completed), (2, JobState::Failed), (3, JobState::Cancelled)] {
        let job = stage.sum(of).await;
        if of == 3 {
            until("it runs", SOON, || async { now(&job).await.state == JobState::Active }).await;
            job.cancel().await.unwrap();
        }
        let (active, go_on) = kept.recv().await.unwrap();
        if of < 3 {
            active.update(&work::Step { percent: 1 }).await.unwrap();
        }
        // It may have been dropped by then.
        assert!(go_on.send(()).is_ok() || of == 3);
        assert_eq!(end(&job).await.state, state);
        let settled = || async { crate::support::log::worker(&stage.nats).await.num_ack_pending == 0 };
        until("the try is over", SOON, settled).await;
        let late = active.update(&work::Step { percent: 2 }).await;
        assert!(matches!(late, Err(UpdateError::NotSent { .. })), "{of}: {late:?}");
        let before = tokens(&stage.nats, job.id().as_str()).await;
        active.progress(Progress::of(9, 9));
        active.log(LogLevel::Error, "late");
        tokio::time::sleep(4 * TOLD).await;
        assert_eq!(tokens(&stage.nats, job.id().as_str()).await, before);
        assert!(now(&job).await.logs.is_empty());
    }
    stage.host.stop().await;
}
