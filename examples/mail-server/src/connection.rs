//! One connection: requests and answers, one after the other.
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::office::Office;

/// The longest request, in bytes.
const LONGEST_LINE: u64 = 64 * 1024;

/// Answer until the other side ends the connection.
pub(crate) async fn serve(stream: TcpStream, office: Arc<Mutex<Office>>) {
    if let Err(error) = converse(stream, &office).await {
        // A client that was killed, mostly.
        tracing::debug!(%error, "a connection broke");
    }
}

async fn converse(stream: TcpStream, office: &Mutex<Office>) -> io::Result<()> {
    let (requests, mut answers) = stream.into_split();
    let mut requests = BufReader::new(requests);
    let mut line = String::new();
    loop {
        line.clear();
        (&mut requests).take(LONGEST_LINE).read_line(&mut line).await?;
        // The end of the connection, also in the middle of a line.
        if !line.ends_with('\n') {
            return Ok(());
        }
        let (before, after) = lock(office).pauses();
        tokio::time::sleep(before).await;
        let answer = lock(office).answer(line.trim_end());
        let answer =
            answer.inspect_err(|error| tracing::error!(%error, "a mail could not be written down"))?;
        // Whoever is killed now does not learn that the mail was taken.
        tokio::time::sleep(after).await;
        answers.write_all((serde_json::to_string(&answer)? + "\n").as_bytes()).await?;
    }
}

fn lock(office: &Mutex<Office>) -> std::sync::MutexGuard<'_, Office> {
    office.lock().unwrap_or_else(PoisonError::into_inner)
}
