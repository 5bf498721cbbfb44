//! A mail server to try things on. It sends nothing, but it is as slow as others, has its moods, and
//! keeps every mail that it took in a file, so that books can be balanced.
//!
//! It speaks TCP, one JSON object per line, several on one connection if wanted. A request has the
//! *idempotency key* of a mail: the same key is the same mail, however often it comes.
//!
//! ```text
//! {"key": "01JX…", "to": "c-029@example.com", "subject": "Your order o-0001: 2.30 EUR"}
//! ```
//!
//! | answer | means |
//! |---|---|
//! | `{"answer": "sent", "mail": 17}` | it is taken, as mail number 17; a repeated key gets the same number, and nothing is sent again |
//! | `{"answer": "busy"}` | not now: this happens to 15 % |
//! | `{"answer": "later", "after_ms": 300}` | not before then: this happens to 5 % |
//! | `{"answer": "no_such_address"}` | never: the server knows one domain |
//! | `{"answer": "bad", "reason": "…"}` | this is no request, or the key belongs to another mail |
//!
//! No mail is put off more than three times. The file has one JSON object per line too:
//! `{"mail": 17, "key": …, "to": …, "subject": …}` for what was taken, `{"repeat": 17}` for every
//! time that it came again.
mod connection;
mod office;
mod protocol;
mod signal;

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use clap::Parser;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::office::Office;

#[derive(Parser)]
#[command(about = "A mail server that sends nothing: slow, moody, with an exact memory")]
struct Args {
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:2525")]
    listen: SocketAddr,
    /// The file of the mails that were taken
    #[arg(long)]
    mails: PathBuf,
    /// The only domain that has addresses
    #[arg(long, default_value = "example.com")]
    domain: String,
    /// The longest time for one answer, in milliseconds
    #[arg(long, default_value_t = 60)]
    slowest_ms: u64,
    /// Decides about moods and times
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).init();
    match run(&Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = &*error, "the mail server ends");
            ExitCode::FAILURE
        }
    }
}

/// Answer until the process is told to end. What is under way then gets no answer.
async fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let office = Arc::new(Mutex::new(open(&args.mails, args)?));
    let listener = TcpListener::bind(args.listen).await?;
    let mut asked = std::pin::pin!(signal::asked_to_end()?);
    tracing::info!(address = %listener.local_addr()?, "running until asked to end");
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection::serve(stream, Arc::clone(&office)))),
                Err(error) => tracing::warn!(%error, "a connection was not accepted"),
            },
            Some(ended) = connections.join_next() => ended?,
            () = &mut asked => break,
        }
    }
    connections.shutdown().await;
    Ok(())
}

fn open(mails: &Path, args: &Args) -> Result<Office, Box<dyn Error>> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(mails)?;
    let mut taken = String::new();
    file.read_to_string(&mut taken)?;
    Ok(Office::open(&taken, Box::new(file), &args.domain, args.slowest_ms, args.seed)?)
}
