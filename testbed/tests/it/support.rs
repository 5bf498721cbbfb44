//! What the tests look at from outside.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

/// Whether there is a process with this id, be it only as a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    Command::new("sh")
        .args(["-c", "kill -0 \"$0\" 2>/dev/null", &pid.to_string()])
        .status()
        .is_ok_and(|s| s.success())
}

/// Whether nobody listens on the port.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// The first line that a server on this port sends.
pub(crate) fn greeting(port: u16) -> String {
    let first_line = || BufReader::new(TcpStream::connect(("127.0.0.1", port)).ok()?).lines().next()?.ok();
    first_line().unwrap_or_default()
}
