//! Limits of what a job can say of its tries and its time.
use std::ops::RangeInclusive;
use std::time::Duration;

use quote::ToTokens;

use crate::model::{Given, Job, Retry};
use crate::report::Report;

const TRIES: RangeInclusive<u64> = 1..=1000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What `trellis::Retry::new` begins with; `ui-tests` compares them.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(600);

pub(super) fn check(job: &mut Job, report: &mut Report) {
    let Job { retry, deadline, .. } = job;
    let tries = "a run of a job has 1 to 1000 tries, the first included";
    fits(&mut retry.tries, |tries| TRIES.contains(tries), tries, report);
    let delay = "a delay between two tries is at most 30 days: `\"30d\"`";
    let first_fits = fits(&mut retry.first, |first| *first <= DAY * 30, delay, report);
    let longest_fits = fits(&mut retry.longest, |longest| *longest <= DAY * 30, delay, report);
    retry.incomplete |= !(first_fits && longest_fits);
    if let Some(message) = contradiction(retry) {
        let (first, longest) = (retry.first.take(), retry.longest.take());
        report.error(first.or(longest).map(|given| given.literal), message);
    }
    let most = "a deadline is at most 365 days: `\"365d\"`";
    fits(deadline, |deadline| *deadline <= DAY * 365, most, report);
}

/// Whether the value, if there is one, is within its limits; otherwise it is reported and forgotten.
fn fits<T>(
    option: &mut Option<Given<T>>,
    is_within: impl Fn(&T) -> bool,
    message: &str,
    report: &mut Report,
) -> bool {
    let wrong = option.take_if(|given| !is_within(&given.value));
    if let Some(given) = &wrong {
        report.error(&given.literal, message);
    }
    wrong.is_none()
}

/// What is wrong with the two delays beside each other, if anything. One that is missing has its
/// default.
fn contradiction(retry: &Retry) -> Option<String> {
    let text = |given: &Given<Duration>| given.literal.to_token_stream().to_string();
    match (&retry.first, &retry.longest) {
        (Some(first), Some(longest)) if first.value > longest.value => Some(format!(
            "`first` is longer than `longest`: delays grow from the one to the other, \
             as in `first = {}, longest = {}`",
            text(longest),
            text(first)
        )),
        (Some(first), None) if !retry.incomplete && first.value > LONGEST => Some(format!(
            "`first` is longer than `longest`, which is \"10m\" by default: add `longest = {}` or more",
            text(first)
        )),
        (None, Some(longest)) if !retry.incomplete && longest.value < FIRST => Some(format!(
            "`longest` is shorter than `first`, which is \"5s\" by default: add `first = {}` or less",
            text(longest)
        )),
        _ => None,
    }
}
