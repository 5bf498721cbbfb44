//! Other job queues on PostgreSQL, measured as `cargo xtask bench jobs` measures ours: one run of one
//! queue in an empty database, its figures as one line of JSON.
mod apalis;
mod clock;
mod contest;
mod facts;
mod graphile;
mod payload;
mod peer;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use crate::apalis::Apalis;
use crate::contest::Sizes;
use crate::facts::Report;
use crate::graphile::Graphile;
use crate::peer::Peer;

/// What everything here may fail with: whatever it is, the run ends and prints it.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: trellis-bench-peers URL-OF-AN-EMPTY-DATABASE PEER JOBS SAMPLES";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, peer, jobs, samples] = args.as_slice() else { return Err(USAGE.into()) };
    let sizes = Sizes { jobs: jobs.parse()?, samples: samples.parse()? };
    let apalis = apalis::Settings { batch_size: 100, concurrency: 64 };
    let graphile = graphile::Settings { local_queue: 500, concurrency: 16, batch_delay: None };
    match peer.as_str() {
        "apalis" => measured::<Apalis>(url, apalis, sizes).await,
        "apalis_tuned" => {
            measured::<Apalis>(url, apalis::Settings { batch_size: 1_000, ..apalis }, sizes).await
        }
        "graphile_worker" => measured::<Graphile>(url, graphile, sizes).await,
        "graphile_worker_tuned" => {
            let batch_delay = Some(Duration::from_millis(5));
            measured::<Graphile>(url, graphile::Settings { batch_delay, ..graphile }, sizes).await
        }
        _ => Err(USAGE.into()),
    }
}

async fn measured<P: Peer>(url: &str, settings: P::Settings, sizes: Sizes) -> Result<String> {
    let figures = contest::measure::<P>(url, settings, sizes).await?;
    Ok(serde_json::to_string(&Report::new::<P>(settings, figures, url).await?)?)
}
