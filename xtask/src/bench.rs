//! `cargo xtask bench`: ours and the raw baseline in one run.

use std::path::PathBuf;

use testbed::postgres::Options;

use crate::Outcome;
use crate::cargo::{cargo, passed_on};
use crate::servers::Servers;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which benchmark; all without it
    name: Option<String>,
    /// Write the result here as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure for less than a minute
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let servers = Servers::both(Options::default())?;
    let mut bench = cargo(["run", "--release", "--package", "trellis-bench", "--"]);
    bench.args(&args.name).args(args.quick.then_some("--quick"));
    if let Some(file) = &args.json {
        // The child runs in the root of the workspace, which need not be where this was called.
        bench.arg("--json").arg(std::path::absolute(file)?);
    }
    Ok(passed_on(bench.envs(servers.variables()).status()?))
}
