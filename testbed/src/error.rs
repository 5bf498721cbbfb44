//! What can go wrong between wanting a server and having one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Version;

/// Why a server or a program could not be found, fetched, started or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("could not {attempt}")]
    Io {
        /// What was tried, as in "could not …".
        attempt: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },

    /// A program ran and failed.
    #[error("`{command}` failed ({outcome}):\n{output}")]
    Command {
        /// The program and its arguments.
        command: String,
        /// Its exit status, or that it was out of time.
        outcome: String,
        /// The end of what it printed.
        output: String,
    },

    /// A variable names a server that cannot be used.
    #[error("${variable} names `{value}`, which cannot be used: {reason}; correct it or unset it")]
    Unusable {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A file is not the program that it should be.
    #[error("`{}` does not say that it is {program}", path.display())]
    NotTheProgram {
        /// The file that was asked.
        path: PathBuf,
        /// The program it should be.
        program: &'static str,
    },

    /// A server is older than what the caller needs.
    #[error("`{}` is version {found}, older than {wanted}", path.display())]
    TooOld {
        /// The server.
        path: PathBuf,
        /// Its version.
        found: Version,
        /// The oldest version that will do.
        wanted: Version,
    },

    /// No program of several alternatives could do the work.
    #[error("could not {attempt}; tried:\n{}", bullets(tried))]
    NoneWorked {
        /// What was tried, as in "could not …".
        attempt: String,
        /// Each alternative with its failure.
        tried: Vec<String>,
    },

    /// A program was started and ended, or did not become ready in time.
    #[error("{name} did not start: {reason}; the end of its log:\n{log}")]
    NotStarted {
        /// The program.
        name: String,
        /// What was seen.
        reason: String,
        /// The end of its log.
        log: String,
    },

    /// A program did not do in time what was waited for.
    #[error("{name}: {awaited} was not seen within {limit:?}; the end of its log:\n{log}")]
    OutOfTime {
        /// The program.
        name: String,
        /// What was waited for.
        awaited: String,
        /// For how long.
        limit: Duration,
        /// The end of its log.
        log: String,
    },

    /// A nats-server answered a request with an error.
    #[error("nats-server refused `{request}`: {answer}")]
    Refused {
        /// The subject of the request.
        request: String,
        /// The error, as the server sent it.
        answer: String,
    },

    /// No node of a cluster has the name.
    #[error("no node of the cluster is called {name}")]
    NoSuchNode {
        /// The name that was asked for.
        name: String,
    },

    /// No free port was left, or the port that was asked for is taken.
    #[error("no port to listen on: {reason}")]
    Port {
        /// What was tried.
        reason: String,
    },

    /// The operation needs a server that this process started itself.
    #[error("could not {attempt}: this server was only found, not started here")]
    NotOurs {
        /// What was tried, as in "could not …".
        attempt: &'static str,
    },

    /// The operating system has no such operation.
    #[error("could not {attempt}: this operating system cannot do that")]
    Unsupported {
        /// What was tried, as in "could not …".
        attempt: &'static str,
    },
}

impl Error {
    pub(crate) fn io(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { attempt: attempt.into(), source }
    }

    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        Self::io(format!("read `{}`", path.display()))
    }

    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        Self::io(format!("write `{}`", path.display()))
    }

    /// The error and its causes on one line, for lists of failures.
    pub(crate) fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

fn bullets(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}
