//! Programs that are run to their end, within a time limit, for what they print.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::deadline::poll;
use crate::{Error, Stopwatch};

const BUSY_LIMIT: Duration = Duration::from_secs(2);

/// For programs that only answer a question.
pub(crate) const QUICK: Duration = Duration::from_secs(30);

/// Runs the command and returns what it printed on both outputs; a bad exit or the end of the time limit is an error.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<String, Error> {
    let name = spelled(command);
    let failed = || Error::io(format!("run `{name}`"));

    // A file, not pipes: a program that prints much cannot block, and a grandchild that outlives it cannot make us wait.
    let mut printed = tempfile::tempfile().map_err(failed())?;
    let outputs = (printed.try_clone().map_err(failed())?, printed.try_clone().map_err(failed())?);
    command.stdin(Stdio::null()).stdout(outputs.0).stderr(outputs.1);

    let mut child = spawn(command).map_err(failed())?;
    let ended = poll(limit, || child.try_wait().map_err(failed()))?;
    if ended.is_none() {
        child.kill().and_then(|()| child.wait()).map_err(failed())?;
    }
    let output = read_all(&mut printed).map_err(failed())?;
    if ended.is_some_and(|status| status.success()) {
        return Ok(output);
    }
    Err(Error::Command { command: name, outcome: outcome(ended, limit), output: last_lines(&output, 20) })
}

/// Starts the command. A program that was written a moment ago may still be open for writing in a child that another
/// thread is about to start: that passes.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let stopwatch = Stopwatch::start();
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == ErrorKind::ExecutableFileBusy && stopwatch.elapsed() < BUSY_LIMIT =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// The last lines of a text: enough to see why a program gave up.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default().join("\n")
}

fn spelled(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn outcome(ended: Option<ExitStatus>, limit: Duration) -> String {
    ended.map_or_else(|| format!("not done within {limit:?}"), |status| status.to_string())
}

fn read_all(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_are_the_end_of_the_text() {
        assert_eq!(last_lines("one\ntwo\nthree\n", 2), "two\nthree");
        assert_eq!(last_lines("one\n", 2), "one");
        assert_eq!(last_lines("", 2), "");
    }
}
