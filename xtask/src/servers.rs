//! The servers that a command gives to what it runs, and how it tells them.

use std::ffi::OsString;

use testbed::nats::{self, NatsBinary};
use testbed::postgres::{self, Cluster, Options};

/// A nats-server to be started by whoever needs one, and a PostgreSQL that runs as long as this lives.
pub(crate) struct Servers {
    nats: NatsBinary,
    cluster: Option<Cluster>,
}

impl Servers {
    /// Finds or fetches the nats-server.
    pub(crate) fn nats_only() -> Result<Self, testbed::Error> {
        let nats = nats::find()?;
        eprintln!("xtask: nats-server {} is {}", nats.version, nats.path.display());
        Ok(Self { nats, cluster: None })
    }

    /// Finds or fetches both and starts the PostgreSQL, if it does not run already.
    pub(crate) fn both(options: Options) -> Result<Self, testbed::Error> {
        let servers = Self::nats_only()?;
        let cluster = Cluster::start(&postgres::find_or_install()?, options)?;
        let whose = if cluster.pid().is_some() { "started for this run" } else { "the one that was named" };
        eprintln!("xtask: PostgreSQL {} is {whose}", version_of(&cluster)?);
        Ok(Self { cluster: Some(cluster), ..servers })
    }

    /// The variables by which tests, examples and benchmarks find the servers.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let nats = (nats::VARIABLE, self.nats.path.clone().into_os_string());
        let postgres = self.cluster.as_ref().map(|cluster| (postgres::VARIABLE, cluster.admin_url().into()));
        std::iter::once(nats).chain(postgres).collect()
    }
}

fn version_of(cluster: &Cluster) -> Result<String, testbed::Error> {
    Ok(cluster.query("postgres", "SHOW server_version")?.trim().to_string())
}
