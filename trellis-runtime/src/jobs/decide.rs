//! What becomes of a delivery, and of a try that has ended: pure.
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;
use trellis::{Cancellation, Retry, Then};

use crate::jobs::event::EventType;
use crate::jobs::record::JobRecord;
use crate::jobs::state::JobState;

/// The longest delay that a handler can choose: servers count nanoseconds in 63 bits.
const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);
/// Longest reason that is stored.
const MAX_REASON_CHARS: usize = 2000;

/// When a delivery comes back that is ahead of the log.
const BEHIND: Duration = Duration::from_secs(1);

/// What a delivered signal asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Begin a try.
    Start,
    /// End the job without a try.
    End(EventType, String),
    /// Nothing is left to do for this signal.
    Done,
    /// Not yet.
    Later(Duration),
}

/// Decide on a delivery of the signal number `signal`; `now` by this process's wall clock.
pub(crate) fn delivered(record: &JobRecord, signal: u64, now: SystemTime) -> Step {
    // Whoever was read lags behind whoever delivered.
    if record.last < signal {
        return Step::Later(BEHIND);
    }
    // A later signal, of this run or of a newer one, has a delivery of its own. One that the log did
    // not accept, such as a second beginning, is none.
    if record.state.is_terminal() || signal != record.signal {
        return Step::Done;
    }
    if record.deadline.is_some_and(|deadline| deadline <= now) {
        let when = if record.tries == 0 { "before the first try" } else { "between two tries" };
        return Step::End(EventType::Expired, format!("the deadline passed {when}"));
    }
    let wait = record.due_at.and_then(|due| due.duration_since(now).ok()).unwrap_or_default();
    if !wait.is_zero() {
        return Step::Later(until_deadline(wait, record.deadline, now));
    }
    if record.state == JobState::Active && record.tries >= record.max_tries {
        let reason = format!(
            "{} of {} tries are used up, and the last one never ended: it may be what ends the processes that run it",
            record.tries, record.max_tries
        );
        return Step::End(EventType::Dead, reason);
    }
    Step::Start
}

/// When the delivery of a job that waits for `delay` comes back: at its deadline, if that is sooner,
/// for then the job ends.
pub(crate) fn until_deadline(delay: Duration, deadline: Option<SystemTime>, now: SystemTime) -> Duration {
    deadline.map_or(delay, |deadline| delay.min(deadline.duration_since(now).unwrap_or_default()))
}

/// How a try ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Completed(Box<RawValue>),
    Failed(String, Then),
    Panicked(String),
    /// No try can read the payload, or write the result.
    Unreadable(String),
    /// The handler was given up, or returned after it was told to end.
    Cancelled(Cancellation),
}

/// What is appended after a try, and what is said on its delivery then.
#[derive(Debug)]
pub(crate) struct After {
    pub(crate) event: EventType,
    pub(crate) state: JobState,
    pub(crate) tries: u32,
    pub(crate) error: Option<String>,
    pub(crate) result: Option<Box<RawValue>>,
    /// The delivery comes back after this long; without one it is acknowledged.
    pub(crate) again: Option<Duration>,
}

/// Decide on the end of the `tries`-th of `max_tries` tries. `None`: nothing is appended, since what
/// ended it is in the log already, or the log is somebody else's now. `jitter` shortens a delay.
pub(crate) fn ended(
    ended: Ended,
    (tries, max_tries): (u32, u32),
    retry: &Retry,
    jitter: impl FnOnce(Duration) -> Duration,
) -> Option<After> {
    let end = |event, state, error: String| After {
        event,
        state,
        tries,
        error: Some(cut(&error)),
        result: None,
        again: None,
    };
    let back = |error: String, delay: Duration| After {
        event: EventType::HandedBack,
        state: JobState::Pending,
        tries: tries.saturating_sub(1),
        error: Some(error),
        result: None,
        again: Some(delay.min(LONGEST_DELAY)),
    };
    let again = |error: String, delay: Duration| {
        if tries >= max_tries {
            let reason = format!("{tries} of {max_tries} tries are used up: {error}");
            return end(EventType::Dead, JobState::Dead, reason);
        }
        After { again: Some(delay.min(LONGEST_DELAY)), ..end(EventType::Retry, JobState::Retry, error) }
    };
    let declared = || jitter(retry.delay_after(tries));
    Some(match ended {
        Ended::Completed(result) => After {
            event: EventType::Completed,
            state: JobState::Completed,
            tries,
            error: None,
            result: Some(result),
            again: None,
        },
        Ended::Failed(error, Then::Declared) if retry.explicit => {
            end(EventType::Failed, JobState::Failed, error)
        }
        Ended::Failed(error, Then::Fail) => end(EventType::Failed, JobState::Failed, error),
        Ended::Failed(error, Then::RetryAfter(delay)) => again(error, delay),
        Ended::Failed(error, Then::Snooze(delay)) => back(error, delay),
        Ended::Failed(error, _) => again(error, declared()),
        Ended::Panicked(said) => again(format!("the handler panicked: {said}"), declared()),
        Ended::Unreadable(reason) => end(EventType::Dead, JobState::Dead, reason),
        Ended::Cancelled(Cancellation::Deadline) => {
            end(EventType::Expired, JobState::Expired, "the deadline passed during a try".to_owned())
        }
        Ended::Cancelled(Cancellation::Shutdown) => back("shutdown".to_owned(), Duration::ZERO),
        Ended::Cancelled(_) => return None,
    })
}

/// A reason as it is stored.
pub(crate) fn cut(reason: &str) -> String {
    reason.chars().take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::{After, Ended, Step, delivered, ended};
    use crate::jobs::event::{Entry, EventType};
    use crate::jobs::record::JobRecord;
    use crate::jobs::state::JobState;
    use std::time::{Duration, SystemTime};
    use trellis::{Cancellation, Retry, Then};

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn record(state: JobState, tries: u32) -> JobRecord {
        let mut record = None;
        let created = Entry::bare("j", "a@v1", "a.b", EventType::Created, JobState::Pending, NOW);
        assert!(JobRecord::apply(&mut record, 7, NOW, &created));
        JobRecord { state, tries, max_tries: 3, ..record.unwrap() }
    }

    #[test]
    fn an_open_job_is_started_and_an_ended_one_is_not() {
        for state in JobState::ALL {
            let step = delivered(&record(state, 1), 7, NOW);
            assert_eq!(step, if state.is_open() { Step::Start } else { Step::Done }, "{state}");
        }
    }

    #[test]
    fn a_signal_that_a_later_one_replaced_asks_for_nothing() {
        assert_eq!(delivered(&record(JobState::Pending, 0), 6, NOW), Step::Done);
    }

    #[test]
    fn a_signal_that_the_log_did_not_accept_asks_for_nothing() {
        for state in JobState::ALL {
            let told = JobRecord { last: 9, ..record(state, 1) };
            assert_eq!(delivered(&told, 8, NOW), Step::Done, "{state}: such as a second `created`");
        }
    }

    /// A redrive is delivered while the log that is read still ends with what it follows.
    #[test]
    fn nothing_is_decided_on_a_log_that_lags_behind_the_signal() {
        for state in JobState::ALL {
            assert!(matches!(delivered(&record(state, 1), 8, NOW), Step::Later(_)), "{state}");
        }
    }

    #[test]
    fn a_job_that_waits_beyond_its_deadline_comes_back_at_it() {
        let (due, deadline) = (NOW + Duration::from_secs(60), NOW + Duration::from_secs(5));
        let waits = JobRecord { due_at: Some(due), deadline: Some(deadline), ..record(JobState::Retry, 1) };
        assert_eq!(delivered(&waits, 7, NOW), Step::Later(Duration::from_secs(5)));
        let sooner = JobRecord { due_at: Some(NOW + Duration::from_secs(2)), ..waits };
        assert_eq!(delivered(&sooner, 7, NOW), Step::Later(Duration::from_secs(2)));
    }

    #[test]
    fn a_crash_during_the_last_try_is_its_end() {
        assert_eq!(delivered(&record(JobState::Active, 2), 7, NOW), Step::Start);
        assert!(matches!(
            delivered(&record(JobState::Active, 3), 7, NOW),
            Step::End(EventType::Dead, reason) if reason.starts_with("3 of 3 tries")
        ));
    }

    #[test]
    fn nothing_starts_before_it_is_due_or_after_its_deadline() {
        let due = JobRecord { due_at: Some(NOW + Duration::from_secs(5)), ..record(JobState::Retry, 1) };
        assert_eq!(delivered(&due, 7, NOW), Step::Later(Duration::from_secs(5)));
        assert_eq!(delivered(&due, 7, NOW + Duration::from_secs(5)), Step::Start);
        let late = JobRecord { deadline: Some(NOW), ..due };
        assert!(matches!(delivered(&late, 7, NOW), Step::End(EventType::Expired, _)));
    }

    fn after(end: Ended, tries: u32, retry: Retry) -> Option<After> {
        ended(end, (tries, retry.tries), &retry, |longest| longest)
    }

    #[test]
    fn errors_retry_until_the_tries_are_used_up() {
        let failed = |then| Ended::Failed("no".to_owned(), then);
        let first = after(failed(Then::Declared), 1, Retry::new()).unwrap();
        assert_eq!((first.event, first.tries), (EventType::Retry, 1));
        assert_eq!(first.again, Some(Duration::from_secs(5)));
        let panicked = after(Ended::Panicked("oh".to_owned()), 2, Retry::new()).unwrap();
        assert_eq!((panicked.event, panicked.again), (EventType::Retry, Some(Duration::from_secs(20))));
        let chosen = after(failed(Then::RetryAfter(Duration::from_secs(3))), 1, Retry::new()).unwrap();
        assert_eq!((chosen.event, chosen.again), (EventType::Retry, Some(Duration::from_secs(3))));
        for then in [Then::Declared, Then::Retry, Then::RetryAfter(Duration::ZERO)] {
            let last = after(failed(then), 5, Retry::new()).unwrap();
            assert_eq!((last.event, last.again), (EventType::Dead, None));
            assert_eq!(last.error.as_deref(), Some("5 of 5 tries are used up: no"));
        }
    }

    #[test]
    fn an_explicit_retry_is_the_only_one_where_the_contract_says_so() {
        let failed = |then| after(Ended::Failed("no".to_owned(), then), 1, Retry::new().explicit()).unwrap();
        assert_eq!(failed(Then::Declared).event, EventType::Failed);
        assert_eq!(failed(Then::Retry).event, EventType::Retry);
        assert_eq!(failed(Then::Fail).event, EventType::Failed);
    }

    #[test]
    fn what_was_not_the_jobs_fault_uses_no_try() {
        let snooze = Ended::Failed("snoozed".to_owned(), Then::Snooze(Duration::from_secs(9)));
        let snoozed = after(snooze, 5, Retry::new()).unwrap();
        assert_eq!((snoozed.event, snoozed.tries), (EventType::HandedBack, 4));
        assert_eq!(snoozed.again, Some(Duration::from_secs(9)));
        let stopped = after(Ended::Cancelled(Cancellation::Shutdown), 5, Retry::new()).unwrap();
        assert_eq!(
            (stopped.event, stopped.tries, stopped.again),
            (EventType::HandedBack, 4, Some(Duration::ZERO))
        );
    }

    #[test]
    fn no_delay_is_longer_than_servers_can_count() {
        for then in [Then::RetryAfter(Duration::MAX), Then::Snooze(Duration::MAX)] {
            let again = after(Ended::Failed("no".to_owned(), then), 1, Retry::new()).unwrap().again;
            assert!(again.is_some_and(|delay| i64::try_from(delay.as_nanos()).is_ok()), "{again:?}");
        }
    }

    #[test]
    fn what_the_log_says_already_is_not_said_again() {
        for reason in [Cancellation::Job, Cancellation::LeaseLost] {
            assert!(after(Ended::Cancelled(reason), 1, Retry::new()).is_none());
        }
        let expired = after(Ended::Cancelled(Cancellation::Deadline), 1, Retry::new()).unwrap();
        assert_eq!(expired.event, EventType::Expired);
    }
}
