//! Speaks with the mail server: one connection and one line of JSON for each mail.
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// How long a mail may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The mail server.
pub(crate) struct MailServer {
    address: String,
}

/// A mail to be sent.
#[derive(Serialize)]
pub(crate) struct Mail<'a> {
    /// A repeated key is the same mail: it is sent once.
    pub(crate) key: &'a str,
    pub(crate) to: &'a str,
    pub(crate) subject: String,
}

/// Why a mail was not taken, as far as is known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MailError {
    #[error("the mail server cannot be reached")]
    Unreachable(#[source] io::Error),
    #[error("the mail server did not answer")]
    NoAnswer(#[source] io::Error),
    #[error("what is said to the mail server or by it is not understood")]
    NotUnderstood(#[source] serde_json::Error),
    #[error("the mail server is busy")]
    Busy,
    #[error("the mail server wants to be asked again in {after:?}")]
    Later { after: Duration },
    #[error("there is no such address")]
    NoSuchAddress,
    #[error("the mail server does not want it: {0}")]
    Bad(String),
}

#[derive(Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
enum Answer {
    Sent { mail: u64 },
    Busy,
    Later { after_ms: u64 },
    NoSuchAddress,
    Bad { reason: String },
}

impl MailServer {
    pub(crate) fn at(address: &str) -> Self {
        Self { address: address.to_owned() }
    }

    /// Send a mail; the server's number for it.
    pub(crate) async fn send(&self, mail: &Mail<'_>) -> Result<u64, MailError> {
        let asked = tokio::time::timeout(LIMIT, self.ask(mail)).await;
        let answer = asked.unwrap_or_else(|_| Err(MailError::NoAnswer(io::ErrorKind::TimedOut.into())))?;
        match serde_json::from_str(&answer).map_err(MailError::NotUnderstood)? {
            Answer::Sent { mail } => Ok(mail),
            Answer::Busy => Err(MailError::Busy),
            Answer::Later { after_ms } => Err(MailError::Later { after: Duration::from_millis(after_ms) }),
            Answer::NoSuchAddress => Err(MailError::NoSuchAddress),
            Answer::Bad { reason } => Err(MailError::Bad(reason)),
        }
    }

    async fn ask(&self, mail: &Mail<'_>) -> Result<String, MailError> {
        let request = serde_json::to_string(mail).map_err(MailError::NotUnderstood)? + "\n";
        let mut stream = TcpStream::connect(&self.address).await.map_err(MailError::Unreachable)?;
        stream.write_all(request.as_bytes()).await.map_err(MailError::NoAnswer)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await.map_err(MailError::NoAnswer)?;
        Ok(answer)
    }
}
