//! `prove memory`: 500,000 jobs through one worker process, whose memory stays flat; and what a kept
//! job costs the server.
mod rss;

use std::time::Duration;

use futures_util::StreamExt;
use orders_demo::Error;
use serde::Serialize;
use testbed::Stopwatch;
use trellis_runtime::Nats;

use crate::jobs::stage::{Settings, Stage};
use crate::jobs::worker::work::{JOB, Noop};
use crate::result;

/// Jobs of a proof and of a slice, and those that warm the worker up.
const JOBS: u64 = 500_000;
const JOBS_OF_A_SLICE: u64 = 20_000;
const WARM_UP: u64 = 10_000;
/// How much the worker's memory may grow or shrink after the warm-up.
const FLAT_MIB: f64 = 10.0;
/// Jobs created at once.
const CREATING: usize = 256;
/// Jobs that may wait for the worker, so that it is the worker's pace that counts.
const BACKLOG: u64 = 2_000;
/// Jobs between two lines of output.
const TELL_EVERY: u64 = 10_000;
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long nothing may happen.
const STANDSTILL: Duration = Duration::from_secs(30);

#[derive(Serialize)]
struct Proof {
    name: &'static str,
    holds: bool,
    trellis: &'static str,
    nats_server: String,
    jobs: u64,
    seconds: f64,
    jobs_per_second: f64,
    /// Resident memory of the worker process after the warm-up, and its extremes since then, in MiB.
    worker_after_warm_up_mib: f64,
    worker_lowest_mib: f64,
    worker_highest_mib: f64,
    flat_within_mib: f64,
    /// Resident memory of the NATS server before and after, all jobs kept, in MiB.
    server_before_mib: f64,
    server_after_mib: f64,
    server_bytes_per_kept_job: f64,
    messages_kept: u64,
}

pub(crate) async fn prove(slice: bool) -> Result<bool, Error> {
    let jobs = if slice { JOBS_OF_A_SLICE } else { JOBS };
    println!("prove memory: {jobs} jobs");
    let mut stage = Stage::set_up(Settings { ack_wait: Duration::from_secs(30), concurrency: 64 }).await?;
    stage.start(0)?;
    let worker = stage.worker(0)?.pid();
    let server = stage.server.pid().ok_or("the NATS server is not ours to measure")?;
    let nats = stage.nats();
    run(&stage, &nats, 0..WARM_UP, |_| Ok(())).await?;

    let (warm, server_before_mib) = (rss::mib(worker)?, rss::mib(server)?);
    let (mut lowest, mut highest, mut told) = (warm, warm, 0);
    let working = Stopwatch::start();
    run(&stage, &nats, WARM_UP..WARM_UP + jobs, |done| {
        let now = rss::mib(worker)?;
        (lowest, highest) = (lowest.min(now), highest.max(now));
        if done >= told + TELL_EVERY {
            told = done;
            println!("{done:>7} jobs: the worker has {now:.1} MiB, the server {:.1} MiB", rss::mib(server)?);
        }
        Ok(())
    })
    .await?;
    let (seconds, server_after_mib) = (working.elapsed().as_secs_f64(), rss::mib(server)?);
    stage.stop(0)?;

    #[expect(clippy::cast_precision_loss, reason = "half a million is exact")]
    let count = jobs as f64;
    let proof = Proof {
        name: "memory",
        holds: highest - warm <= FLAT_MIB && warm - lowest <= FLAT_MIB,
        trellis: env!("CARGO_PKG_VERSION"),
        nats_server: stage.server.binary().version.to_string(),
        jobs,
        seconds,
        jobs_per_second: count / seconds,
        worker_after_warm_up_mib: warm,
        worker_lowest_mib: lowest,
        worker_highest_mib: highest,
        flat_within_mib: FLAT_MIB,
        server_before_mib,
        server_after_mib,
        server_bytes_per_kept_job: (server_after_mib - server_before_mib) * 1024.0 * 1024.0 / count,
        messages_kept: stage.messages().await?,
    };
    println!(
        "prove memory: {} ({warm:.1} MiB after the warm-up, then {lowest:.1} to {highest:.1}; {:.0} jobs/s; {:.0} bytes of the server per kept job)",
        if proof.holds { "holds" } else { "FAILED" },
        proof.jobs_per_second,
        proof.server_bytes_per_kept_job,
    );
    if !slice {
        result::write("memory", &proof)?;
    }
    Ok(proof.holds)
}

/// Create these jobs at the worker's pace, and wait until the last one is worked off.
async fn run(
    stage: &Stage,
    nats: &Nats,
    numbers: std::ops::Range<u64>,
    mut look: impl FnMut(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut next, mut standstill, mut before) = (numbers.start, Stopwatch::start(), u64::MAX);
    loop {
        let (unacknowledged, undelivered) = stage.consumer_of("prove-work--work-noop").await?;
        let open = undelivered + u64::try_from(unacknowledged)?;
        look(next - numbers.start - open.min(next - numbers.start))?;
        if next == numbers.end && open == 0 {
            return Ok(());
        }
        if (open, next) != (before, numbers.end) {
            (before, standstill) = (open, Stopwatch::start());
        }
        if standstill.elapsed() > STANDSTILL {
            return Err(format!("nothing happens any more, and {open} jobs are open").into());
        }
        let watched = Stopwatch::start();
        while watched.elapsed() < LOOK_EVERY && next < numbers.end {
            let page = (numbers.end - next).min(BACKLOG / 2);
            create(nats, next..next + page).await?;
            next += page;
            if stage.consumer_of("prove-work--work-noop").await?.1 > BACKLOG {
                break;
            }
        }
        tokio::time::sleep(LOOK_EVERY.saturating_sub(watched.elapsed()).min(Duration::from_millis(20))).await;
    }
}

async fn create(nats: &Nats, numbers: std::ops::Range<u64>) -> Result<(), Error> {
    let creating = numbers.map(|number| JOB.work.noop.create(nats, Noop { number }).into_future());
    let mut creating = futures_util::stream::iter(creating).buffer_unordered(CREATING);
    while let Some(created) = creating.next().await {
        created?;
    }
    Ok(())
}
