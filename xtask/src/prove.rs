//! `cargo xtask prove`: the long proofs, or a slice of them.

use std::process::Command;

use testbed::postgres::Options;

use crate::Outcome;
use crate::cargo::{cargo, passed_on};
use crate::servers::Servers;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which proof; all without it
    pub(crate) name: Option<String>,
    /// Only as much as fits into a minute
    #[arg(long)]
    pub(crate) slice: bool,
    /// Repeat the run that printed this seed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let servers = Servers::both(Options::default())?;
    Ok(passed_on(command(args, &servers).status()?))
}

/// The command that runs the proofs on these servers.
pub(crate) fn command(args: &Args, servers: &Servers) -> Command {
    let mut prove = cargo(["run", "--package", "trellis-prove", "--"]);
    prove.args(&args.name).args(args.slice.then_some("--slice"));
    if let Some(seed) = args.seed {
        prove.arg("--seed").arg(seed.to_string());
    }
    prove.envs(servers.variables());
    prove
}
