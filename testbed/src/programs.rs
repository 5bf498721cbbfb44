//! Programs on the PATH.

use std::env;
use std::path::{Path, PathBuf};

/// Every file on the PATH with the name of the program, in the order of the PATH.
pub(crate) fn on_path(program: &str) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| executable(&directory, program))
        .filter(|file| file.is_file())
        .collect()
}

/// Where a program of that name would be in the directory.
pub(crate) fn executable(directory: &Path, program: &str) -> PathBuf {
    directory.join(format!("{program}{}", env::consts::EXE_SUFFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_found_and_nonsense_is_not() {
        assert!(!on_path("cargo").is_empty());
        assert!(on_path("no-such-program-here").is_empty());
    }
}
