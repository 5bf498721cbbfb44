//! Whether a nats-server has caught up, asked of its monitoring page.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(500);

/// Whether the server says that its streams and consumers are all as far as their leaders.
pub(super) fn is_healthy(port: u16) -> bool {
    ask(port).is_ok_and(|answer| answer.lines().next().is_some_and(|status| status.contains(" 200 ")))
}

fn ask(port: u16) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
