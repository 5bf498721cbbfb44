//! PostgreSQL programs on this machine.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{QUICK, run};
use crate::{Error, Version, programs};

/// The oldest version that is used.
pub const OLDEST: Version = Version::new(15, 0, 0);

const PROGRAM: &str = "postgres";

/// Directories of which each child may be one version, with its programs in `bin`.
const PARENTS: [&str; 6] = [
    "/usr/lib/postgresql",
    "/opt/homebrew/opt",
    "/usr/local/opt",
    "/home/linuxbrew/.linuxbrew/opt",
    "/Applications/Postgres.app/Contents/Versions",
    r"C:\Program Files\PostgreSQL",
];

/// The programs of one PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The directory with `postgres`, `initdb`, `pg_ctl` and `psql`.
    pub bin_dir: PathBuf,
    /// The version of the server.
    pub version: Version,
}

impl Installation {
    /// The installation with its programs in this directory, if it is whole and new enough.
    pub fn at(bin_dir: impl Into<PathBuf>) -> Result<Self, Error> {
        let bin_dir = bin_dir.into();
        for program in ["initdb", "pg_ctl", "psql"] {
            let path = programs::executable(&bin_dir, program);
            fs::metadata(&path).map_err(Error::reading(&path))?;
        }
        let path = programs::executable(&bin_dir, PROGRAM);
        let printed = run(Command::new(&path).arg("--version"), QUICK)?;
        match Version::parse(&printed).filter(|_| printed.contains(PROGRAM)) {
            None => Err(Error::NotTheProgram { path, program: PROGRAM }),
            Some(found) if found < OLDEST => Err(Error::TooOld { path, found, wanted: OLDEST }),
            Some(version) => Ok(Self { bin_dir, version }),
        }
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        programs::executable(&self.bin_dir, name)
    }
}

/// The first usable installation: the one on the PATH, else the newest in the usual places.
pub(super) fn find() -> Option<Installation> {
    let on_path = programs::on_path(PROGRAM).into_iter().filter_map(bin_dir_of);
    choose(on_path.chain(said_by_pg_config()).collect(), in_usual_places())
}

fn choose(preferred: Vec<PathBuf>, others: Vec<PathBuf>) -> Option<Installation> {
    let usable = |bin_dir: PathBuf| Installation::at(bin_dir).ok();
    let newest = |others: Vec<PathBuf>| {
        let mut found: Vec<Installation> = others.into_iter().filter_map(usable).collect();
        found.sort_by_key(|installation| Reverse(installation.version));
        found.into_iter().next()
    };
    preferred.into_iter().find_map(usable).or_else(|| newest(others))
}

/// Distributions put links on the PATH; the other programs are beside the file that the link leads to.
fn bin_dir_of(program: PathBuf) -> Option<PathBuf> {
    fs::canonicalize(program).ok()?.parent().map(Path::to_path_buf)
}

fn said_by_pg_config() -> Option<PathBuf> {
    let printed = run(Command::new("pg_config").arg("--bindir"), QUICK).ok()?;
    Some(printed.trim().into())
}

fn in_usual_places() -> Vec<PathBuf> {
    let bin_dirs =
        PARENTS.iter().flat_map(|parent| children(Path::new(parent))).map(|child| child.join("bin"));
    bin_dirs.filter(|bin_dir| programs::executable(bin_dir, PROGRAM).is_file()).collect()
}

fn children(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory of programs that say that they are of this version.
    fn pretend(parent: &Path, version: &str) -> PathBuf {
        let bin_dir = parent.join(version);
        fs::create_dir(&bin_dir).unwrap();
        for program in ["postgres", "initdb", "pg_ctl", "psql"] {
            let path = bin_dir.join(program);
            fs::write(&path, format!("#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        bin_dir
    }

    #[test]
    fn the_preferred_one_wins_over_newer_ones() {
        let parent = tempfile::tempdir().unwrap();
        let (on_path, newer) = (pretend(parent.path(), "16.4"), pretend(parent.path(), "18.1"));
        assert_eq!(choose(vec![on_path.clone()], vec![newer]).unwrap().bin_dir, on_path);
    }

    #[test]
    fn the_newest_of_the_others_is_taken() {
        let parent = tempfile::tempdir().unwrap();
        let others = vec![
            pretend(parent.path(), "9.6.24"),
            pretend(parent.path(), "17.2"),
            pretend(parent.path(), "15.1"),
        ];
        assert_eq!(choose(Vec::new(), others).unwrap().version, Version::new(17, 2, 0));
    }

    #[test]
    fn old_and_incomplete_ones_are_passed_over() {
        let parent = tempfile::tempdir().unwrap();
        let (old, incomplete) = (pretend(parent.path(), "14.9"), pretend(parent.path(), "17.1"));
        fs::remove_file(incomplete.join("initdb")).unwrap();
        assert_eq!(choose(vec![old, incomplete, "/no/such/place".into()], Vec::new()), None);
    }
}
