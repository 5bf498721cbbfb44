//! The example on real servers: its services as processes that can be killed and started again.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use testbed::{Launch, Process, nats, postgres};

use crate::binaries::Binaries;
use crate::database::{Database, Kind};
use crate::role::Role;
use crate::{Error, Seen};

/// How long a service may take to start and to stop.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Files of the stage.
const ORDERS: &str = "orders.jsonl";
const CATALOGUE: &str = "catalogue.json";
const MAILS: &str = "mails.jsonl";

/// What a process says when everything in it runs.
const READY: &str = "running until asked to end";
/// What the mail server says before its address.
const ADDRESS: &str = "address=";

/// How the services are run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The pause after each line.
    pub pause: Duration,
    /// How long a killed process keeps the rows it was sending. Whole seconds.
    pub lease: Duration,
    /// How long a killed process keeps the events and jobs it was at. Whole seconds.
    pub ack_wait: Duration,
    /// The longest time that the mail server takes for a mail.
    pub slowest_mail: Duration,
    /// Decides about the moods of the mail server.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pause: Duration::from_millis(4),
            lease: Duration::from_secs(4),
            ack_wait: Duration::from_secs(2),
            slowest_mail: Duration::from_millis(60),
            seed: 20,
        }
    }
}

/// A server, two databases, the processes of the example. Dropped, all of it ends.
#[derive(Debug)]
pub struct Stage {
    // Dropped in this order: the processes before what they use.
    processes: BTreeMap<Role, Process>,
    server: nats::Server,
    _cluster: Option<postgres::Cluster>,
    binaries: Binaries,
    settings: Settings,
    urls: [String; 2],
    directory: TempDir,
}

impl Stage {
    /// Start a NATS server, make two databases, write the input. No process of the example runs yet.
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
        fs::write(directory.path().join(ORDERS), orders)?;
        fs::write(directory.path().join(CATALOGUE), catalogue)?;
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
        let processes = BTreeMap::new();
        Ok(Self { processes, server, _cluster: cluster, binaries, settings, urls, directory })
    }

    /// Start a process, without waiting until it is ready; its id.
    ///
    /// # Errors
    /// The program cannot be started, or the mail server, which mailing needs, was not ready before.
    pub fn start(&mut self, role: Role) -> Result<u32, Error> {
        let process = self.launch(role)?.start()?;
        let pid = process.pid();
        self.processes.insert(role, process);
        Ok(pid)
    }

    /// Wait until a process that was started says that it is ready.
    ///
    /// # Errors
    /// It ended, or is not ready in time.
    pub fn wait_until_ready(&mut self, role: Role) -> Result<(), Error> {
        Ok(self.running(role)?.wait_until_printed(READY, START_LIMIT)?)
    }

    /// Kill a process (SIGKILL); the id that it had.
    ///
    /// # Errors
    /// It had ended before by itself, which it must not.
    pub fn kill(&mut self, role: Role) -> Result<u32, Error> {
        self.check(role)?;
        let process = self.running(role)?;
        let pid = process.pid();
        process.kill_hard()?;
        self.processes.remove(&role);
        Ok(pid)
    }

    /// Ask a process to end (SIGTERM), and wait until it has.
    ///
    /// # Errors
    /// It does not end in time, or not with success.
    pub fn stop(&mut self, role: Role) -> Result<(), Error> {
        self.check(role)?;
        let process = self.running(role)?;
        process.terminate()?;
        match process.wait_timeout(STOP_LIMIT)? {
            // Where there is no way to ask, it was killed.
            Some(status) if status.success() || !cfg!(unix) => {
                self.processes.remove(&role);
                Ok(())
            }
            Some(status) => Err(format!("the {} process was told to stop: {status}", role.name()).into()),
            None => Err(format!("the {} process does not stop", role.name()).into()),
        }
    }

    /// Check that a process still runs.
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

    /// Read the books from both databases, both streams and the file of the mail server.
    ///
    /// # Errors
    /// One of them does not answer, or cannot be read.
    pub async fn read(&self) -> Result<Seen, Error> {
        let (orders, stock) = (self.database(Role::Placing).await?, self.database(Role::Handling).await?);
        let mails = fs::read_to_string(self.file(MAILS))?;
        let seen = Seen::read(&orders, &stock, &self.server.url(), &mails).await;
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
        Ok(fs::write(self.file(ORDERS), orders)?)
    }

    /// Where the NATS server is.
    pub fn nats_url(&self) -> String {
        self.server.url()
    }

    /// The version of the NATS server.
    pub fn nats_version(&self) -> String {
        self.server.binary().version.to_string()
    }

    /// How the services are run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The file with everything that a process has printed.
    pub fn log(&self, role: Role) -> PathBuf {
        self.file(&format!("{}.log", role.name().replace(' ', "-")))
    }

    /// Leave the directory with databases and logs behind; where it is.
    pub fn keep(&mut self) -> &Path {
        self.directory.disable_cleanup(true);
        self.directory.path()
    }

    fn launch(&self, role: Role) -> Result<Launch, Error> {
        let Settings { pause, lease, ack_wait, slowest_mail, seed } = &self.settings;
        let Binaries { orders, stock, receipts, mail_server } = &self.binaries;
        let ms = |time: &Duration| time.as_millis().to_string();
        let seconds = |time: &Duration| time.as_secs().to_string();
        let launch = |program| Launch::new(program, self.log(role)).env("RUST_LOG", "info");
        let service =
            |program| launch(program).env("DATABASE_URL", self.url(role)).env("NATS_URL", self.server.url());
        Ok(match role {
            Role::MailServer => launch(mail_server)
                .args(["--listen", "127.0.0.1:0", "--seed", &seed.to_string()])
                .args(["--slowest-ms", &ms(slowest_mail)])
                .arg("--mails")
                .arg(self.file(MAILS)),
            Role::Placing => service(orders)
                .arg("--catalogue")
                .arg(self.file(CATALOGUE))
                .arg("--orders")
                .arg(self.file(ORDERS))
                .args(["--pause-ms", &ms(pause), "--lease-seconds", &seconds(lease)]),
            Role::Handling => service(stock)
                .arg("--catalogue")
                .arg(self.file(CATALOGUE))
                .args(["--ack-wait-seconds", &seconds(ack_wait)]),
            Role::Mailing => service(receipts).args(["--mail-server", &self.mail_address()?]).args([
                "--ack-wait-seconds",
                &seconds(ack_wait),
                "--lease-seconds",
                &seconds(lease),
            ]),
        })
    }

    /// Where the mail server listens, as it says itself.
    fn mail_address(&self) -> Result<String, Error> {
        let printed = self.processes.get(&Role::MailServer).map(Process::printed).unwrap_or_default();
        let address = printed.split_once(ADDRESS).and_then(|(_, rest)| rest.split_whitespace().next());
        Ok(address.ok_or("the mail server has not said where it listens")?.to_owned())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn url(&self, role: Role) -> &str {
        let [orders, stock] = &self.urls;
        if role == Role::Handling { stock } else { orders }
    }

    fn running(&mut self, role: Role) -> Result<&mut Process, Error> {
        self.processes.get_mut(&role).ok_or_else(|| format!("no {} process was started", role.name()).into())
    }
}
