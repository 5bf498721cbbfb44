//! What is measured, alike for every queue.

use std::time::{Duration, Instant};

use serde::Serialize;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::Result;
use crate::clock::now;
use crate::peer::{Peer, Workers};

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// The pause before a job that finds its queue idle, in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 5..15;
/// What the makers of both queues use as their default, or twice that.
const CONNECTIONS: u32 = 20;

/// Jobs that are enqueued by one call.
const BULK: usize = 1_000;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Jobs of the backlog.
    pub(crate) jobs: usize,
    /// Jobs that find the queue idle.
    pub(crate) samples: usize,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    jobs: usize,
    /// Enqueued together, per second.
    enqueue_per_s: f64,
    /// Done per second: from the start of the workers until no job of the backlog is left.
    process_per_s: f64,
    /// Idle: from the call that enqueues until the handler is entered.
    pickup: Pickup,
}

/// Latencies in microseconds.
#[derive(Debug, Serialize)]
struct Pickup {
    samples: usize,
    p50_us: f64,
    p99_us: f64,
}

/// One run. The idle queue comes first: nothing is in its tables then.
pub(crate) async fn measure<P: Peer>(url: &str, settings: P::Settings, sizes: Sizes) -> Result<Figures> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?;
    let mut peer = P::prepare(&pool, settings).await?;
    let pickup = pickup(&mut peer, &pool, sizes.samples).await?;

    let start = now();
    for bulk in bulks(sizes.jobs) {
        peer.enqueue_bulk(bulk).await?;
    }
    let enqueued = start.elapsed();
    settle(&pool).await?;
    let done = backlog(&mut peer, &pool, sizes.jobs).await?;
    Ok(Figures {
        jobs: sizes.jobs,
        enqueue_per_s: rate(sizes.jobs, enqueued),
        process_per_s: rate(sizes.jobs, done),
        pickup,
    })
}

async fn pickup<P: Peer>(peer: &mut P, pool: &PgPool, samples: usize) -> Result<Pickup> {
    let (handled, mut entered) = unbounded_channel();
    let running = start_workers(peer.workers(handled).await?);
    // The first one waits for connections and listeners.
    peer.enqueue().await?;
    next(&mut entered).await?;

    let mut latencies = Vec::with_capacity(samples);
    for _ in 0..samples {
        sleep(Duration::from_millis(rand::random_range(PAUSE_MS))).await;
        let called = now();
        peer.enqueue().await?;
        latencies.push(next(&mut entered).await?.saturating_duration_since(called));
    }
    finish::<P>(running, pool, &mut entered).await?;
    latencies.sort_unstable();
    Ok(Pickup { samples, p50_us: quantile(&latencies, 0.50)?, p99_us: quantile(&latencies, 0.99)? })
}

/// How long it takes from the start of the workers until no job is left.
async fn backlog<P: Peer>(peer: &mut P, pool: &PgPool, jobs: usize) -> Result<Duration> {
    let (handled, mut entered) = unbounded_channel();
    let workers = peer.workers(handled).await?;
    let start = now();
    let running = start_workers(workers);
    for _ in 0..jobs {
        next(&mut entered).await?;
    }
    until_nothing_is_left::<P>(pool).await?;
    let took = start.elapsed();
    finish::<P>(running, pool, &mut entered).await?;
    Ok(took)
}

/// Workers that have been started.
struct Running {
    task: JoinHandle<Result<()>>,
    stop: Box<dyn Fn() -> Result<()>>,
}

fn start_workers(workers: Workers) -> Running {
    Running { task: tokio::spawn(workers.run), stop: workers.stop }
}

/// As many jobs in portions of [`BULK`] at most.
fn bulks(jobs: usize) -> impl Iterator<Item = usize> {
    (0..jobs).step_by(BULK).map(move |begun| BULK.min(jobs - begun))
}

async fn next(entered: &mut UnboundedReceiver<Instant>) -> Result<Instant> {
    let received = timeout(LIMIT, entered.recv()).await.map_err(|_| "a job was not handled in time")?;
    received.ok_or_else(|| "the workers ended early".into())
}

async fn until_nothing_is_left<P: Peer>(pool: &PgPool) -> Result<()> {
    let start = now();
    while left::<P>(pool).await? > 0 {
        if start.elapsed() > LIMIT {
            return Err("jobs were handled and not marked as done".into());
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// Stops the workers; nothing may be left then, and no job may have been handled a second time.
async fn finish<P: Peer>(
    running: Running,
    pool: &PgPool,
    entered: &mut UnboundedReceiver<Instant>,
) -> Result<()> {
    (running.stop)()?;
    timeout(LIMIT, running.task).await.map_err(|_| "the workers did not stop in time")???;
    match (left::<P>(pool).await?, entered.try_recv()) {
        (0, Err(_)) => Ok(()),
        (0, Ok(_)) => Err("a job was handled twice".into()),
        (left, _) => Err(format!("{left} jobs are left").into()),
    }
}

async fn left<P: Peer>(pool: &PgPool) -> Result<i64> {
    Ok(sqlx::query_scalar(P::LEFT).fetch_one(pool).await?)
}

/// Makes tables of bulk-loaded rows look as if they had been in use for a while.
async fn settle(pool: &PgPool) -> Result<()> {
    for sql in ["VACUUM ANALYZE", "CHECKPOINT"] {
        sqlx::query(sql).execute(pool).await?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn rate(jobs: usize, took: Duration) -> f64 {
    jobs as f64 / took.as_secs_f64()
}

/// The smallest latency that this share of all does not exceed, in microseconds.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "far below 2^52, and a share is positive"
)]
fn quantile(sorted: &[Duration], share: f64) -> Result<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    let latency = sorted.get(rank.saturating_sub(1)).ok_or("no latency was measured")?;
    Ok(latency.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bulks, quantile};

    #[test]
    fn bulks_are_all_jobs() {
        assert_eq!(bulks(2_500).collect::<Vec<_>>(), [1_000, 1_000, 500]);
        assert_eq!(bulks(1_000).collect::<Vec<_>>(), [1_000]);
    }

    #[test]
    fn a_quantile_is_one_of_the_samples() {
        let sorted: Vec<Duration> = (1..=300).map(Duration::from_micros).collect();
        assert!((quantile(&sorted, 0.50).unwrap() - 150.0).abs() < 1e-6);
        assert!((quantile(&sorted, 0.99).unwrap() - 297.0).abs() < 1e-6);
        assert!(quantile(&[], 0.5).is_err());
    }
}
