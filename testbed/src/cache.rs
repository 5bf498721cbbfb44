//! The directory where fetched servers are kept, and how they get there whole.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use crate::Error;

/// Where fetched servers are kept: `$TRELLIS_CACHE_DIR`, else `testbed-cache` in cargo's target directory.
pub fn cache_dir() -> PathBuf {
    choose(
        env::var_os("TRELLIS_CACHE_DIR").map(PathBuf::from),
        env::var_os("CARGO_TARGET_DIR").map(PathBuf::from),
    )
}

fn choose(cache: Option<PathBuf>, target: Option<PathBuf>) -> PathBuf {
    let set = |path: &PathBuf| !path.as_os_str().is_empty();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let target = target.filter(set).unwrap_or_else(|| "target".into());
    // A relative path must mean the same to tests, which run in their package's directory, and to xtask.
    workspace.join(cache.filter(set).unwrap_or_else(|| target.join("testbed-cache")))
}

/// Makes the directory `name` in the cache, unless it is there already. Threads that want it at once fetch it once.
pub(crate) fn install_once(
    cache: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);

    let place = cache.join(name);
    if !place.is_dir() {
        fill_beside(cache, &place, fill)?;
    }
    Ok(place)
}

/// Fills a directory beside its place and moves it there.
///
/// Two processes that do this at once are fine: the second one finds the place taken by the same content.
fn fill_beside(
    cache: &Path,
    place: &Path,
    fill: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    fs::create_dir_all(cache).map_err(Error::writing(cache))?;
    let beside =
        tempfile::Builder::new().prefix(".fetching-").tempdir_in(cache).map_err(Error::writing(cache))?;
    let filled = beside.path().join("filled");
    fs::create_dir(&filled).map_err(Error::writing(&filled))?;
    fill(&filled)?;

    match fs::rename(&filled, place) {
        Err(_) if place.is_dir() => Ok(()),
        renamed => renamed.map_err(Error::writing(place)),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_cache_is_named_by_the_first_variable_that_is_set() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let some = |path: &str| Some(PathBuf::from(path));

        assert_eq!(choose(some("/cache"), some("/target")), Path::new("/cache"));
        assert_eq!(choose(None, some("/target")), Path::new("/target/testbed-cache"));
        assert_eq!(choose(None, some("out")), workspace.join("out/testbed-cache"));
        assert_eq!(choose(some(""), some("")), workspace.join("target/testbed-cache"));
    }

    #[test]
    fn a_failed_fill_leaves_nothing_behind() {
        let cache = tempfile::tempdir().unwrap();
        let failed =
            install_once(cache.path(), "server", |_| Err(Error::Port { reason: "as planned".into() }));
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    }

    #[test]
    fn filling_at_once_gives_one_whole_place() {
        let cache = tempfile::tempdir().unwrap();
        let fill = |directory: &Path| {
            fs::write(directory.join("one"), "1").map_err(Error::writing(directory))?;
            fs::write(directory.join("two"), "2").map_err(Error::writing(directory))
        };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| fill_beside(cache.path(), &cache.path().join("server"), fill).unwrap());
            }
        });
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(cache.path().join("server")).unwrap().count(), 2);
    }
}
