//! `cargo xtask test`: unit tests, tests on real servers, doc tests and what the compiler says.

use testbed::postgres::Options;

use crate::Outcome;
use crate::cargo::cargo;
use crate::servers::Servers;
use crate::steps::Steps;

/// Tests at once: most of their time they wait for servers, so more than there are cores.
const THREADS: &str = "6";

/// What `--all-targets` means, without the benchmarks.
const TARGETS: [&str; 4] = ["--lib", "--bins", "--tests", "--examples"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only tests whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let mut steps = Steps::default();
    if let Some(servers) = steps.start_servers(Options::for_tests()) {
        run_steps(&mut steps, &servers, args.filter.as_deref())?;
    }
    Ok(steps.report())
}

/// Runs the test steps as part of a longer list.
pub(crate) fn run_steps(steps: &mut Steps, servers: &Servers, filter: Option<&str>) -> std::io::Result<()> {
    let threads = std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| THREADS.to_owned());
    for (name, args) in step_arguments() {
        let mut tests = cargo(args);
        tests.args(filter).envs(servers.variables()).env("RUST_TEST_THREADS", &threads);
        steps.run(name, &mut tests)?;
    }
    Ok(())
}

fn step_arguments() -> [(&'static str, Vec<&'static str>); 3] {
    let test = ["test", "--no-fail-fast"];
    let all = [&test[..], &["--workspace", "--exclude", "ui-tests"], &TARGETS].concat();
    let doc = [&test[..], &["--workspace", "--doc"]].concat();
    let ui = [&test[..], &["--package", "ui-tests"]].concat();
    [("tests", all), ("doc tests", doc), ("ui tests", ui)]
}
