//! Latencies of one contestant in one round.

use std::time::Duration;

use crate::Result;

/// At least one latency, sorted.
#[derive(Debug)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn of(mut latencies: Vec<Duration>) -> Result<Self> {
        if latencies.is_empty() {
            return Err("no latency was measured".into());
        }
        latencies.sort_unstable();
        Ok(Self(latencies))
    }

    /// The smallest latency that is not exceeded by `percent` of a hundred, in microseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100);
        let latency = self.0.get(rank.saturating_sub(1)).or(self.0.last());
        latency.map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latencies;

    #[test]
    fn a_percentile_is_one_of_the_latencies() {
        let latencies = Latencies::of((1..=300).rev().map(Duration::from_micros).collect()).unwrap();
        for (percent, expected) in [(50, 150.0), (99, 297.0), (100, 300.0)] {
            assert!((latencies.percentile(percent) - expected).abs() < 1e-6, "{percent}");
        }
        assert!(Latencies::of(Vec::new()).is_err());
    }
}
