//! Time: the one place here that reads the clock.

use std::time::Instant;

/// Now.
#[allow(clippy::disallowed_methods, reason = "real servers are measured: there is no clock to inject")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
