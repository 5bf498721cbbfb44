//! What is asked of a server before anything is built on it.
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::AccountErrorKind;

use crate::causes::chain;
use crate::events::ProvisionError;
use crate::host::error::StartError;

/// The oldest server that works: earlier ones refuse the compare-and-appends that later rooms need,
/// and silently ignore what they do not know.
const OLDEST: (u64, u64) = (2, 11);

/// How long a client that is not connected yet is waited for.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) async fn check(client: &Client, context: &Context, accepted: usize) -> Result<(), StartError> {
    // A client that was handed in, or that retries its first connect, knows nothing of the server yet.
    let connected = async {
        while client.connection_state() != State::Connected {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let connected = tokio::time::timeout(CONNECT_WAIT, connected).await;
    connected.map_err(|_| StartError::NotConnected { waited: CONNECT_WAIT })?;
    let info = client.server_info();
    if !is_new_enough(&info.version) {
        return Err(StartError::TooOld { found: info.version, needed: "2.11" });
    }
    if info.max_payload < accepted {
        return Err(StartError::MessageLimit { limit: info.max_payload, accepted });
    }
    match context.query_account().await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == AccountErrorKind::TimedOut => {
            Err(ProvisionError::Server { what: "ask for JetStream".to_owned(), reason: chain(&error) }.into())
        }
        Err(error) => Err(StartError::NoJetStream(error)),
    }
}

/// An unreadable version is taken for a new one: development builds have odd names.
fn is_new_enough(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split(['.', '-']).map(str::parse::<u64>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OLDEST,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn the_floor_is_2_11() {
        for new in ["2.11.0", "2.11.0-RC.1", "2.12.8", "3.0.0", "v2.15.1", "dev"] {
            assert!(is_new_enough(new), "{new}");
        }
        for old in ["2.10.26", "2.9.10", "1.4.1", "v2.2.0"] {
            assert!(!is_new_enough(old), "{old}");
        }
    }
}
