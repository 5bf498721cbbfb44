//! `prove kill`: SIGKILL of the placing, the handling or the mailing process at random points, on both
//! databases.
//!
//! Nothing is lost, no effect is doubled, no row is stuck beyond its lease, no job is left behind.
mod input;
mod plan;
mod run;

use orders_demo::{Binaries, Error, Kind};
use serde::Serialize;

use crate::result;
use plan::Plan;
use run::DatabaseResult;

/// Kills for each database.
const KILLS: usize = 30;
const KILLS_OF_A_SLICE: usize = 3;

#[derive(Serialize)]
struct Proof {
    name: &'static str,
    /// Repeats the victims, the pauses before their kills, and the moods of the mail server.
    seed: u64,
    holds: bool,
    versions: Versions,
    databases: Vec<DatabaseResult>,
}

#[derive(Serialize)]
struct Versions {
    trellis: &'static str,
    nats_server: String,
}

pub(crate) async fn prove(seed: u64, slice: bool) -> Result<bool, Error> {
    let kills = if slice { KILLS_OF_A_SLICE } else { KILLS };
    println!("prove kill: seed {seed}, {kills} kills for each database");
    let binaries = Binaries::build()?;
    let mut proof = Proof {
        name: "kill",
        seed,
        holds: true,
        versions: Versions { trellis: env!("CARGO_PKG_VERSION"), nats_server: String::new() },
        databases: Vec::new(),
    };
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let plan = Plan::new(seed, kind, kills, slice);
        let (nats_server, result) = run::run(kind, &binaries, &plan, seed).await?;
        proof.holds &= result.holds();
        proof.versions.nats_server = nats_server;
        proof.databases.push(result);
    }
    println!("prove kill: {} (seed {seed})", if proof.holds { "holds" } else { "FAILED" });
    if !slice {
        result::write("kill", &proof)?;
    }
    Ok(proof.holds)
}
