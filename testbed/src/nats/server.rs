//! A running nats-server: started, stopped, killed, started again on the same port and store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::{NatsBinary, Options, probe};
use crate::port::start_on_a_port;
use crate::{Error, Launch, Process};

const START_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A nats-server on 127.0.0.1. Dropping it kills the server and removes its directory.
#[derive(Debug)]
pub struct Server {
    process: Option<Process>,
    binary: NatsBinary,
    options: Options,
    name: String,
    port: u16,
    directory: TempDir,
    start_limit: Duration,
}

impl Server {
    /// Starts a server and waits until it, and its JetStream, answer.
    pub fn start(binary: &NatsBinary, options: Options) -> Result<Self, Error> {
        let mut server = Self::prepare(binary, options, START_LIMIT)?;
        start_on_a_port(server.options.port, |port| server.start_on(port))?;
        Ok(server)
    }

    /// A server that has its name and its directory, but does not run.
    pub(super) fn prepare(
        binary: &NatsBinary,
        options: Options,
        start_limit: Duration,
    ) -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("trellis-nats-").tempdir();
        let directory = directory.map_err(Error::io("make a temporary directory"))?;
        let (binary, name) = (binary.clone(), unique_name());
        Ok(Self { process: None, binary, options, name, port: 0, directory, start_limit })
    }

    /// The name by which it goes in a cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The port that it listens on, also after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// The program that is run.
    pub fn binary(&self) -> &NatsBinary {
        &self.binary
    }

    /// Where JetStream keeps its files.
    pub fn store_dir(&self) -> PathBuf {
        self.options.store_dir.clone().unwrap_or_else(|| self.directory.path().join("store"))
    }

    /// The file with the server's log, of all its runs.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("nats-server.log")
    }

    /// Stops it in good order; after a limit it is killed.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.process.take().map_or(Ok(()), |mut process| process.stop(STOP_LIMIT))
    }

    /// Kills it (SIGKILL): what it has not written is lost.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.process.take().map_or(Ok(()), |mut process| process.kill_hard())
    }

    /// Starts it again on the same port and store; stops it first if it runs.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.restart_with(|_| ())
    }

    /// Starts it again with changed options; what they leave open (port, store) stays the same.
    pub fn restart_with(&mut self, change: impl FnOnce(&mut Options)) -> Result<(), Error> {
        self.stop()?;
        change(&mut self.options);
        self.start_on(self.options.port.unwrap_or(self.port))
    }

    /// Starts it again with another program (an upgrade or a downgrade of the server).
    pub fn restart_as(&mut self, binary: &NatsBinary) -> Result<(), Error> {
        self.binary = binary.clone();
        self.restart()
    }

    /// Makes it stand still (SIGSTOP): connections stay open, nothing is answered. Unix only.
    pub fn suspend(&mut self) -> Result<(), Error> {
        self.process.as_mut().map_or(Ok(()), Process::suspend)
    }

    /// Lets it go on after [`suspend`](Self::suspend). Unix only.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.process.as_mut().map_or(Ok(()), Process::resume)
    }

    /// Whether its process runs, be it suspended.
    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Starts its process, which is not ready yet.
    pub(super) fn launch_on(&mut self, port: u16) -> Result<(), Error> {
        let config = self.directory.path().join("nats-server.conf");
        let text = self.options.config(&self.name, port, &self.store_dir());
        fs::write(&config, text).map_err(Error::writing(&config))?;
        self.process = Some(launch(&self.binary.path, &config, &self.log()).start()?);
        self.port = port;
        Ok(())
    }

    /// Waits until it, and its JetStream, answer; one that does not is ended.
    pub(super) fn wait_until_ready(&mut self) -> Result<(), Error> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        process.wait_until_ready(self.start_limit, "bind:", |_| {
            probe::is_ready(&self.name, self.port, self.options.jetstream)
        })?;
        self.process = Some(process);
        Ok(())
    }

    fn start_on(&mut self, port: u16) -> Result<(), Error> {
        self.launch_on(port)?;
        self.wait_until_ready()
    }
}

fn launch(program: &Path, config: &Path, log: &Path) -> Launch {
    Launch::new(program, log).arg("--config").arg(config)
}

/// Unlike that of any other server, in this process or another.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("testbed-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
