//! Whether a nats-server is ready, asked in its own protocol.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(500);
const ASK_JETSTREAM: &[u8] =
    b"CONNECT {\"verbose\":false}\r\nSUB _INBOX.testbed 1\r\nPUB $JS.API.INFO _INBOX.testbed 0\r\n\r\nPING\r\n";

/// Whether the server of this name answers on the port, and its JetStream too when that is asked for.
///
/// The name matters: another server may have taken the port in the meantime.
pub(super) fn is_ready(name: &str, port: u16, jetstream: bool) -> bool {
    ask(name, port, jetstream).unwrap_or(false)
}

fn ask(name: &str, port: u16, jetstream: bool) -> std::io::Result<bool> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(&stream).lines();

    let info = lines.next().transpose()?.unwrap_or_default();
    if !info.starts_with("INFO ") || !info.contains(&format!("\"server_name\":\"{name}\"")) {
        return Ok(false);
    }
    if !jetstream {
        return Ok(true);
    }
    // Extra configuration may ask for credentials or TLS: then its word has to do.
    if ["\"auth_required\":true", "\"tls_required\":true"].iter().any(|demand| info.contains(demand)) {
        return Ok(info.contains("\"jetstream\":true"));
    }
    (&stream).write_all(ASK_JETSTREAM)?;
    for line in lines {
        let line = line?;
        if line.contains("account_info_response") {
            return Ok(!line.contains("\"error\""));
        }
    }
    Ok(false)
}
