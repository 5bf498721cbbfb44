//! How many tests ran and how they ended, as test programs say it themselves.

use std::fmt;

/// Tests that passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// Adds what a line of output says; most lines say nothing.
    pub(crate) fn add_line(&mut self, line: &str) {
        let Some((_, result)) = line.split_once("test result: ") else { return };
        self.passed += number_before(result, " passed");
        self.failed += number_before(result, " failed");
    }

    /// The sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)
    }
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split_once(word).map_or("", |(before, _)| before);
    before
        .rsplit(|character: char| !character.is_ascii_digit())
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed_and_other_lines_ignored() {
        let mut counts = Counts::default();
        for line in [
            "running 31 tests",
            "test version::tests::versions ... ok",
            "test result: ok. 29 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test result: FAILED. 3 passed; 12 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.10s",
            "error: 12 failed",
        ] {
            counts.add_line(line);
        }
        assert_eq!(counts, Counts { passed: 32, failed: 12 });
    }

    #[test]
    fn colours_do_not_hide_a_result() {
        let mut counts = Counts::default();
        counts.add_line("test result: \u{1b}[32mok\u{1b}(B\u{1b}[m. 7 passed; 1 failed; 0 ignored");
        assert_eq!(counts, Counts { passed: 7, failed: 1 });
    }

    #[test]
    fn the_sum_reads_as_promised() {
        let sum = Counts { passed: 1, failed: 0 }.plus(Counts { passed: 2, failed: 3 });
        assert_eq!(sum.to_string(), "3 passed, 3 failed");
    }
}
