//! Time for waiting: the one place here that reads the clock of the machine.

use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

const PAUSE_BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Measures how long something took.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// A stopwatch that runs from now.
    #[allow(
        clippy::disallowed_methods,
        reason = "this waits for real processes: there is no clock to inject"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Looks again and again until `look` has an answer (`Some`) or the limit has passed (`None`).
pub(crate) fn poll<T>(
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let stopwatch = Stopwatch::start();
    loop {
        if let Some(answer) = look()? {
            return Ok(Some(answer));
        }
        if stopwatch.elapsed() >= limit {
            return Ok(None);
        }
        thread::sleep(PAUSE_BETWEEN_LOOKS);
    }
}
