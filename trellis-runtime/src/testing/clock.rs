//! A clock that is set by hand.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::ports::Clock;

/// Stands still until it is advanced. Begins in 2030.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

/// 2030-01-01T00:00:00Z, in milliseconds.
const BEGINNING: u64 = 1_893_456_000_000;

impl Default for ManualClock {
    fn default() -> Self {
        Self(AtomicU64::new(BEGINNING))
    }
}

impl ManualClock {
    /// Let time pass, to the millisecond.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    fn since_1970(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.since_1970()
    }
    fn monotonic(&self) -> Duration {
        self.since_1970()
    }
}
