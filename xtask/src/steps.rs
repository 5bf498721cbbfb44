//! Steps that are run one after the other, all of them, and reported at the end.

use std::io;
use std::process::{Command, ExitCode};
use std::time::Duration;

use testbed::Stopwatch;
use testbed::postgres::Options;

use crate::cargo::run_counting;
use crate::counts::Counts;
use crate::print_error;
use crate::servers::Servers;

/// The steps that have run.
#[derive(Default)]
pub(crate) struct Steps(Vec<Step>);

struct Step {
    name: String,
    duration: Duration,
    succeeded: bool,
    counts: Counts,
}

impl Steps {
    /// Runs one more step. Its failure is remembered, not returned: the next ones run too.
    pub(crate) fn run(&mut self, name: &str, command: &mut Command) -> io::Result<()> {
        println!("\n==> {name}");
        let stopwatch = Stopwatch::start();
        let (status, counts) = run_counting(command)?;
        let step =
            Step { name: name.into(), duration: stopwatch.elapsed(), succeeded: status.success(), counts };
        self.0.push(step);
        Ok(())
    }

    /// Gets the servers ready as a step of its own; `None` when that failed.
    pub(crate) fn start_servers(&mut self, options: Options) -> Option<Servers> {
        println!("\n==> servers");
        let stopwatch = Stopwatch::start();
        let servers = Servers::both(options).inspect_err(|error| print_error(error)).ok();
        self.0.push(Step {
            name: "servers".into(),
            duration: stopwatch.elapsed(),
            succeeded: servers.is_some(),
            counts: Counts::default(),
        });
        servers
    }

    /// Prints every step with its duration and result, then the sum of their tests alone on the last line.
    pub(crate) fn report(&self) -> ExitCode {
        println!("\n{}", self.summary());
        if self.0.iter().all(|step| step.succeeded) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn summary(&self) -> String {
        let total = self.0.iter().map(|step| step.duration).sum();
        let sum = self.0.iter().map(Step::counts).fold(Counts::default(), Counts::plus);
        let lines = self.0.iter().map(Step::line);
        lines.chain([row("", "total", total), String::new(), sum.to_string()]).collect::<Vec<_>>().join("\n")
    }
}

impl Step {
    fn line(&self) -> String {
        let counts = self.counts();
        let tests = if counts == Counts::default() { String::new() } else { format!("  {counts}") };
        row(if self.succeeded { "ok" } else { "FAILED" }, &self.name, self.duration) + &tests
    }

    /// A step that failed before any test could fail counts as one: nobody shall read "0 failed" then.
    fn counts(&self) -> Counts {
        let unseen = u64::from(!self.succeeded && self.counts.failed == 0);
        self.counts.plus(Counts { passed: 0, failed: unseen })
    }
}

fn row(result: &str, name: &str, duration: Duration) -> String {
    format!("{result:<6}  {name:<32}  {:>7.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, seconds: u64, succeeded: bool, counts: Counts) -> Step {
        Step { name: name.into(), duration: Duration::from_secs(seconds), succeeded, counts }
    }

    #[test]
    fn every_step_is_reported_and_the_sum_comes_last() {
        let steps = Steps(vec![
            step("fmt", 1, true, Counts::default()),
            step("test", 61, false, Counts { passed: 40, failed: 2 }),
            step("doctest", 3, true, Counts { passed: 5, failed: 0 }),
        ]);
        let expected = "\
ok      fmt                                   1.0 s
FAILED  test                                 61.0 s  40 passed, 2 failed
ok      doctest                               3.0 s  5 passed, 0 failed
        total                                65.0 s

45 passed, 2 failed";
        assert_eq!(steps.summary(), expected);
    }

    #[test]
    fn a_step_that_did_not_get_to_its_tests_counts_as_a_failure() {
        let steps = Steps(vec![step("test", 1, false, Counts::default())]);
        assert!(steps.summary().ends_with("\n0 passed, 1 failed"));
    }

    #[test]
    fn a_failed_step_does_not_keep_the_next_from_running() {
        let mut steps = Steps::default();
        steps.run("fails", &mut crate::cargo::cargo(["no-such-command-here"])).unwrap();
        steps.run("works", &mut crate::cargo::cargo(["--version"])).unwrap();
        let results: Vec<bool> = steps.0.iter().map(|step| step.succeeded).collect();
        assert_eq!(results, [false, true]);
    }
}
