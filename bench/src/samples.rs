//! The figures of one thing over all rounds.

/// Figures of one contestant, one per round.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        if sorted.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.wrapping_sub(1)), at(middle)) }
    }

    pub(crate) fn min(&self) -> f64 {
        self.sorted().first().copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn max(&self) -> f64 {
        self.sorted().last().copied().unwrap_or(f64::NAN)
    }

    /// The ratio of each round, since what ran side by side saw the same machine.
    pub(crate) fn ratio_to(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(this, that)| this / that).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    fn samples(of: &[f64]) -> Samples {
        Samples(of.to_vec())
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        assert!((samples(&[9.0, 1.0, 5.0]).median() - 5.0).abs() < f64::EPSILON);
        assert!((samples(&[9.0, 1.0, 5.0, 6.0]).median() - 5.5).abs() < f64::EPSILON);
        assert!(samples(&[]).median().is_nan());
    }

    #[test]
    fn ratios_are_those_of_a_round() {
        assert_eq!(samples(&[1.0, 8.0]).ratio_to(&samples(&[2.0, 4.0])), samples(&[0.5, 2.0]));
    }
}
