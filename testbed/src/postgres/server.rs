//! A PostgreSQL server of this process: made by initdb in a temporary directory, run as its child.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::{Installation, Options, install};
use crate::account::{self, Account};
use crate::command::{QUICK, run};
use crate::deadline::poll;
use crate::port::start_on_a_port;
use crate::{Error, Launch, Process};

const INITDB_LIMIT: Duration = Duration::from_mins(2);
const START_LIMIT: Duration = Duration::from_mins(1);
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// The account in the database that owns everything.
pub(super) const SUPERUSER: &str = "postgres";

/// A server with its data. Dropping it stops the server and removes the data.
#[derive(Debug)]
pub(super) struct OwnServer {
    process: Option<Process>,
    installation: Installation,
    options: Options,
    account: Option<Account>,
    port: u16,
    directory: TempDir,
}

impl OwnServer {
    pub(super) fn start(installation: &Installation, options: Options) -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("trellis-postgres-").tempdir();
        let directory = directory.map_err(Error::io("make a temporary directory"))?;
        let account = account::instead_of_root()?;
        if let Some(account) = &account {
            account.own(directory.path())?;
        }
        let installation = installation.clone();
        let mut server = Self { process: None, installation, options, account, port: 0, directory };
        server.make_programs_reachable()?;
        server.make_data()?;
        start_on_a_port(server.options.port, |port| server.start_on(port))?;
        Ok(server)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.directory.path().join("postgres.log")
    }

    pub(super) fn stop(&mut self) -> Result<(), Error> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let asked =
            run(self.command("pg_ctl").args(["stop", "-W", "-m", "fast", "-D"]).arg(self.data()), QUICK);
        if asked.is_ok() && process.wait_timeout(STOP_LIMIT)?.is_some() {
            return Ok(());
        }
        process.kill_hard()
    }

    pub(super) fn kill(&mut self) -> Result<(), Error> {
        self.process.take().map_or(Ok(()), |mut process| process.kill_hard())
    }

    pub(super) fn restart(&mut self) -> Result<(), Error> {
        self.stop()?;
        // After a kill, the children of the old server need a moment to notice; until then a new one refuses to start.
        let started = poll(START_LIMIT, || match self.start_on(self.port) {
            Err(Error::NotStarted { log, .. }) if log.contains("pre-existing shared memory block") => {
                Ok(None)
            }
            done => done.map(Some),
        })?;
        started.ok_or_else(|| Error::OutOfTime {
            name: "postgres".into(),
            awaited: "the end of the server that was killed".into(),
            limit: START_LIMIT,
            log: String::new(),
        })
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn sockets(&self) -> PathBuf {
        self.directory.path().join("sockets")
    }

    /// A program of the installation, under the account that may run it.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.installation.program(program));
        command.current_dir(self.directory.path());
        if let Some(account) = &self.account {
            account.apply(&mut command);
        }
        command
    }

    /// The cache may be under /root, where no other account can go: then the programs come along.
    fn make_programs_reachable(&mut self) -> Result<(), Error> {
        let Err(unreachable) = run(self.command("postgres").arg("--version"), QUICK) else { return Ok(()) };
        let Some(wheel) = install::wheel_of(&self.installation.bin_dir) else { return Err(unreachable) };
        let copy = self.directory.path().join("programs");
        copy_tree(wheel, &copy)?;
        self.installation.bin_dir = install::in_wheel(&copy);
        run(self.command("postgres").arg("--version"), QUICK).map(drop)
    }

    fn make_data(&self) -> Result<(), Error> {
        let mut initdb = self.command("initdb");
        initdb.args([
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--username",
            SUPERUSER,
            "-D",
        ]);
        run(initdb.arg(self.data()), INITDB_LIMIT)?;

        let sockets = self.sockets();
        fs::create_dir(&sockets).map_err(Error::writing(&sockets))?;
        self.account.as_ref().map_or(Ok(()), |account| account.own(&sockets))
    }

    fn start_on(&mut self, port: u16) -> Result<(), Error> {
        let sockets = if cfg!(unix) { self.sockets().display().to_string() } else { String::new() };
        let mut process = Launch::new(self.installation.program("postgres"), self.log())
            .arg("-D")
            .arg(self.data())
            .args(self.options.args(port, &sockets))
            .current_dir(self.directory.path())
            .account(self.account.as_ref())
            .ended_by("INT")
            .start()?;

        let pid_file = self.data().join("postmaster.pid");
        process.wait_until_ready(START_LIMIT, "could not bind", |pid| says_ready(&pid_file, pid))?;
        self.process = Some(process);
        self.port = port;
        Ok(())
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // Nobody is left to hear of an error; the process is killed when its handle is dropped.
        drop(self.stop());
    }
}

/// Whether the server's own file says that this process is ready; that is where `pg_ctl` looks, too.
fn says_ready(pid_file: &Path, pid: u32) -> bool {
    fs::read_to_string(pid_file).is_ok_and(|text| is_ready(&text, pid))
}

fn is_ready(pid_file: &str, pid: u32) -> bool {
    let mut lines = pid_file.lines().map(str::trim);
    lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir(to).map_err(Error::writing(to))?;
    for entry in fs::read_dir(from).map_err(Error::reading(from))? {
        let entry = entry.map_err(Error::reading(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_tree(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(Error::reading(&source))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_ready;

    const READY: &str = "4711\n/tmp/data\n1790000000\n20005\n/tmp/sockets\n127.0.0.1\n  1234 5\nready   \n";

    #[test]
    fn a_server_is_ready_when_its_own_file_says_so() {
        assert!(is_ready(READY, 4711));
        assert!(!is_ready(&READY.replace("ready   ", "starting"), 4711));
        assert!(!is_ready("4711\n/tmp/data\n", 4711));
    }

    #[test]
    fn the_file_of_a_killed_server_says_nothing_about_the_next_one() {
        assert!(!is_ready(READY, 4712));
    }
}
