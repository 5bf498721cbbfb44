//! Other job queues on PostgreSQL: a program of its own, outside of the workspace, so that nobody
//! builds them who does not run this.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use testbed::Launch;
use tokio::process::Command;

use crate::Result;
use crate::setting::Setting;

/// The peers, by the names under which they are reported: each with the settings that its users would
/// begin with, and once more with the one that gives most.
pub(crate) const NAMES: [&str; 4] = ["apalis", "apalis_tuned", "graphile_worker", "graphile_worker_tuned"];

/// Far longer than one run takes.
const LIMIT: Duration = Duration::from_mins(5);
const PROGRAM: &str = "trellis-bench-peers";

/// The program, built.
#[derive(Debug)]
pub(crate) struct Peers {
    program: PathBuf,
}

/// What one run of one peer printed.
#[derive(Debug, Deserialize)]
pub(crate) struct Figures {
    settings: String,
    versions: BTreeMap<String, String>,
    durability: BTreeMap<String, String>,
    jobs: u32,
    pub(crate) enqueue_per_s: f64,
    pub(crate) process_per_s: f64,
    pub(crate) pickup: Pickup,
}

/// Latencies in microseconds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Pickup {
    samples: u32,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Peers {
    /// Build the program, in a folder of its own beside what this was built into.
    pub(crate) async fn build() -> Result<Self> {
        let this = std::env::current_exe()?;
        let target = this.ancestors().nth(2).ok_or("this program is in no target directory")?.join("peers");
        eprintln!("building the peers in {}: minutes, the first time", target.display());
        let built = build_command(&target).status().await?;
        if !built.success() {
            return Err(format!("the peers could not be built: {built}").into());
        }
        let program = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
        Ok(Self { program: target.join("release").join(program) })
    }

    /// Run one peer in a database of its own. It ends with this program at the latest.
    pub(crate) fn run(&self, setting: &Setting, peer: &str, jobs: u32, samples: u32) -> Result<Figures> {
        let logs = tempfile::tempdir()?;
        let launch = Launch::new(&self.program, logs.path().join(peer)).arg(setting.target(peer)?.postgres);
        let mut process = launch.arg(peer).args([jobs, samples].map(|n| n.to_string())).start()?;
        let ended = process.wait_timeout(LIMIT)?.ok_or_else(|| format!("{peer} did not end in time"))?;
        let printed = process.printed();
        if !ended.success() {
            return Err(format!("{peer}: {ended}:\n{printed}").into());
        }
        let figures: Figures = serde_json::from_str(printed.lines().last().unwrap_or_default())?;
        if (figures.jobs, figures.pickup.samples) != (jobs, samples) {
            return Err(format!("{peer} was asked for {jobs} jobs and {samples} samples: {figures:?}").into());
        }
        Ok(figures)
    }
}

impl Figures {
    /// What a reader of the figures has to know.
    pub(crate) fn about(&self) -> String {
        let listed = |pairs: &BTreeMap<String, String>, between: &str| {
            let pairs = pairs.iter().map(|(name, value)| format!("{name}{between}{value}"));
            pairs.collect::<Vec<_>>().join(", ")
        };
        let (versions, durability) = (listed(&self.versions, " "), listed(&self.durability, "="));
        format!("{versions}: {}; {durability}", self.settings)
    }
}

fn build_command(target: &Path) -> Command {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join("Cargo.toml");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(manifest);
    cargo.arg("--target-dir").arg(target);
    // Set by cargo for this program: some build scripts run again when they change, and all above them is
    // built again.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|of| name.to_string_lossy().starts_with(of)) {
            cargo.env_remove(name);
        }
    }
    cargo
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn what_a_peer_prints_is_read() {
        let printed = r#"{"settings":"batch_size 100","versions":{"apalis":"1.0.0","apalis-postgres":"1.0.0"},
            "durability":{"fsync":"on","synchronous_commit":"on"},"jobs":2000,"enqueue_per_s":70000.5,
            "process_per_s":12000.5,"pickup":{"samples":300,"p50_us":1700.5,"p99_us":6600.5}}"#;
        let figures: Figures = serde_json::from_str(printed).unwrap();
        assert_eq!(
            figures.about(),
            "apalis 1.0.0, apalis-postgres 1.0.0: batch_size 100; fsync=on, synchronous_commit=on"
        );
    }
}
