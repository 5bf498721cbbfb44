//! Cargo as a child process: the one that runs this, in the root of the workspace.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use crate::counts::Counts;

/// Variables that cargo sets for what it runs begin so. Some build scripts run again when they
/// change, and with them everything above is built again.
const OF_A_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// `cargo` with these arguments.
pub(crate) fn cargo(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(workspace_root());
    for (name, _) in env::vars_os() {
        if OF_A_PACKAGE.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the command, its output shown as it comes, and counts the tests that it reports.
pub(crate) fn run_counting(command: &mut Command) -> io::Result<(ExitStatus, Counts)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut counts = Counts::default();
    if let Some(output) = child.stdout.take() {
        let mut shown = io::stdout().lock();
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            shown.write_all(&line)?;
            shown.write_all(b"\n")?;
            counts.add_line(&String::from_utf8_lossy(&line));
        }
    }
    Ok((child.wait()?, counts))
}

/// The exit code of a child as our own.
pub(crate) fn passed_on(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

fn workspace_root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
