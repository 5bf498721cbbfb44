//! Where a run happens: its servers, its scratch directory, how long it may take.

use async_nats::jetstream::{self, context::ContextBuilder};
use std::time::Duration;
use testbed::{nats, postgres};

use crate::database::{Dialect, Target};
use crate::{Result, stream};

/// The servers of this run and what they are asked to do.
pub(crate) struct Setting {
    pub(crate) quick: bool,
    nats: nats::Server,
    cluster: postgres::Cluster,
    scratch: tempfile::TempDir,
    load_before: String,
}

/// What a reader of the figures has to know.
pub(crate) struct Facts {
    pub(crate) machine: Vec<(&'static str, String)>,
    pub(crate) versions: Vec<(&'static str, String)>,
    pub(crate) durability: Vec<(&'static str, String)>,
    /// Other products in the same run: their versions, settings and durability.
    pub(crate) peers: Vec<(&'static str, String)>,
}

impl Setting {
    pub(crate) async fn start(quick: bool) -> Result<Self> {
        let load_before = load();
        let nats = nats::Server::start(&nats::find()?, nats::Options::default())?;
        let cluster = postgres::Cluster::start(&postgres::find_or_install()?, postgres::Options::default())?;
        let scratch = tempfile::Builder::new().prefix("trellis-bench-").tempdir()?;
        let setting = Self { quick, nats, cluster, scratch, load_before };
        stream::keep_one(&setting.jetstream().await?).await?;
        Ok(setting)
    }

    /// Rounds of each contest, an odd number.
    pub(crate) fn rounds(&self) -> u32 {
        if self.quick { 3 } else { 5 }
    }

    /// Where the NATS server listens.
    pub(crate) fn nats_url(&self) -> String {
        self.nats.url()
    }

    /// A connection as a service makes it.
    pub(crate) async fn client(&self) -> Result<async_nats::Client> {
        Ok(async_nats::connect(self.nats.url()).await?)
    }

    /// A connection of its own with all its limits out of the way, as a hand-written loop tunes it.
    pub(crate) async fn jetstream(&self) -> Result<jetstream::Context> {
        let client = async_nats::ConnectOptions::new().client_capacity(4096).connect(self.nats.url()).await?;
        Ok(ContextBuilder::new().max_ack_inflight(20_000).timeout(Duration::from_secs(30)).build(client))
    }

    /// Where a fresh database of the name may be made.
    pub(crate) fn target(&self, name: &str) -> Result<Target> {
        Ok(Target {
            postgres: self.cluster.fresh_database()?,
            sqlite: self.scratch.path().join(format!("{name}.db")),
        })
    }

    pub(crate) async fn facts(&self) -> Result<Facts> {
        let postgres =
            |sql: &str| Ok::<_, testbed::Error>(self.cluster.query("postgres", sql)?.trim().to_owned());
        let sqlite = <sqlx::Sqlite as Dialect>::version(&self.target("version")?).await?;
        let commit = format!(
            "fsync={}, synchronous_commit={}",
            postgres("SHOW fsync")?,
            postgres("SHOW synchronous_commit")?
        );
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        Ok(Facts {
            machine: vec![
                ("cores", cores.to_string()),
                ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
                ("load before and after", format!("{} and {}", self.load_before, load())),
            ],
            versions: vec![
                ("trellis-runtime", env!("CARGO_PKG_VERSION").to_owned()),
                ("nats-server", self.client().await?.server_info().version),
                ("PostgreSQL", postgres("SHOW server_version")?),
                ("SQLite", sqlite),
            ],
            durability: vec![
                (
                    "JetStream",
                    "file storage, sync_interval 2m (the server's default): acknowledged before it is on disk"
                        .to_owned(),
                ),
                ("PostgreSQL", commit),
                ("SQLite FULL", "WAL, synchronous=FULL".to_owned()),
                ("SQLite NORMAL", "WAL, synchronous=NORMAL".to_owned()),
            ],
            peers: Vec::new(),
        })
    }
}

/// The load averages of the machine, where the system tells them.
fn load() -> String {
    let told = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    told.split_whitespace().next().unwrap_or("unknown").to_owned()
}
