//! Whether a nats-server is ready, asked in its own protocol.

use std::io;
use std::time::Duration;

use super::client::Client;

const PATIENCE: Duration = Duration::from_millis(500);

/// Whether the server of this name answers on the port, and its JetStream too when that is asked for. In a cluster the
/// answer is that of the leader of all of JetStream: there is one then, and it can be reached through this server.
///
/// The name matters: another server may have taken the port in the meantime.
pub(super) fn is_ready(name: &str, port: u16, jetstream: bool) -> bool {
    ask(name, port, jetstream).unwrap_or(false)
}

fn ask(name: &str, port: u16, jetstream: bool) -> io::Result<bool> {
    let client = Client::connect(port, PATIENCE)?;
    if client.greeted_with("server_name") != name {
        return Ok(false);
    }
    if !jetstream {
        return Ok(true);
    }
    // Extra configuration may ask for credentials or TLS: then its word has to do.
    if client.is_told("auth_required") || client.is_told("tls_required") {
        return Ok(client.is_told("jetstream"));
    }
    Ok(client.ask("$JS.API.INFO", "")?.get("error").is_none())
}
