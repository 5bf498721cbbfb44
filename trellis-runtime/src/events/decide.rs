//! What becomes of a delivery: pure.
use std::time::Duration;

use crate::events::group::GroupConfig;

/// How the handler ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Handled,
    Failed(String),
    /// No later delivery can succeed.
    Hopeless(String),
    /// The service stops; the handler was not heard to its end.
    Interrupted,
}

/// What is said to the broker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Acknowledge,
    /// Bring it back after this long.
    Retry(Duration),
    /// Write a dead letter, then end the delivery.
    Bury(String),
}

/// `jitter` shortens a delay.
pub(crate) fn decide(
    ended: Ended,
    deliveries: u64,
    config: &GroupConfig,
    jitter: impl FnOnce(Duration) -> Duration,
) -> Action {
    match ended {
        Ended::Handled => Action::Acknowledge,
        Ended::Hopeless(reason) => Action::Bury(reason),
        Ended::Failed(reason) if deliveries >= config.max_deliveries => Action::Bury(format!(
            "delivered {deliveries} times, the limit is {}: {reason}",
            config.max_deliveries
        )),
        Ended::Failed(_) => Action::Retry(jitter(backoff(config, deliveries))),
        Ended::Interrupted => Action::Retry(Duration::ZERO),
    }
}

/// How many times the delivery limit an event may come without that any handler came to an end.
const UNFINISHED_LIMITS: u64 = 3;

/// Why an event is given up before its handler is called, if so. One that ends its process each time
/// fails no handler; without this it would do so for ever.
pub(crate) fn unfinished(deliveries: u64, config: &GroupConfig) -> Option<String> {
    let most = config.max_deliveries.saturating_mul(UNFINISHED_LIMITS);
    (deliveries > most).then(|| {
        format!(
            "delivered {deliveries} times without an end; it may be what ends the processes that handle it"
        )
    })
}

/// The delay after the `deliveries`-th delivery.
pub(crate) fn backoff(config: &GroupConfig, deliveries: u64) -> Duration {
    let doublings = u32::try_from(deliveries.saturating_sub(1)).unwrap_or(u32::MAX).min(31);
    config.backoff_first.saturating_mul(1 << doublings).min(config.backoff_longest)
}

#[cfg(test)]
mod tests {
    use super::{Action, Ended, backoff, decide, unfinished};
    use crate::events::group::GroupConfig;
    use std::time::Duration;

    fn at(ended: Ended, deliveries: u64) -> Action {
        decide(ended, deliveries, &GroupConfig::default(), |delay| delay)
    }

    #[test]
    fn an_error_brings_the_event_back_until_the_limit() {
        let failed = || Ended::Failed("no stock".into());
        assert_eq!(at(failed(), 1), Action::Retry(Duration::from_secs(1)));
        assert_eq!(at(failed(), 9), Action::Retry(Duration::from_secs(256)));
        for over in [10, 11, u64::MAX] {
            assert!(
                matches!(at(failed(), over), Action::Bury(reason) if reason.ends_with("the limit is 10: no stock"))
            );
        }
        assert_eq!(backoff(&GroupConfig::default(), u64::MAX), Duration::from_secs(300));
    }

    #[test]
    fn what_is_handled_or_hopeless_is_settled_at_once() {
        assert_eq!(at(Ended::Handled, 99), Action::Acknowledge);
        assert_eq!(at(Ended::Hopeless("x".into()), 1), Action::Bury("x".into()));
    }

    #[test]
    fn an_event_that_never_ends_is_given_up_long_after_one_that_fails() {
        let config = GroupConfig::default();
        assert_eq!(unfinished(30, &config), None);
        assert!(unfinished(31, &config).is_some_and(|reason| reason.starts_with("delivered 31 times")));
    }

    #[test]
    fn a_stop_gives_the_event_back_whatever_its_count() {
        assert_eq!(at(Ended::Interrupted, 99), Action::Retry(Duration::ZERO));
    }
}
