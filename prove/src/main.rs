//! `cargo xtask prove`: the long proofs. Each prints its seed and writes its result to `docs/proofs/`.
mod jobs;
mod kill;
mod memory;
mod result;

use std::process::ExitCode;

use clap::Parser;
use orders_demo::Error;

#[derive(Parser)]
#[command(about = "Run the long proofs, or a slice of them")]
struct Args {
    /// Which proof; all without it
    #[arg(value_enum)]
    name: Option<Proof>,
    /// Only as much as fits into a minute; writes no result
    #[arg(long)]
    slice: bool,
    /// Repeat the run that printed this seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Proof {
    /// SIGKILL of the placing or the handling process at random points
    Kill,
    /// Two workers on 20,000 jobs, killed, frozen and stopped
    Jobs,
    /// 500,000 jobs through one worker process
    Memory,
}

#[tokio::main]
async fn main() -> ExitCode {
    if let Ok(nats) = std::env::var(jobs::NATS) {
        return work(&nats).await;
    }
    tracing_subscriber::fmt().with_env_filter("warn").with_writer(std::io::stderr).init();
    match run(&Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<bool, Error> {
    // Small enough for every reader of JSON.
    let seed = args.seed.unwrap_or_else(|| rand::random::<u32>().into());
    let mut holds = true;
    if matches!(args.name, None | Some(Proof::Kill)) {
        holds &= kill::prove(seed, args.slice).await?;
    }
    if matches!(args.name, None | Some(Proof::Jobs)) {
        holds &= jobs::prove(seed, args.slice).await?;
    }
    if matches!(args.name, None | Some(Proof::Memory)) {
        holds &= memory::prove(args.slice).await?;
    }
    Ok(holds)
}

/// This process is one of the workers that a proof has started.
async fn work(nats: &str) -> ExitCode {
    tracing_subscriber::fmt().with_env_filter("info").with_ansi(false).init();
    match jobs::work(nats).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = &*error, "a worker ends");
            ExitCode::FAILURE
        }
    }
}
