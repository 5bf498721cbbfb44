//! The server goes away, forgets, is silent: work goes on, and readiness tells meanwhile.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use futures_util::StreamExt;
use testbed::Stopwatch;
use testbed::nats::{Cluster, Options, find};
use trellis::JobError;
use trellis_runtime::{JobRetention, JobState, StreamConfig, WorkerConfig};

use crate::support::hand::{Hand, SOON, host, number, quick, tokens, work};
use crate::support::nats::{Nats, connect};
use crate::support::{Bed, until};

type Db = sqlx::Sqlite;

/// The longest that nothing may happen after the server is back.
const MINUTE: Duration = Duration::from_secs(60);

fn sleepy(ms: u64) -> Hand<Db> {
    Hand::sum(move |_, job| async move {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(job.payload.number)
    })
}

/// While idle, while pulling, while appending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_at_any_moment_loses_no_job() {
    let (bed, mut nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let host = host(&bed, &nats, &sleepy(2)).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let mut jobs = Vec::new();
    for round in 0..4_u64 {
        if round > 0 {
            for each in 0..150 {
                jobs.push(ctx.job.work.sum.create(&ctx.nats, number(round * 1000 + each)).await.unwrap());
            }
        }
        tokio::time::sleep(Duration::from_millis(30 * round)).await;
        nats.server.kill().unwrap();
        if round == 2 {
            until("told", SOON, async || !host.health().is_ready()).await;
        }
        nats.server.restart().unwrap();
        until("ready again", MINUTE, async || host.health().is_ready()).await;
    }
    for job in &jobs {
        let ended = job.wait(MINUTE).await.unwrap();
        assert_eq!(ended.state, JobState::Completed, "{:?}", tokens(&nats, job.id().as_str()).await);
    }
    host.stop().await;
}

/// A consumer that somebody removed is made again, at the oldest job that is open; what has ended is not run again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_consumer_begins_at_the_oldest_open_job() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let hand = Hand::<Db>::sum(move |_, job| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(job.payload.number) }
    });
    let maker = host(&bed, &nats, &hand).await.start().await.unwrap();
    let first = host(&bed, &nats, &hand).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ctx = maker.ctx();
    for each in 0..20 {
        ctx.job.work.sum.create(&ctx.nats, number(each)).await.unwrap().wait(SOON).await.unwrap();
    }
    first.stop().await;
    let open = ctx.job.work.sum.create(&ctx.nats, number(20)).await.unwrap();
    let stream = nats.context.get_stream("TRELLIS_JOBS").await.unwrap();
    stream.delete_consumer("test-work--work-sum").await.unwrap();
    let second = host(&bed, &nats, &hand).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    assert_eq!(open.wait(SOON).await.unwrap().state, JobState::Completed);
    let info = stream.consumer_info("test-work--work-sum").await.unwrap();
    assert_eq!(info.delivered.consumer_sequence, 1, "what has ended was not even delivered");

    // Under a worker that runs.
    stream.delete_consumer("test-work--work-sum").await.unwrap();
    let next = ctx.job.work.sum.create(&ctx.nats, number(21)).await.unwrap();
    assert_eq!(next.wait(MINUTE).await.unwrap().state, JobState::Completed);
    assert_eq!(calls.load(Ordering::Relaxed), 22);
    until("ready", SOON, async || second.health().is_ready()).await;
    second.stop().await;
    maker.stop().await;
}

/// A delivery that a stranger acknowledged would leave its job open for ever: it gets another one. A
/// job at work, or one that waits for its retry, gets none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_job_without_a_delivery_gets_one() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let maker =
        host(&bed, &nats, &Hand::default()).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    maker.stop().await;
    let ctx = maker.ctx();
    let lost = ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap();
    let stream = nats.context.get_stream("TRELLIS_JOBS").await.unwrap();
    let consumer: PullConsumer = stream.get_consumer("test-work--work-sum").await.unwrap();
    let message = consumer.fetch().max_messages(1).messages().await.unwrap().next().await.unwrap().unwrap();
    message.double_ack().await.unwrap();

    let config = WorkerConfig { upkeep_every: Duration::from_millis(300), ..quick() };
    let host = host(&bed, &nats, &sleepy(1500)).await.work_with::<work::Sum>(config).start().await.unwrap();
    let at_work = ctx.job.work.sum.create(&ctx.nats, number(2)).await.unwrap();
    assert_eq!(lost.wait(SOON).await.unwrap().state, JobState::Completed);
    assert_eq!(at_work.wait(SOON).await.unwrap().state, JobState::Completed);
    assert_eq!(tokens(&nats, lost.id().as_str()).await, ["created", "ready", "started", "completed"]);
    assert_eq!(tokens(&nats, at_work.id().as_str()).await, ["created", "started", "completed"]);
    host.stop().await;
}

/// Ended jobs go when their time is over, the oldest first beyond the count; open ones stay, and so
/// does a redrive that came while its job was about to go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_jobs_go_and_open_ones_stay() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let hand = Hand::<Db>::sum(|_, job| async move {
        match job.payload.number {
            0 => std::future::pending().await,
            1 => Err(JobError::fail("no")),
            number => Ok(number),
        }
    });
    let kept = |at_least, at_most, count| WorkerConfig {
        retention: JobRetention { at_least, at_most, count },
        upkeep_every: Duration::from_millis(200),
        ..quick()
    };
    let config = trellis_runtime::OutboxConfig {
        job_horizon: Duration::from_secs(1),
        lease: Duration::from_millis(200),
        ack_timeout: Duration::from_millis(50),
        ..Default::default()
    };
    let outbox = trellis_runtime::SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    let start = async |worker: WorkerConfig| {
        let builder = trellis_runtime::Host::builder(hand.clone(), outbox.clone());
        let builder = builder.client(connect(nats.server.url()).await).work_with::<work::Sum>(worker);
        builder.stop_timeout(Duration::from_millis(100)).start().await.unwrap()
    };
    let hour = Duration::from_secs(3600);
    let second = Duration::from_secs(1);
    let first = start(kept(second, hour, 3)).await;
    let ctx = first.ctx();
    let open = ctx.job.work.sum.create(&ctx.nats, number(0)).await.unwrap();
    let mut jobs = Vec::new();
    for each in 1..=6 {
        let job = ctx.job.work.sum.create(&ctx.nats, number(each)).await.unwrap();
        job.wait(SOON).await.unwrap();
        jobs.push(job);
    }
    until("only three are kept", SOON, async || {
        let mut there = 0;
        for job in &jobs {
            there += usize::from(job.get().await.unwrap().is_some());
        }
        there == 3
    })
    .await;
    assert!(
        jobs[5].get().await.unwrap().is_some() && jobs[0].get().await.unwrap().is_none(),
        "the oldest go"
    );
    first.stop().await;

    let next = start(kept(second, second, 100)).await;
    let failed = ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap();
    for _ in 0..5 {
        // Either it is gone already, or it begins anew and is not cut in two.
        match failed.redrive("again").await {
            Ok(_) => {
                if let Ok(ended) = failed.wait(SOON).await {
                    assert_eq!(ended.state, JobState::Failed);
                }
            }
            Err(error) => {
                assert!(error.to_string().contains("no job") || error.to_string().contains("is "), "{error}");
            }
        }
    }
    until("all ended are gone", SOON, async || {
        failed.get().await.unwrap().is_none() && jobs[5].get().await.unwrap().is_none()
    })
    .await;
    assert!(open.get().await.unwrap().unwrap().state.is_open(), "it never ended");
    next.stop().await;
}

/// Upkeep takes turns: two instances do not do it twice as often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_instance_at_a_time_looks_after_a_queue() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let config = || WorkerConfig { upkeep_every: Duration::from_millis(800), ..quick() };
    let mut hosts = Vec::new();
    for _ in 0..3 {
        hosts.push(
            host(&bed, &nats, &Hand::default()).await.work_with::<work::Sum>(config()).start().await.unwrap(),
        );
    }
    let mut made = nats.client.subscribe("$JS.EVENT.ADVISORY.CONSUMER.CREATED.TRELLIS_JOBS.>").await.unwrap();
    let counting = async {
        let mut count = 0;
        while let Some(message) = made.next().await {
            count += usize::from(message.subject.ends_with("--upkeep"));
            if count > 30 {
                break;
            }
        }
        count
    };
    let mut count = 0;
    tokio::select! {
        all = counting => count = all,
        () = tokio::time::sleep(Duration::from_secs(4)) => {}
    }
    assert!(count <= 30, "three instances make one pass each interval, not {count} in four seconds");
    for host in hosts {
        host.stop().await;
    }
}

/// B-61: a server that is silent is noticed while jobs wait, and afterwards work goes on at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_server_makes_a_worker_unready() {
    let (bed, mut nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let host = host(&bed, &nats, &sleepy(1)).await.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    ctx.job.work.sum.create(&ctx.nats, number(1)).await.unwrap().wait(SOON).await.unwrap();
    nats.server.suspend().unwrap();
    until("unready", SOON, async || {
        host.health().problems.iter().any(|problem| problem.contains("gets no jobs"))
    })
    .await;
    nats.server.resume().unwrap();
    let job = ctx.job.work.sum.create(&ctx.nats, number(2)).await.unwrap();
    assert_eq!(job.wait(MINUTE).await.unwrap().state, JobState::Completed);
    until("ready", MINUTE, async || host.health().is_ready()).await;
    host.stop().await;
}

/// Three replicas, and the leader of the log is killed while jobs are created and run: none is lost,
/// and no minute passes in silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_three_dies_and_work_goes_on() {
    let bed = Bed::<Db>::new(4).await;
    let mut cluster =
        tokio::task::spawn_blocking(|| Cluster::start(&find().unwrap(), &Options::default()).unwrap())
            .await
            .unwrap();
    let urls = cluster.urls().join(",");
    let options = async_nats::ConnectOptions::new()
        .reconnect_delay_callback(|_| Duration::from_millis(50))
        .retry_on_initial_connect();
    let builder = trellis_runtime::Host::builder(sleepy(3), bed.outbox()).connect_with(options, urls);
    let builder = builder.streams(StreamConfig { replicas: 3, ..StreamConfig::default() });
    let host = builder.work_with::<work::Sum>(quick()).start().await.unwrap();
    let ctx = host.ctx();
    let (mut jobs, mut longest) = (Vec::new(), Duration::ZERO);
    for round in 0..3_u64 {
        for each in 0..60 {
            let creating = Stopwatch::start();
            // An id makes it safe to repeat what is not known to be stored.
            let id = format!("job-{round}-{each}");
            let job = loop {
                match ctx.job.work.sum.create(&ctx.nats, number(round * 100 + each)).id(id.clone()).await {
                    Ok(job) => break job,
                    Err(error) => assert!(creating.elapsed() < MINUTE, "{error}"),
                }
            };
            longest = longest.max(creating.elapsed());
            jobs.push(job);
            if each == 20 && round > 0 {
                let leader = cluster.leader_of_stream("TRELLIS_JOBS").unwrap();
                cluster.node_mut(&leader).unwrap().kill().unwrap();
            }
        }
        if round > 0 {
            let cluster = &mut cluster;
            tokio::task::block_in_place(|| cluster.restart().unwrap());
        }
    }
    for job in &jobs {
        let ended = job.wait(MINUTE).await.unwrap();
        assert_eq!(ended.state, JobState::Completed, "{ended:?}");
    }
    assert!(longest < MINUTE, "{longest:?}");
    until("ready", MINUTE, async || host.health().is_ready()).await;
    host.stop().await;
}
