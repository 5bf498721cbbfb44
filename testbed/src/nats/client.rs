//! A blocking client for one question: enough to ask a nats-server about itself.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

/// A connection that has been greeted and has said nothing yet.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    greeting: Value,
}

impl Client {
    /// Connects to the port and reads the greeting. Each answer, this one too, may take as long as `patience`.
    pub(super) fn connect(port: u16, patience: Duration) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        let mut client = Self { stream: BufReader::new(stream), greeting: Value::Null };

        let line = client.line()?;
        let info = line.strip_prefix("INFO ").ok_or_else(|| unexpected(&line))?;
        client.greeting = serde_json::from_str(info)?;
        Ok(client)
    }

    /// A text in the greeting; empty when it is not there.
    pub(super) fn greeted_with(&self, field: &str) -> &str {
        self.greeting.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the greeting says that the server has, or demands, this.
    pub(super) fn is_told(&self, field: &str) -> bool {
        self.greeting.get(field).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Publishes the body and waits for the answer.
    pub(super) fn ask(mut self, subject: &str, body: &str) -> io::Result<Value> {
        let inbox = unique_inbox();
        let bytes = body.len();
        let said = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB {inbox} 1\r\nPUB {subject} {inbox} {bytes}\r\n{body}\r\n"
        );
        self.stream.get_mut().write_all(said.as_bytes())?;
        loop {
            let line = self.line()?;
            if line.starts_with("MSG ") {
                return self.payload(&line);
            }
            if line.starts_with("-ERR") {
                return Err(unexpected(&line));
            }
        }
    }

    fn payload(&mut self, header: &str) -> io::Result<Value> {
        let length = header.rsplit(' ').next().and_then(|length| length.parse().ok());
        let mut bytes = vec![0; length.ok_or_else(|| unexpected(header))?];
        self.stream.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().into())
    }
}

fn unexpected(line: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the server said `{line}`"))
}

/// Several ask the same server at once.
fn unique_inbox() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("_INBOX.testbed.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
