//! The account that runs what refuses to run as root.

use std::path::Path;
use std::process::Command;

use crate::Error;
use crate::command::{QUICK, run};

/// An account of this machine without privileges.
#[derive(Debug, Clone)]
#[cfg_attr(not(unix), allow(dead_code, reason = "only unix has such accounts"))]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

/// The account to use instead of root: `postgres` where it exists, else `nobody`. `None` when this is not root.
pub(crate) fn instead_of_root() -> Result<Option<Account>, Error> {
    if !cfg!(unix) || id(&["-u"])? != 0 {
        return Ok(None);
    }
    let account = |name: &str| Ok(Account { uid: id(&["-u", name])?, gid: id(&["-g", name])? });
    account("postgres").or_else(|_: Error| account("nobody")).map(Some)
}

fn id(args: &[&str]) -> Result<u32, Error> {
    let printed = run(Command::new("id").args(args), QUICK)?;
    printed.trim().parse().map_err(|_| Error::Command {
        command: format!("id {}", args.join(" ")),
        outcome: "no number printed".into(),
        output: printed,
    })
}

#[cfg(unix)]
impl Account {
    /// Lets the command run under this account.
    pub(crate) fn apply(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt;
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives the file or directory to this account.
    pub(crate) fn own(&self, path: &Path) -> Result<(), Error> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid)).map_err(Error::writing(path))
    }
}

#[cfg(not(unix))]
#[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "the signatures that they have on unix")]
impl Account {
    /// Other systems have no such account: there is never one to apply.
    pub(crate) fn apply(&self, _command: &mut Command) {}

    /// Other systems have no such account: there is nothing to give.
    pub(crate) fn own(&self, _path: &Path) -> Result<(), Error> {
        Ok(())
    }
}
