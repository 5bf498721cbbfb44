//! Signals, sent without unsafe code: through the shell's own `kill`, which needs no package.

use std::process::Command;

use crate::Error;
use crate::command::{QUICK, run};

/// What a process can be told.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Signal {
    /// End in good order.
    Terminate,
    /// Stand still.
    Stop,
    /// Go on.
    Continue,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Terminate => "TERM",
            Self::Stop => "STOP",
            Self::Continue => "CONT",
        }
    }

    fn attempt(self) -> &'static str {
        match self {
            Self::Terminate => "terminate a process",
            Self::Stop => "suspend a process",
            Self::Continue => "resume a process",
        }
    }
}

/// Sends the signal to a process that has not been waited for.
pub(crate) fn send(signal: Signal, pid: u32) -> Result<(), Error> {
    if !cfg!(unix) {
        return Err(Error::Unsupported { attempt: signal.attempt() });
    }
    let script = r#"kill -s "$0" "$1""#;
    run(Command::new("sh").args(["-c", script, signal.name(), &pid.to_string()]), QUICK).map(drop)
}
