//! `cargo xtask ci`: everything that must hold before a change lands.

use testbed::postgres::Options;

use crate::cargo::cargo;
use crate::steps::Steps;
use crate::{Outcome, prove, test};

const CLIPPY: [&str; 6] = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];

pub(crate) fn run() -> Outcome {
    let mut steps = Steps::default();
    steps.run("fmt", &mut cargo(["fmt", "--all", "--check"]))?;
    steps.run("clippy", &mut cargo(CLIPPY))?;

    if let Some(servers) = steps.start_servers(Options::for_tests()) {
        test::run_steps(&mut steps, &servers, None)?;
        for proof in ["kill", "jobs", "memory"] {
            let slice = prove::Args { name: Some(proof.into()), slice: true, seed: None };
            steps.run(&format!("prove {proof} --slice"), &mut prove::command(&slice, &servers))?;
        }
    }

    let mut doc = cargo(["doc", "--workspace", "--no-deps"]);
    steps.run("doc", doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(steps.report())
}
