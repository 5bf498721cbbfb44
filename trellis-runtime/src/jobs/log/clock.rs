//! The broker's clock, as far as this process knows it: what the broker stamped is judged by it, so that
//! a host with a wrong clock neither starts retries late nor removes what has just ended.
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::causes::chain;
use crate::jobs::log::JobLog;
use crate::outbox::parse_rfc3339;

/// What is added to the own clock, in milliseconds. Measured at each bind and each survey.
#[derive(Debug, Clone, Default)]
pub(crate) struct BrokerClock(Arc<AtomicI64>);

impl JobLog {
    /// The time by the broker's clock.
    pub(crate) fn broker_now(&self) -> SystemTime {
        let (now, offset) = (self.ports.clock.now(), self.clock.0.load(Ordering::Relaxed));
        let distance = Duration::from_millis(offset.unsigned_abs());
        let shifted = if offset < 0 { now.checked_sub(distance) } else { now.checked_add(distance) };
        shifted.unwrap_or(now)
    }

    /// Ask the broker for its time.
    pub(crate) async fn measure_clock(&self) -> Result<(), String> {
        let began = self.ports.clock.monotonic();
        let asked = self.context.request(format!("STREAM.INFO.{}", self.stream), &());
        let told: Value = asked.await.map_err(|error| chain(&error))?;
        let told = told.get("ts").and_then(Value::as_str).and_then(parse_rfc3339);
        let told = told.ok_or("the server does not tell its time")?;
        // It was told somewhere between question and answer.
        let half = self.ports.clock.monotonic().saturating_sub(began) / 2;
        let (told, now) = (told + half, self.ports.clock.now());
        let ms = |distance: Duration| i64::try_from(distance.as_millis()).unwrap_or(i64::MAX);
        let offset = told.duration_since(now).map_or_else(|before| -ms(before.duration()), ms);
        if offset.abs() > 60_000 {
            tracing::warn!(offset_ms = offset, "this host's clock and the NATS server's are far apart");
        }
        self.clock.0.store(offset, Ordering::Relaxed);
        Ok(())
    }
}
