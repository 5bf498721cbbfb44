//! What becomes of a row that failed: pure.
use std::time::Duration;

use crate::outbox::config::OutboxConfig;
use crate::outbox::row::Failure;

/// Longest reason that is stored.
const MAX_REASON_CHARS: usize = 500;

/// The longest delay before the attempt after the `failures`-th failure.
pub(crate) fn longest_backoff(config: &OutboxConfig, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    config.backoff_first.saturating_mul(1 << doublings).min(config.backoff_longest)
}

/// What the reason of a row begins with of which nobody can know what became of it.
pub(crate) const UNKNOWN: &str = "outcome unknown";

/// One more failure of a row that had failed `attempts` times.
pub(crate) fn fail(
    config: &OutboxConfig,
    id: String,
    attempts: u32,
    reason: &str,
    jitter: impl FnOnce(Duration) -> Duration,
) -> Failure {
    let failures = attempts.saturating_add(1);
    let retry_in_ms = (failures < config.max_attempts)
        .then(|| crate::ports::whole_ms(jitter(longest_backoff(config, failures))));
    let reason = reason.chars().take(MAX_REASON_CHARS).collect();
    Failure { id, reason, retry_in_ms, unsent: false }
}

#[cfg(test)]
mod tests {
    use super::{fail, longest_backoff};
    use crate::outbox::config::OutboxConfig;
    use std::time::Duration;

    #[test]
    fn back_off_doubles_to_its_limit() {
        let config = OutboxConfig::default();
        let seconds: Vec<u64> = (1..=11).map(|n| longest_backoff(&config, n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(longest_backoff(&config, u32::MAX), Duration::from_secs(300));
    }

    #[test]
    fn the_last_attempt_is_the_configured_one() {
        let config = OutboxConfig { max_attempts: 3, ..OutboxConfig::default() };
        let after = |attempts| fail(&config, "a".into(), attempts, "r", |longest| longest).retry_in_ms;
        assert_eq!([after(0), after(1), after(2), after(u32::MAX)], [Some(1000), Some(2000), None, None]);
    }
}
