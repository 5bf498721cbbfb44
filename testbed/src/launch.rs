//! How a process is to be started: program, arguments, environment, log.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::account::Account;
use crate::command::{QUICK, run};
use crate::{Error, Process, programs, spawner};

/// A process to be: what to run, with what, and where its output goes.
#[derive(Debug, Clone)]
pub struct Launch {
    program: OsString,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    current_dir: Option<PathBuf>,
    log: PathBuf,
    account: Option<Account>,
    ended_by: &'static str,
}

impl Launch {
    /// Runs `program`, both outputs appended to the file `log`.
    pub fn new(program: impl AsRef<OsStr>, log: impl Into<PathBuf>) -> Self {
        Self {
            program: program.as_ref().into(),
            args: Vec::new(),
            envs: Vec::new(),
            current_dir: None,
            log: log.into(),
            account: None,
            ended_by: "KILL",
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().into()));
        self
    }

    /// Sets a variable of the environment; the others are inherited.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Starts in the directory instead of in this process's own.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(directory.into());
        self
    }

    /// Runs under another account.
    pub(crate) fn account(mut self, account: Option<&Account>) -> Self {
        self.account = account.cloned();
        self
    }

    /// The signal that it gets when this process has died, where the system can do that.
    pub(crate) fn ended_by(mut self, signal: &'static str) -> Self {
        self.ended_by = signal;
        self
    }

    /// Starts the process.
    pub fn start(self) -> Result<Process, Error> {
        let name =
            Path::new(&self.program).file_stem().unwrap_or(&self.program).to_string_lossy().into_owned();
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(Error::writing(&self.log))?;
        let error_output = output.try_clone().map_err(Error::writing(&self.log))?;
        let log_start = fs::metadata(&self.log).map_err(Error::reading(&self.log))?.len();

        let mut command = self.command()?;
        command.stdin(Stdio::null()).stdout(output).stderr(error_output);
        let child = spawner::spawn(command).map_err(Error::io(format!("start {name}")))?;
        Ok(Process::new(name, child, self.log, log_start))
    }

    fn command(&self) -> Result<Command, Error> {
        let mut command = match ender() {
            Some(setpriv) => {
                self.check_program()?;
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", self.ended_by, "--"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(&self.args).envs(self.envs.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.current_dir {
            command.current_dir(directory);
        }
        if let Some(account) = &self.account {
            account.apply(&mut command);
        }
        Ok(command)
    }

    /// A missing program would otherwise be seen only in the log of `setpriv`.
    fn check_program(&self) -> Result<(), Error> {
        let path = Path::new(&self.program);
        let named = path.components().count() == 1;
        let exists = if named {
            !programs::on_path(&self.program.to_string_lossy()).is_empty()
        } else {
            path.exists()
        };
        if exists {
            return Ok(());
        }
        Err(Error::io(format!("start `{}`", path.display()))(std::io::ErrorKind::NotFound.into()))
    }
}

/// The `setpriv` that makes the kernel end a child with its parent, where there is one that can.
fn ender() -> Option<&'static Path> {
    static ENDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let able = |setpriv: &PathBuf| {
            run(Command::new(setpriv).args(["--pdeathsig", "KILL", "--", "true"]), QUICK).is_ok()
        };
        programs::on_path("setpriv").into_iter().find(able)
    };
    ENDER.get_or_init(find).as_deref()
}
