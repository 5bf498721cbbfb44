//! `cargo xtask demo`: the orders example from end to end.

use std::ffi::OsString;

use testbed::postgres::Options;

use crate::Outcome;
use crate::cargo::{cargo, passed_on};
use crate::servers::Servers;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Keep the state in PostgreSQL instead of SQLite
    #[arg(long)]
    postgres: bool,
    /// Arguments for the example
    #[arg(last = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let servers = if args.postgres { Servers::both(Options::default()) } else { Servers::nats_only() }?;
    let mut demo = cargo(["run", "--quiet", "--package", "orders-demo", "--"]);
    demo.args(args.postgres.then_some("--postgres")).args(&args.args);
    Ok(passed_on(demo.envs(servers.variables()).status()?))
}
