//! The example on real servers: both services as processes that can be killed and started again.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use testbed::{Launch, Process, nats, postgres};

use crate::binaries::Binaries;
use crate::database::{Database, Kind};
use crate::{Error, Seen};

/// How long a service may take to start and to stop.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// What a service says when its dispatcher and its groups run.
const READY: &str = "running until asked to end";

/// One of the two services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Places orders.
    Placing,
    /// Handles their events.
    Handling,
}

impl Role {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Placing, Self::Handling];

    /// In a sentence: the … process.
    pub fn name(self) -> &'static str {
        match self {
            Self::Placing => "placing",
            Self::Handling => "handling",
        }
    }
}

/// How the services are run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The pause after each line.
    pub pause: Duration,
    /// How long a killed placing process keeps the rows it was sending. Whole seconds.
    pub lease: Duration,
    /// How long a killed handling process keeps the events it was handling. Whole seconds.
    pub ack_wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pause: Duration::from_millis(6),
            lease: Duration::from_secs(4),
            ack_wait: Duration::from_secs(2),
        }
    }
}

/// A server, two databases, two services. Dropped, all of it ends.
#[derive(Debug)]
pub struct Stage {
    // Dropped in this order: the processes before what they use.
    placing: Option<Process>,
    handling: Option<Process>,
    server: nats::Server,
    _cluster: Option<postgres::Cluster>,
    binaries: Binaries,
    settings: Settings,
    urls: [String; 2],
    directory: TempDir,
}

impl Stage {
    /// Start a NATS server, make two databases, write the input. No service runs yet.
    ///
    /// # Errors
    /// No server can be found or fetched or started.
    pub fn set_up(
        kind: Kind,
        binaries: Binaries,
        (orders, catalogue): (&str, &str),
        settings: Settings,
    ) -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("trellis-orders-").tempdir()?;
        fs::write(directory.path().join("orders.jsonl"), orders)?;
        fs::write(directory.path().join("catalogue.json"), catalogue)?;
        let server = nats::Server::start(&nats::find()?, nats::Options::default())?;
        let (cluster, urls) = match kind {
            Kind::Sqlite => {
                let file = |name: &str| format!("sqlite:{}", directory.path().join(name).display());
                (None, [file("orders.db"), file("stock.db")])
            }
            Kind::Postgres => {
                let found = postgres::find_or_install()?;
                let cluster = postgres::Cluster::start(&found, postgres::Options::default())?;
                let urls = [cluster.fresh_database()?, cluster.fresh_database()?];
                (Some(cluster), urls)
            }
        };
        Ok(Self {
            placing: None,
            handling: None,
            server,
            _cluster: cluster,
            binaries,
            settings,
            urls,
            directory,
        })
    }

    /// Start a service, without waiting until it is ready; the id of its process.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(&mut self, role: Role) -> Result<u32, Error> {
        let process = self.launch(role).start()?;
        let pid = process.pid();
        *self.slot(role) = Some(process);
        Ok(pid)
    }

    /// Wait until a service that was started says that it is ready.
    ///
    /// # Errors
    /// It ended, or is not ready in time.
    pub fn wait_until_ready(&mut self, role: Role) -> Result<(), Error> {
        Ok(self.running(role)?.wait_until_printed(READY, START_LIMIT)?)
    }

    /// Kill a service (SIGKILL); the id that its process had.
    ///
    /// # Errors
    /// It had ended before by itself, which it must not.
    pub fn kill(&mut self, role: Role) -> Result<u32, Error> {
        self.check(role)?;
        let process = self.running(role)?;
        let pid = process.pid();
        process.kill_hard()?;
        *self.slot(role) = None;
        Ok(pid)
    }

    /// Ask a service to end (SIGTERM), and wait until it has.
    ///
    /// # Errors
    /// It does not end in time, or not with success.
    pub fn stop(&mut self, role: Role) -> Result<(), Error> {
        self.check(role)?;
        let process = self.running(role)?;
        process.terminate()?;
        match process.wait_timeout(STOP_LIMIT)? {
            Some(status) if status.success() => {
                *self.slot(role) = None;
                Ok(())
            }
            Some(status) => Err(format!("the {} process was told to stop: {status}", role.name()).into()),
            None => Err(format!("the {} process does not stop", role.name()).into()),
        }
    }

    /// Check that a service still runs.
    ///
    /// # Errors
    /// It has ended by itself; the message has the end of its log.
    pub fn check(&mut self, role: Role) -> Result<(), Error> {
        let process = self.running(role)?;
        match process.exit_status()? {
            None => Ok(()),
            Some(status) => {
                let printed = process.printed();
                let last: Vec<&str> = printed.lines().rev().take(10).collect();
                let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
                Err(format!("the {} process ended by itself ({status}):\n{last}", role.name()).into())
            }
        }
    }

    /// Connect to the database of a service that has been ready once.
    ///
    /// # Errors
    /// There is none.
    pub async fn database(&self, role: Role) -> Result<Database, Error> {
        Ok(Database::open(self.url(role)).await?)
    }

    /// Read the books from both databases and the stream.
    ///
    /// # Errors
    /// One of them does not answer.
    pub async fn read(&self) -> Result<Seen, Error> {
        let (orders, stock) = (self.database(Role::Placing).await?, self.database(Role::Handling).await?);
        let seen = Seen::read(&orders, &stock, &self.server.url()).await;
        orders.close().await;
        stock.close().await;
        seen
    }

    /// Change the pause after each line, from the next start of the placing process on.
    pub fn set_pause(&mut self, pause: Duration) {
        self.settings.pause = pause;
    }

    /// Change the orders, from the next start of the placing process on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_orders(&self, orders: &str) -> Result<(), Error> {
        Ok(fs::write(self.directory.path().join("orders.jsonl"), orders)?)
    }

    /// The version of the NATS server.
    pub fn nats_version(&self) -> String {
        self.server.binary().version.to_string()
    }

    /// How the services are run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The file with everything that a service has printed.
    pub fn log(&self, role: Role) -> PathBuf {
        self.directory.path().join(format!("{}.log", role.name()))
    }

    /// Leave the directory with databases and logs behind; where it is.
    pub fn keep(&mut self) -> &Path {
        self.directory.disable_cleanup(true);
        self.directory.path()
    }

    fn launch(&self, role: Role) -> Launch {
        let program = match role {
            Role::Placing => &self.binaries.orders,
            Role::Handling => &self.binaries.stock,
        };
        let input = |name: &str| self.directory.path().join(name);
        let launch = Launch::new(program, self.log(role))
            .env("RUST_LOG", "info")
            .env("DATABASE_URL", self.url(role))
            .env("NATS_URL", self.server.url())
            .arg("--catalogue")
            .arg(input("catalogue.json"));
        match role {
            Role::Placing => launch
                .arg("--orders")
                .arg(input("orders.jsonl"))
                .args(["--pause-ms", &self.settings.pause.as_millis().to_string()])
                .args(["--lease-seconds", &self.settings.lease.as_secs().to_string()]),
            Role::Handling => {
                launch.args(["--ack-wait-seconds", &self.settings.ack_wait.as_secs().to_string()])
            }
        }
    }

    fn url(&self, role: Role) -> &str {
        let [orders, stock] = &self.urls;
        match role {
            Role::Placing => orders,
            Role::Handling => stock,
        }
    }

    fn slot(&mut self, role: Role) -> &mut Option<Process> {
        match role {
            Role::Placing => &mut self.placing,
            Role::Handling => &mut self.handling,
        }
    }

    fn running(&mut self, role: Role) -> Result<&mut Process, Error> {
        self.slot(role).as_mut().ok_or_else(|| format!("no {} process was started", role.name()).into())
    }
}
