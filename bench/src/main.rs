//! `cargo xtask bench`: ours beside a hand-written ideal loop, in one run on one machine.
//!
//! Ratios inside a run are the dependable part, absolute figures follow whatever else the machine
//! does. Nothing here judges a figure: the exit code is 0 unless a count is wrong or a server fails.
mod case;
mod commit;
mod database;
mod jobs;
mod latencies;
mod message;
mod relay;
mod report;
mod samples;
mod setting;
mod stream;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use crate::case::Case;
use crate::setting::{Facts, Setting};

/// What everything here may fail with: whatever it is, the benchmark ends and prints it.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser)]
#[command(name = "trellis-bench", about = "Benchmarks: ours beside a hand-written ideal loop")]
struct Args {
    /// Which benchmarks; all without it
    names: Vec<Name>,
    /// Write the result here as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure for less than a minute
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Outbox to JetStream, a backlog of committed rows
    Relay,
    /// A transaction with one business row and one message
    Commit,
    /// Jobs: enqueued, worked off, picked up, beside other job queues
    Jobs,
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Commit => "commit",
            Self::Jobs => "jobs",
        }
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&*error);
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    let names = if args.names.is_empty() { Name::value_variants() } else { &args.names };
    let setting = Setting::start(args.quick).await?;
    let (mut cases, mut peers): (Vec<Case>, Vec<(&str, String)>) = Default::default();
    for name in names {
        cases.extend(match name {
            Name::Relay => Box::pin(relay::run(&setting)).await?,
            Name::Commit => Box::pin(commit::run(&setting)).await?,
            Name::Jobs => {
                let outcome = Box::pin(jobs::run(&setting)).await?;
                peers.extend(outcome.peers);
                outcome.cases
            }
        });
    }
    let names: Vec<&str> = names.iter().map(|name| name.text()).collect();
    let facts = Facts { peers, ..setting.facts().await? };
    report::print(&facts, &cases);
    match &args.json {
        Some(file) => report::write_json(file, &names.join("+"), &facts, &cases),
        None => Ok(()),
    }
}

fn print_error(error: &(dyn Error + 'static)) {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
}
