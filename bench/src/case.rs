//! What was measured: one case, its contestants, their figures.

use std::time::Duration;

use crate::samples::Samples;

/// One line of the result.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The unit; more is better, unless it says otherwise.
    pub(crate) metric: &'static str,
    pub(crate) ours: Samples,
    /// The hand-written ideal loop.
    pub(crate) raw: Samples,
    /// Further contestants by name, for scale.
    pub(crate) others: Vec<(&'static str, Samples)>,
}

impl Case {
    pub(crate) fn new(name: impl Into<String>, metric: &'static str) -> Self {
        let (ours, raw) = (Samples::default(), Samples::default());
        Self { name: name.into(), metric, ours, raw, others: Vec::new() }
    }

    /// Add a figure of a further contestant.
    pub(crate) fn push_other(&mut self, who: &'static str, sample: f64) {
        if let Some((_, samples)) = self.others.iter_mut().find(|(name, _)| *name == who) {
            return samples.push(sample);
        }
        let mut samples = Samples::default();
        samples.push(sample);
        self.others.push((who, samples));
    }

    pub(crate) fn ratio(&self) -> Samples {
        self.ours.ratio_to(&self.raw)
    }
}

/// How many per second.
pub(crate) fn rate(count: u32, took: Duration) -> f64 {
    f64::from(count) / took.as_secs_f64()
}
