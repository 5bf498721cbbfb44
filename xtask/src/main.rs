//! The project's commands: `cargo xtask --help` lists them.

mod bench;
mod cargo;
mod ci;
mod counts;
mod demo;
mod prove;
mod servers;
mod steps;
mod test;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

/// How a command ends: with the exit code of what it ran, or before that with an error.
type Outcome = Result<ExitCode, Box<dyn Error>>;

#[derive(Parser)]
#[command(about = "The project's commands", disable_help_subcommand = true)]
enum Command {
    /// Run all tests on a real nats-server and a real PostgreSQL
    Test(test::Args),
    /// Run the orders example from end to end
    Demo(demo::Args),
    /// Measure against raw baselines
    Bench(bench::Args),
    /// Run the long proofs: chaos, crashes, soak
    Prove(prove::Args),
    /// Run everything that must hold before a change lands
    Ci,
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Test(args) => test::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Ci => ci::run(),
    };
    outcome.unwrap_or_else(|error| {
        print_error(&*error);
        ExitCode::FAILURE
    })
}

fn print_error(error: &dyn Error) {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
}
