//! Workers that stop, vanish or are killed: no job is lost, none runs twice without need.
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use testbed::{Launch, Process, Stopwatch};
use tokio::sync::mpsc;
use trellis::{Cancellation, JobError};
use trellis_runtime::{Host, JobState, SqlOutbox, WorkerConfig};

use crate::support::hand::{Hand, SOON, Sum, host, number, quick, tokens, work};
use crate::support::nats::Nats;
use crate::support::{Bed, until};

type Db = sqlx::Sqlite;

/// The variables that make the ignored test below a worker process.
const NATS: &str = "TRELLIS_TEST_WORKER_NATS";
const DATABASE: &str = "TRELLIS_TEST_WORKER_DATABASE";

/// Bodies of the log's entries named `token`, in order.
async fn bodies(nats: &Nats, token: &str) -> Vec<serde_json::Value> {
    let messages = nats.messages("TRELLIS_JOBS").await;
    let of_token = messages.iter().filter(|message| message.subject.ends_with(&format!(".{token}")));
    of_token.map(|message| serde_json::from_slice(&message.payload).unwrap()).collect()
}

/// B-35: deploys are no failed tries. Ten restarts in turn under load, with jobs longer than a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_rolling_restarts_change_no_tries() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let hand = Hand::<Db>::sum(|_, job| async move {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(150)) => Ok(job.payload.number),
            // As a well-behaved handler does; what it says then does not count.
            _ = job.cancelled() => Err(JobError::retry("stopping")),
        }
    });
    let start = async || {
        let builder = host(&bed, &nats, &hand).await.work_with::<work::Sum>(quick());
        builder.stop_timeout(Duration::from_millis(50)).start().await.unwrap()
    };
    let mut hosts = [start().await, start().await];
    let ctx = hosts[0].ctx();
    let mut jobs = Vec::new();
    for round in 0..10_usize {
        for _ in 0..8 {
            jobs.push(ctx.job.work.sum.create(&ctx.nats, number(jobs.len() as u64)).await.unwrap());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        hosts[round % 2].stop().await;
        hosts[round % 2] = start().await;
    }
    for job in &jobs {
        let ended = job.wait(SOON).await.unwrap();
        assert_eq!(
            (ended.state, ended.tries),
            (JobState::Completed, 1),
            "{:?}",
            tokens(&nats, job.id().as_str()).await
        );
    }
    assert!(!bodies(&nats, "handed_back").await.is_empty(), "some were at work during a restart");
    for host in &hosts {
        host.stop().await;
    }
}

/// A handler that goes on when told of the stop is dropped when the time is over, and its try does not count.
#[tokio::test]
async fn a_stop_hands_back_what_does_not_end() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let (tell, mut told) = mpsc::unbounded_channel();
    let hand = Hand::<Db>::sum(move |_, job| {
        let tell = tell.clone();
        async move {
            tell.send(None).unwrap();
            tell.send(Some(job.cancelled().await)).unwrap();
            std::future::pending::<()>().await;
            Ok(0)
        }
    });
    let first = host(&bed, &nats, &hand).await.work_with::<work::Sum>(quick());
    let first = first.stop_timeout(Duration::from_millis(300)).start().await.unwrap();
    let ctx = first.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap();
    assert_eq!(told.recv().await.unwrap(), None);
    let stopping = Stopwatch::start();
    first.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(5));
    assert_eq!(told.recv().await.unwrap(), Some(Cancellation::Shutdown));
    let snapshot = job.get().await.unwrap().unwrap();
    assert_eq!((snapshot.state, snapshot.tries), (JobState::Pending, 0));
    assert_eq!(tokens(&nats, job.id().as_str()).await, ["created", "started", "handed_back"]);

    let second =
        host(&bed, &nats, &Hand::default()).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ended = job.wait(SOON).await.unwrap();
    assert_eq!((ended.state, ended.tries), (JobState::Completed, 1));
    second.stop().await;
}

/// A handler that ends within the stop's time has ended its job.
#[tokio::test]
async fn a_stop_waits_for_what_ends_in_time() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let (tell, mut told) = mpsc::unbounded_channel();
    let hand = Hand::<Db>::sum(move |_, job| {
        let tell = tell.clone();
        async move {
            tell.send(()).unwrap();
            job.cancelled().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(job.payload.number)
        }
    });
    let first = host(&bed, &nats, &hand).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ctx = first.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(9)).await.unwrap();
    told.recv().await.unwrap();
    first.stop().await;
    assert_eq!(job.get().await.unwrap().unwrap().result().unwrap(), Some(9));
}

/// An idle stop ends its pulls, starts nothing and leaves nothing on the server; what comes too late goes back.
#[tokio::test]
async fn an_idle_stop_is_short_and_leaves_no_pull() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let first =
        host(&bed, &nats, &Hand::default()).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ctx = first.ctx();
    ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap().wait(SOON).await.unwrap();
    let stopping = Stopwatch::start();
    first.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(4), "{:?}", stopping.elapsed());
    let late = ctx.job.work.sum.create(&ctx.nats, number(2)).await.unwrap();
    let stream = nats.context.get_stream("TRELLIS_JOBS").await.unwrap();
    let consumer = stream.consumer_info("test-work--work-sum").await.unwrap();
    assert_eq!((consumer.num_waiting, consumer.num_ack_pending, consumer.num_pending), (0, 0, 1));
    assert_eq!(late.get().await.unwrap().unwrap().state, JobState::Pending);
}

/// A start that is given up leaves the queue as it was.
#[tokio::test]
async fn a_start_that_is_dropped_takes_nothing() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let maker = host(&bed, &nats, &Hand::default()).await.start().await.unwrap();
    let ctx = maker.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(3)).await.unwrap();
    for ms in [0, 1, 3, 8, 20] {
        let starting = host(&bed, &nats, &Hand::default()).await.work_with::<work::Sum>(quick()).start();
        drop(tokio::time::timeout(Duration::from_millis(ms), starting).await);
    }
    let worker =
        host(&bed, &nats, &Hand::default()).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ended = job.wait(SOON).await.unwrap();
    assert_eq!((ended.state, ended.tries), (JobState::Completed, 1));
    worker.stop().await;
    maker.stop().await;
}

/// The job of a worker that vanishes runs again after the ack wait; the lost try counts.
#[tokio::test]
async fn the_job_of_a_vanished_worker_runs_again() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let (tell, mut told) = mpsc::unbounded_channel();
    let hand = Hand::<Db>::sum(move |_, job| {
        let tell = tell.clone();
        async move {
            tell.send(()).unwrap();
            if job.facts.tries == 1 {
                std::future::pending::<()>().await;
            }
            Ok(job.payload.number)
        }
    });
    let config = || WorkerConfig { ack_wait: Duration::from_secs(1), ..quick() };
    let first = host(&bed, &nats, &hand).await.work_with::<work::Sum>(config()).start().await.unwrap();
    let ctx = first.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap();
    told.recv().await.unwrap();
    drop(first);
    let second = host(&bed, &nats, &hand).await.work_with::<work::Sum>(config()).start().await.unwrap();
    let ended = job.wait(SOON).await.unwrap();
    assert_eq!((ended.state, ended.tries), (JobState::Completed, 2));
    second.stop().await;
}

/// B-44: who did what can be told, although both have the same name.
#[tokio::test]
async fn instances_are_told_apart() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let hand = Hand::<Db>::sum(|_, _| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(0)
    });
    let config = || WorkerConfig { concurrency: 1, ..quick() };
    let mut hosts = Vec::new();
    for _ in 0..2 {
        hosts.push(host(&bed, &nats, &hand).await.work_with::<work::Sum>(config()).start().await.unwrap());
    }
    let ctx = hosts[0].ctx();
    let mut jobs = Vec::new();
    for each in 0..20 {
        jobs.push(ctx.job.work.sum.create(&ctx.nats, number(each)).await.unwrap());
    }
    for job in jobs {
        job.wait(SOON).await.unwrap();
    }
    let started = bodies(&nats, "started").await;
    let instances: BTreeSet<&str> = started.iter().map(|body| body["instance"].as_str().unwrap()).collect();
    assert_eq!(instances.len(), 2, "{instances:?}");
    for host in hosts {
        host.stop().await;
    }
}

/// Two hosts, two thousand jobs: each runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_faults_each_job_runs_once() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let calls = Arc::new(std::sync::Mutex::new(BTreeMap::<u64, u32>::new()));
    let counted = Arc::clone(&calls);
    let hand = Hand::<Db>::sum(move |_, job| {
        *counted.lock().unwrap().entry(job.payload.number).or_default() += 1;
        async move { Ok(job.payload.number) }
    });
    let mut hosts = Vec::new();
    for _ in 0..2 {
        let config = WorkerConfig { concurrency: 32, ..quick() };
        hosts.push(host(&bed, &nats, &hand).await.work_with::<work::Sum>(config).start().await.unwrap());
    }
    let ctx = hosts[0].ctx();
    let create = |each: u64| ctx.job.work.sum.create(&ctx.nats, number(each)).into_future();
    for page in 0..20_u64 {
        let creating = (0..100).map(|each| create(page * 100 + each));
        for created in futures_util::future::join_all(creating).await {
            created.unwrap();
        }
    }
    until("all run", SOON, async || calls.lock().unwrap().len() == 2000).await;
    for host in &hosts {
        host.stop().await;
    }
    assert!(calls.lock().unwrap().values().all(|count| *count == 1));
    assert_eq!(nats.count("TRELLIS_JOBS").await, 3 * 2000, "created, started, completed");
}

/// A worker process of its own: it does what the payload says, until it is killed.
#[tokio::test]
#[ignore = "a process that another test starts"]
async fn worker_process() {
    let (Ok(nats), Ok(database)) = (std::env::var(NATS), std::env::var(DATABASE)) else { return };
    let pool = sqlx::SqlitePool::connect(&format!("sqlite:{database}")).await.unwrap();
    let hand = Hand::<Db>::sum(|_, job| async move {
        if job.payload.text == "abort" {
            std::process::abort();
        }
        Ok(job.payload.number)
    });
    let config = WorkerConfig { ack_wait: Duration::from_secs(1), ..quick() };
    let host =
        Host::builder(hand, SqlOutbox::new(pool).unwrap()).connect(nats).work_with::<work::Sum>(config);
    host.start().await.unwrap().run().await;
}

fn launch(bed: &Bed<Db>, nats: &Nats, log: PathBuf) -> Process {
    Launch::new(std::env::current_exe().unwrap(), log)
        .args(["jobs::survive::worker_process", "--exact", "--ignored", "--nocapture"])
        .env(NATS, nats.server.url())
        .env(DATABASE, &bed.url)
        .start()
        .unwrap()
}

/// What ends its process in each try ends as dead, and takes nobody else with it for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_kills_its_process_is_dead_after_its_tries() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let folder = tempfile::tempdir().unwrap();
    let maker = host(&bed, &nats, &Hand::default()).await.start().await.unwrap();
    let ctx = maker.ctx();
    let killer = Sum { number: 1, text: "abort".to_owned() };
    let killer = ctx.job.work.sum.create(&ctx.nats, killer).await.unwrap();
    let mut worker = launch(&bed, &nats, folder.path().join("log"));
    let starts = AtomicUsize::new(1);
    let ended = tokio::select! {
        ended = killer.wait(Duration::from_secs(40)) => ended.unwrap(),
        () = async { loop {
            if worker.exit_status().unwrap().is_some() {
                starts.fetch_add(1, Ordering::Relaxed);
                worker = launch(&bed, &nats, folder.path().join("log"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        } } => unreachable!(),
    };
    assert_eq!((ended.state, ended.tries), (JobState::Dead, 3));
    assert!(
        ended.last_error.as_deref().unwrap().contains("what ends the processes"),
        "{:?}",
        ended.last_error
    );
    assert_eq!(starts.load(Ordering::Relaxed), 4, "three were killed");
    let well = ctx.job.work.sum.create(&ctx.nats, number(2)).await.unwrap();
    assert_eq!(well.wait(SOON).await.unwrap().state, JobState::Completed);
    worker.kill_hard().unwrap();
    maker.stop().await;
}

/// An owner that lost its delivery while it was cut off says nothing on it: neither an end nor an
/// acknowledgement reaches its successor's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_owner_is_silent() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let calls = Arc::new(AtomicU32::new(0));
    let (tell, mut told) = mpsc::unbounded_channel();
    let counted = Arc::clone(&calls);
    let hand = Hand::<Db>::sum(move |_, job| {
        let (call, tell) = (counted.fetch_add(1, Ordering::Relaxed), tell.clone());
        async move {
            if call == 0 {
                // Blocks every thread that could renew: as a frozen process does.
                let cancelled = job.cancelled().await;
                tell.send(cancelled).unwrap();
                return Ok(100);
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok(job.payload.number)
        }
    });
    let config = || WorkerConfig { ack_wait: Duration::from_secs(1), ..quick() };
    let proxy =
        crate::support::proxy::Proxy::start(&format!("nats://x@127.0.0.1:{}/", nats.server.port())).await;
    let cut = format!("nats://{}", proxy.url.split_once('@').unwrap().1.trim_end_matches('/'));
    let first = crate::support::hand::host_at(&bed, &cut, &hand).await.work_with::<work::Sum>(config());
    let first = first.start().await.unwrap();
    let maker = host(&bed, &nats, &hand).await.start().await.unwrap();
    let ctx = maker.ctx();
    let job = ctx.job.work.sum.create(&ctx.nats, number(7)).await.unwrap();
    until("a first try", SOON, async || calls.load(Ordering::Relaxed) == 1).await;
    proxy.hang_open_connections();
    assert_eq!(told.recv().await.unwrap(), Cancellation::LeaseLost);
    let second = host(&bed, &nats, &hand).await.work_with::<work::Sum>(config()).start().await.unwrap();
    let ended = job.wait(SOON).await.unwrap();
    assert_eq!((ended.state, ended.tries, ended.result().unwrap()), (JobState::Completed, 2, Some(7)));
    assert_eq!(tokens(&nats, job.id().as_str()).await, ["created", "started", "started", "completed"]);
    drop(first);
    second.stop().await;
    maker.stop().await;
}
