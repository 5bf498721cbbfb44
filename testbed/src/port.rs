//! Free ports that stay free.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::Error;

// Below the ports that Linux (32768), macOS and Windows (49152) give to outgoing connections: a client that tries again
// and again to reach a stopped server would otherwise take that server's port one day, or even connect to itself.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// How many ports a server tries before it gives up, when it may choose.
const ATTEMPTS: usize = 5;

/// A port on 127.0.0.1 that nobody listens on now; this process does not hand it out again for a long time.
pub fn free_port() -> Result<u16, Error> {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU16::new(random_offset()));

    (0..COUNT)
        .map(|_| FIRST + next.fetch_add(1, Ordering::Relaxed) % COUNT)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| Error::Port { reason: format!("{FIRST} to {} are all taken", FIRST + COUNT - 1) })
}

/// Starts something on the given port; without one, on free ports until nobody else was faster.
pub(crate) fn start_on_a_port(
    given: Option<u16>,
    mut start: impl FnMut(u16) -> Result<(), Error>,
) -> Result<(), Error> {
    match given {
        Some(port) => start(port),
        None => while_ports_are_taken(|| start(free_port()?)),
    }
}

/// Tries again when somebody else was faster to take a port, a few times.
pub(crate) fn while_ports_are_taken<T>(mut start: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..ATTEMPTS {
        match start() {
            Err(Error::Port { .. }) => {}
            done => return done,
        }
    }
    start()
}

/// Where this process begins, so that processes side by side seldom meet.
fn random_offset() -> u16 {
    let random = RandomState::new().build_hasher().finish();
    u16::try_from(random % u64::from(COUNT)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken() -> Error {
        Error::Port { reason: "somebody was faster".into() }
    }

    #[test]
    fn another_port_is_tried_when_somebody_was_faster() {
        let mut tried = Vec::new();
        let started = start_on_a_port(None, |port| {
            tried.push(port);
            if tried.len() < ATTEMPTS { Err(taken()) } else { Ok(()) }
        });
        assert!(started.is_ok());
        tried.dedup();
        assert_eq!(tried.len(), ATTEMPTS);
    }

    #[test]
    fn a_given_port_is_tried_once() {
        let mut tried = Vec::new();
        let started = start_on_a_port(Some(4222), |port| {
            tried.push(port);
            Err(taken())
        });
        assert!(matches!(started, Err(Error::Port { .. })));
        assert_eq!(tried, [4222]);
    }

    #[test]
    fn a_port_is_not_handed_out_twice() {
        let ports: std::collections::HashSet<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)));
    }
}
