//! `prove jobs`: two workers on one queue, killed, frozen, stopped, under a server that is killed.
//!
//! Every job ends, its effect is there once, and its tries are counted as the rules say.
mod books;
mod plan;
mod run;
pub(crate) mod stage;
mod thaw;
pub(crate) mod worker;

use orders_demo::Error;
use serde::Serialize;

use crate::result;
use books::Books;
use plan::Plan;

pub(crate) use worker::{NATS, run as work};

#[derive(Serialize)]
struct Proof {
    name: &'static str,
    /// Repeats the jobs, the moves and the pauses between them.
    seed: u64,
    holds: bool,
    nats_server: String,
    trellis: &'static str,
    seconds: f64,
    ack_wait_ms: u128,
    /// A frozen owner thaws and sends nothing, its successor dies, and the job still runs.
    thaw: thaw::Outcome,
    /// Workers that ended by themselves: one job kills its process in every try.
    revived: usize,
    moves: Vec<String>,
    books: Books,
}

pub(crate) async fn prove(seed: u64, slice: bool) -> Result<bool, Error> {
    let plan = Plan::new(seed, slice);
    println!("prove jobs: seed {seed}, {} jobs, {} moves", plan.tasks.len(), plan.moves.len());
    let thaw = thaw::run().await?;
    println!("{thaw}");
    let mut proof = run::run(&plan).await?;
    (proof.seed, proof.thaw) = (seed, thaw);
    proof.holds &= proof.thaw.holds;
    println!("{}", proof.books);
    println!("prove jobs: {} (seed {seed})", if proof.holds { "holds" } else { "FAILED" });
    if !slice {
        result::write("jobs", &proof)?;
    }
    Ok(proof.holds)
}
