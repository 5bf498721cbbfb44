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
    let delays_are_known = !retry.incomplete
        & keep(&mut retry.first, |first| *first <= DAY * 30, DELAY, report)
        & keep(&mut retry.longest, |longest| *longest <= DAY * 30, DELAY, report);
    keep(
        &mut retry.tries,
        |tries| TRIES.contains(tries),
        "a run of a job has 1 to 1000 tries, the first included",
        report,
    );
    keep(deadline, |deadline| *deadline <= DAY * 365, "a deadline is at most 365 days: `\"365d\"`", report);
    if let Some(message) = delays(retry, delays_are_known) {
        let at = retry.first.take().or(retry.longest.take()).map(|given| given.literal);
        report.error(at, message);
        retry.longest = None;
    }
}

const DELAY: &str = "a delay between two tries is at most 30 days: `\"30d\"`";

/// Report and forget a value that does not fit. False if there was one.
fn keep<T>(
    option: &mut Option<Given<T>>,
    fits: impl Fn(&T) -> bool,
    message: &str,
    report: &mut Report,
) -> bool {
    match option.take_if(|given| !fits(&given.value)) {
        Some(given) => {
            report.error(&given.literal, message);
            false
        }
        None => true,
    }
}

/// What is wrong with the two delays beside each other, if anything. One that is missing has its
/// default, if it is known to be missing.
fn delays(retry: &Retry, known: bool) -> Option<String> {
    let text = |given: &Given<Duration>| given.literal.to_token_stream().to_string();
    match (&retry.first, &retry.longest) {
        (Some(first), Some(longest)) if first.value > longest.value => Some(format!(
            "`first` is longer than `longest`: delays grow from {} to {}, so the other way round?",
            text(first),
            text(longest)
        )),
        (Some(first), None) if known && first.value > LONGEST => {
            let first = text(first);
            Some(format!(
                "`first` is longer than `longest`, which is \"10m\" by default: add `longest = {first}` or more"
            ))
        }
        (None, Some(longest)) if known && longest.value < FIRST => {
            let longest = text(longest);
            Some(format!(
                "`longest` is shorter than `first`, which is \"5s\" by default: add `first = {longest}` or less"
            ))
        }
        _ => None,
    }
}
