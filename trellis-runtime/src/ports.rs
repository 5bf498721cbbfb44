//! What the engine takes from outside so that tests can drive it: clock, ids, jitter.
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

/// Time, for stamps and for judging how long something took. Waits go through `tokio::time`.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock, for stamps that others read.
    fn now(&self) -> SystemTime;
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
}

/// Makes message ids, lease tokens and trace ids.
pub trait Ids: Send + Sync + 'static {
    /// A fresh id in ULID form, made at `now`.
    fn ulid(&self, now: SystemTime) -> String;
    /// 128 random bits.
    fn random(&self) -> u128;
}

/// Spreads delays, so that instances do not act in step.
pub trait Jitter: Send + Sync + 'static {
    /// A number in `0.0..1.0`.
    fn unit(&self) -> f64;

    /// Full jitter: somewhere between nothing and `longest`.
    fn full(&self, longest: Duration) -> Duration {
        longest.mul_f64(self.unit().clamp(0.0, 1.0))
    }
}

/// The clock, ids and jitter of one engine.
#[derive(Clone)]
pub struct Ports {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn Ids>,
    /// Jitter.
    pub jitter: Arc<dyn Jitter>,
}

impl Ports {
    /// A fresh ULID, stamped by the clock.
    pub(crate) fn ulid(&self) -> String {
        self.ids.ulid(self.clock.now())
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::default()),
            ids: Arc::new(RandomIds),
            jitter: Arc::new(RandomJitter),
        }
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// The clock that judges due times and leases of rows: the database's own, so that processes with
/// wrong clocks agree.
#[derive(Debug, Clone, Default)]
pub enum DbClock {
    /// The database's clock.
    #[default]
    Database,
    /// The database's clock plus this many milliseconds: tests drive leases with it.
    Offset(Arc<AtomicI64>),
}

impl DbClock {
    /// Milliseconds to add to the database's clock.
    pub(crate) fn offset_ms(&self) -> i64 {
        match self {
            Self::Database => 0,
            Self::Offset(ms) => ms.load(Ordering::Relaxed),
        }
    }
}

/// The operating system's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clocks")]
mod system {
    pub(super) fn start() -> std::time::Instant {
        std::time::Instant::now()
    }
    pub(super) fn now() -> std::time::SystemTime {
        std::time::SystemTime::now()
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: system::start() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        system::now()
    }
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Ids from the operating system's randomness.
#[derive(Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn ulid(&self, now: SystemTime) -> String {
        ulid::Ulid::from_parts(unix_ms(now).cast_unsigned(), self.random()).to_string()
    }
    fn random(&self) -> u128 {
        rand::random()
    }
}

/// Jitter from the operating system's randomness.
#[derive(Debug, Default)]
pub struct RandomJitter;

impl Jitter for RandomJitter {
    fn unit(&self) -> f64 {
        rand::random()
    }
}

/// Milliseconds since 1970; negative before.
pub(crate) fn unix_ms(time: SystemTime) -> i64 {
    let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}

/// Milliseconds of `duration`, for SQL.
pub(crate) fn whole_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
