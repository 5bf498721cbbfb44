//! What is asked of a server before anything is built on it.
use async_nats::Client;
use async_nats::jetstream::Context;

use crate::host::error::StartError;

/// The oldest server that works: earlier ones refuse the compare-and-appends that later rooms need,
/// and silently ignore what they do not know.
const OLDEST: (u64, u64) = (2, 11);

pub(crate) async fn check(client: &Client, context: &Context, accepted: usize) -> Result<(), StartError> {
    let info = client.server_info();
    if !is_new_enough(&info.version) {
        return Err(StartError::TooOld { found: info.version, needed: "2.11" });
    }
    if info.max_payload < accepted {
        return Err(StartError::MessageLimit { limit: info.max_payload, accepted });
    }
    context.query_account().await.map(drop).map_err(StartError::NoJetStream)
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
