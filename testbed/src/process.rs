//! A running child that can be stopped, suspended and killed, and that never outlives its owner.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use crate::Error;
use crate::command::last_lines;
use crate::deadline::poll;
use crate::signal::{self, Signal};

/// A child process, started by [`Launch::start`](crate::Launch::start). Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    log_start: u64,
}

impl Process {
    pub(crate) fn new(name: String, child: Child, log: PathBuf, log_start: u64) -> Self {
        Self { name, child, log, log_start }
    }

    /// The id of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file with both of its outputs.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// What this process has printed so far, without what earlier ones printed into the same file.
    pub fn printed(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut bytes = Vec::new();
            let mut file = File::open(&self.log)?;
            file.seek(SeekFrom::Start(self.log_start))?;
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_else(|error| format!("(no log: {error})"))
    }

    /// Its exit status, if it has ended.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::io(format!("wait for {}", self.name)))
    }

    /// Waits for its end; `None` says that it still runs after the limit.
    pub fn wait_timeout(&mut self, limit: Duration) -> Result<Option<ExitStatus>, Error> {
        poll(limit, || self.exit_status())
    }

    /// Waits until it has printed `text`; its end before that is an error.
    pub fn wait_until_printed(&mut self, text: &str, limit: Duration) -> Result<(), Error> {
        let seen = poll(limit, || {
            let ended = self.exit_status()?.is_some();
            if self.printed().contains(text) { Ok(Some(true)) } else { Ok(ended.then_some(false)) }
        })?;
        if seen == Some(true) {
            return Ok(());
        }
        Err(Error::OutOfTime {
            name: self.name.clone(),
            awaited: format!("`{text}`"),
            limit,
            log: self.last_printed(),
        })
    }

    /// Asks it to end (SIGTERM) and returns at once. Windows has no such request: it is killed there.
    pub fn terminate(&mut self) -> Result<(), Error> {
        if self.exit_status()?.is_some() {
            return Ok(());
        }
        if !cfg!(unix) {
            return self.kill_hard();
        }
        signal::send(Signal::Terminate, self.pid())?;
        self.resume() // one that stands still could not answer
    }

    /// Asks it to end, waits, and kills it when it has not ended after the limit.
    pub fn stop(&mut self, limit: Duration) -> Result<(), Error> {
        self.terminate()?;
        if self.wait_timeout(limit)?.is_some() {
            return Ok(());
        }
        self.kill_hard()
    }

    /// Kills it (SIGKILL) and waits for its end: it has no chance to finish anything.
    pub fn kill_hard(&mut self) -> Result<(), Error> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(Error::io(format!("kill {}", self.name)))
    }

    /// Makes it stand still (SIGSTOP): alive and connected, but silent. Unix only.
    pub fn suspend(&mut self) -> Result<(), Error> {
        signal::send(Signal::Stop, self.pid())
    }

    /// Lets it go on after [`suspend`](Self::suspend). Unix only.
    pub fn resume(&mut self) -> Result<(), Error> {
        signal::send(Signal::Continue, self.pid())
    }

    /// Waits until the server that it is says yes; `taken` is what it prints when somebody else has its port.
    pub(crate) fn wait_until_ready(
        &mut self,
        limit: Duration,
        taken: &str,
        is_ready: impl Fn(u32) -> bool,
    ) -> Result<(), Error> {
        let outcome = poll(limit, || match self.exit_status()? {
            Some(status) => Ok(Some(Err(format!("it ended with {status}")))),
            None => Ok(is_ready(self.pid()).then_some(Ok(()))),
        })?;
        let reason = match outcome {
            Some(Ok(())) => return Ok(()),
            Some(Err(ended)) => ended,
            None => format!("not ready within {limit:?}"),
        };
        let log = self.last_printed();
        if log.contains(taken) {
            return Err(Error::Port { reason: format!("{} found its port taken:\n{log}", self.name) });
        }
        Err(Error::NotStarted { name: self.name.clone(), reason, log })
    }

    fn last_printed(&self) -> String {
        last_lines(&self.printed(), 20)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nobody is left to hear of an error, and a process that has ended already is what was wanted.
        drop(self.kill_hard());
    }
}
