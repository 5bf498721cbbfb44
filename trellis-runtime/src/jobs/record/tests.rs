//! The fold against a table of its own: what any sequence of entries makes of a job.
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::value::RawValue;
use trellis::{LogLevel, Progress, WaitTarget};

use crate::jobs::event::{Entry, EventType, LogEntry, Trigger, TriggerKind, WaitEdge};
use crate::jobs::log::{Stored, Tree};
use crate::jobs::record::JobRecord;
use crate::jobs::state::JobState;
use crate::outbox::rfc3339;

/// `event`, the states in which it is accepted (`-`: nothing is known of the job), the state after it.
/// Written from reference section 1.2 and design section 5, not from the code.
const TABLE: &[(&str, &[&str], &str)] = &[
    ("created", &["-"], "pending"),
    ("started", &["pending", "retry", "active"], "active"),
    ("retry", &["active"], "retry"),
    ("handed_back", &["active"], "pending"),
    ("ready", &["pending"], "pending"),
    ("ready", &["active"], "active"),
    ("ready", &["retry"], "retry"),
    ("progress", &["active"], "active"),
    ("completed", &["active"], "completed"),
    ("failed", &["active"], "failed"),
    ("cancelled", &["pending", "retry", "active"], "cancelled"),
    ("expired", &["pending", "retry", "active"], "expired"),
    // `-`: an outcome of a submission that never opened a job.
    ("skipped", &["-", "pending", "retry"], "skipped"),
    // From `pending` only before the first try: see `table`.
    ("stale", &["active", "pending"], "stale"),
    // `-`: what opened the job cannot be read.
    ("dead", &["-", "pending", "active", "retry", "failed", "expired"], "dead"),
    ("dismissed", &["dead"], "dismissed"),
    // `-`: the run before was removed meanwhile.
    ("retried", &["-", "failed", "dead"], "pending"),
];

const TERMINAL: [&str; 8] =
    ["completed", "failed", "cancelled", "expired", "skipped", "stale", "dead", "dismissed"];

fn word(state: Option<JobState>) -> String {
    state.map_or_else(|| "-".to_owned(), |state| state.to_string())
}

fn table(state: &str, event: &str, unstarted: bool) -> Option<&'static str> {
    let row = TABLE.iter().find(|(of, from, _)| *of == event && from.contains(&state))?;
    let never = event == "stale" && state == "pending" && !unstarted;
    (!never).then_some(row.2)
}

fn state_of(word: &str) -> Option<JobState> {
    JobState::ALL.into_iter().find(|state| state.to_string() == word)
}

const ID: &str = "j";

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
}

/// An entry of the job, written at `seconds`.
fn entry(event: EventType, previous: Option<JobState>, seconds: u64) -> Entry<'static> {
    let state = previous.unwrap_or(JobState::Pending);
    Entry { previous_state: previous, ..Entry::bare(ID, "a.b@v1", "b.c", event, state, at(seconds)) }
}

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap()
}

/// Add entries to an empty log; all of them are expected to be accepted.
fn folded(entries: &[Entry<'_>]) -> JobRecord {
    let mut record = None;
    for (sequence, entry) in (1..).zip(entries) {
        assert!(JobRecord::apply(&mut record, sequence, at(sequence), entry), "{entry:?}");
    }
    record.unwrap()
}

fn edge(id: &str) -> WaitEdge {
    WaitEdge { id: id.to_owned(), target: WaitTarget::external("x"), started_at: rfc3339(at(0)) }
}

fn line(message: &str) -> LogEntry {
    LogEntry { timestamp: rfc3339(at(0)), level: LogLevel::Info, message: message.to_owned() }
}

fn created() -> Entry<'static> {
    Entry { max_tries: Some(3), payload: Some(raw("7")), ..entry(EventType::Created, None, 1) }
}

fn started(previous: JobState, tries: u32) -> Entry<'static> {
    Entry { tries, ..entry(EventType::Started, Some(previous), 2) }
}

#[test]
fn every_pair_of_state_and_event_does_what_the_table_says() {
    let states = JobState::ALL.into_iter().map(Some).chain([None]);
    for state in states {
        for event in EventType::ALL {
            for tries in [0, 1] {
                let mut record = state.map(|state| JobRecord { state, tries, ..folded(&[created()]) });
                let next = Entry { tries, ..entry(event, state, 9) };
                let accepted = JobRecord::apply(&mut record, 9, at(9), &next);
                let expected = table(&word(state), event.token(), tries == 0);
                assert_eq!(accepted, expected.is_some(), "{event:?} in {state:?}");
                let now = word(record.map(|record| record.state));
                assert_eq!(
                    now,
                    expected.map_or_else(|| word(state), str::to_owned),
                    "{event:?} in {state:?}"
                );
            }
        }
    }
}

#[test]
fn a_wrong_or_missing_previous_state_is_refused() {
    for state in JobState::ALL {
        for event in EventType::ALL {
            for previous in JobState::ALL.into_iter().map(Some).chain([None]) {
                if previous == Some(state) {
                    continue;
                }
                let mut record = Some(JobRecord { state, ..folded(&[created()]) });
                assert!(!JobRecord::apply(&mut record, 9, at(9), &entry(event, previous, 9)));
                assert_eq!(record.map(|record| (record.state, record.last)), Some((state, 9)));
            }
        }
    }
}

/// Reference section 10, item 75.
#[test]
fn the_happy_path_is_kept_with_its_times_and_its_result() {
    let deadline = rfc3339(at(3600));
    let first = Entry { deadline: Some(deadline.into()), ..created() };
    let start = Entry { instance: Some("i".into()), ..started(JobState::Pending, 1) };
    let end =
        Entry { tries: 1, result: Some(raw("42")), ..entry(EventType::Completed, Some(JobState::Active), 5) };
    let record = folded(&[first, start, end]);
    assert_eq!((record.state, record.tries, record.max_tries), (JobState::Completed, 1, 3));
    assert_eq!(
        (record.created_at, record.started_at, record.completed_at),
        (at(1), Some(at(2)), Some(at(5)))
    );
    assert_eq!((record.updated_at, record.deadline), (at(5), Some(at(3600))));
    assert_eq!(record.payload.map(|payload| payload.get().to_owned()).as_deref(), Some("7"));
    assert_eq!(record.result.map(|result| result.get().to_owned()).as_deref(), Some("42"));
    assert_eq!((record.id.as_str(), record.service.as_str(), record.name.as_str()), (ID, "a.b@v1", "b.c"));
    assert_eq!(
        (record.instance.as_deref(), record.run, record.signal, record.fence, record.last),
        (Some("i"), 1, 1, 2, 3)
    );
    assert_eq!(record.last_error, None);
}

/// Reference section 10, item 75: `completedAt` on all terminals, `lastError` where there is one.
#[test]
fn every_end_has_a_time_and_its_reason_and_no_waits() {
    for event in EventType::ALL {
        let Some(end) = table("active", event.token(), false).filter(|end| TERMINAL.contains(end)) else {
            continue;
        };
        let waits = Entry {
            tries: 1,
            waiting: vec![edge("w")],
            ..entry(EventType::Progress, Some(JobState::Active), 3)
        };
        let last = Entry { tries: 1, error: Some("why".into()), ..entry(event, Some(JobState::Active), 4) };
        let record = folded(&[created(), started(JobState::Pending, 1), waits, last]);
        assert_eq!(record.state.to_string(), end);
        assert_eq!((record.completed_at, record.waiting_on.len()), (Some(at(4)), 0), "{end}");
        assert_eq!(record.last_error.as_deref(), (end != "completed").then_some("why"), "{end}");
    }
}

/// Reference section 10, item 72.
#[test]
fn a_second_created_resets_nothing() {
    let end =
        Entry { tries: 1, result: Some(raw("1")), ..entry(EventType::Completed, Some(JobState::Active), 3) };
    let done = folded(&[created(), started(JobState::Pending, 1), end]);
    for previous in JobState::ALL.into_iter().map(Some).chain([None]) {
        let mut record = Some(done.clone());
        let again =
            Entry { payload: Some(raw("8")), max_tries: Some(9), ..entry(EventType::Created, previous, 9) };
        assert!(!JobRecord::apply(&mut record, 9, at(9), &again));
        assert_eq!(format!("{:?}", record.unwrap()), format!("{:?}", JobRecord { last: 9, ..done.clone() }));
    }
}

/// Reference section 10, items 63 and 64.
#[test]
fn a_redrive_opens_a_new_run_and_late_ends_of_the_old_one_are_nothing() {
    for (ended, of) in [(EventType::Failed, JobState::Failed), (EventType::Dead, JobState::Dead)] {
        let told = Entry {
            tries: 1,
            progress: Some(Progress::of(1, 2)),
            logs: vec![line("old")],
            ..entry(EventType::Progress, Some(JobState::Active), 3)
        };
        let end = Entry { tries: 1, error: Some("no".into()), ..entry(ended, Some(JobState::Active), 4) };
        let again = Entry {
            max_tries: Some(7),
            payload: Some(raw("9")),
            trigger: Some(Trigger::of(TriggerKind::ManualReplay)),
            ..entry(EventType::Retried, Some(of), 5)
        };
        let first = Entry { deadline: Some(rfc3339(at(60)).into()), ..created() };
        let record = folded(&[first, started(JobState::Pending, 1), told, end, again]);
        assert_eq!((record.state, record.tries, record.max_tries), (JobState::Pending, 0, 7));
        assert_eq!((record.run, record.signal, record.last), (5, 5, 5));
        assert_eq!((record.started_at, record.completed_at, record.due_at), (None, None, None));
        assert_eq!(
            (record.deadline, record.created_at),
            (None, at(1)),
            "an old deadline would end it at once"
        );
        assert!(record.result.is_none() && record.last_error.is_none() && record.progress.is_none());
        assert!(record.logs.is_empty() && record.waiting_on.is_empty());
        assert_eq!(record.payload.as_ref().map(|payload| payload.get()), Some("9"));
        assert_eq!(record.trigger.as_ref().map(|trigger| trigger.kind), Some(TriggerKind::ManualReplay));

        let mut late = Some(record);
        for event in [EventType::Completed, EventType::Failed, EventType::Retry, EventType::HandedBack] {
            assert!(!JobRecord::apply(&mut late, 6, at(6), &entry(event, Some(JobState::Active), 6)));
        }
        let second = [started(JobState::Pending, 1), entry(EventType::Completed, Some(JobState::Active), 8)];
        for (sequence, next) in (7..).zip(&second) {
            assert!(JobRecord::apply(&mut late, sequence, at(sequence), next));
        }
        assert_eq!(late.map(|record| (record.state, record.run)), Some((JobState::Completed, 5)));
    }
}

#[test]
fn a_new_deadline_comes_with_a_redrive_that_has_one() {
    let end = entry(EventType::Dead, Some(JobState::Pending), 2);
    let again = Entry {
        deadline: Some(rfc3339(at(99)).into()),
        ..entry(EventType::Retried, Some(JobState::Dead), 3)
    };
    assert_eq!(folded(&[created(), end, again]).deadline, Some(at(99)));
}

/// Reference section 10, item 83 on the side of the reader: tries are what the last entry says.
#[test]
fn tries_go_up_with_a_start_and_down_with_a_hand_back() {
    let back = Entry { tries: 0, ..entry(EventType::HandedBack, Some(JobState::Active), 3) };
    let retry = Entry { tries: 1, ..entry(EventType::Retry, Some(JobState::Active), 5) };
    let log = [
        created(),
        started(JobState::Pending, 1),
        back,
        started(JobState::Pending, 1),
        retry,
        started(JobState::Retry, 2),
        // Its worker crashed.
        started(JobState::Active, 3),
    ];
    let tries: Vec<u32> = (1..=log.len()).map(|upto| folded(&log[..upto]).tries).collect();
    assert_eq!(tries, [0, 1, 0, 1, 1, 2, 3]);
    assert_eq!(folded(&log).fence, 7);
}

#[test]
fn max_tries_change_only_where_an_entry_says_so() {
    let record = folded(&[created(), started(JobState::Pending, 1)]);
    assert_eq!(record.max_tries, 3);
    let unsaid = Entry { max_tries: None, ..created() };
    assert_eq!(folded(&[unsaid]).max_tries, 1);
}

#[test]
fn a_wait_for_the_next_start_ends_with_it() {
    for (event, state) in [(EventType::Retry, JobState::Retry), (EventType::HandedBack, JobState::Pending)] {
        let back = Entry {
            delay_ms: Some(1500),
            error: Some("why".into()),
            ..entry(event, Some(JobState::Active), 3)
        };
        let waits = folded(&[created(), started(JobState::Pending, 1), back.clone()]);
        // By the time of the broker that stored it, not of the worker that wrote it.
        assert_eq!(waits.due_at, Some(at(3) + Duration::from_millis(1500)));
        assert_eq!(waits.last_error.as_deref(), Some("why"));
        let begun = folded(&[created(), started(JobState::Pending, 1), back.clone(), started(state, 2)]);
        assert_eq!(begun.due_at, None);
        let cancelled = entry(EventType::Cancelled, Some(state), 4);
        assert_eq!(folded(&[created(), started(JobState::Pending, 1), back, cancelled]).due_at, None);
    }
}

/// Whatever a handler chose: no reader of the log may fall over it.
#[test]
fn a_delay_beyond_all_calendars_is_read() {
    let back = Entry { delay_ms: Some(u64::MAX), ..entry(EventType::Retry, Some(JobState::Active), 3) };
    let record = folded(&[created(), started(JobState::Pending, 1), back]);
    assert_eq!(record.state, JobState::Retry);
    assert!(record.due_at.is_none_or(|due| due > at(0)));
}

#[test]
fn waits_of_a_try_end_with_it_also_when_it_crashed() {
    let waits =
        Entry { tries: 1, waiting: vec![edge("w")], ..entry(EventType::Progress, Some(JobState::Active), 3) };
    let log = [created(), started(JobState::Pending, 1), waits];
    assert_eq!(folded(&log).waiting_on, [edge("w")]);
    for (event, tries) in [(EventType::Retry, 1), (EventType::HandedBack, 0), (EventType::Started, 2)] {
        let next = Entry { tries, ..entry(event, Some(JobState::Active), 4) };
        let log: Vec<Entry<'_>> = log.iter().cloned().chain([next]).collect();
        assert_eq!(folded(&log).waiting_on, [], "{event:?}");
    }
}

#[test]
fn waits_are_added_replaced_and_removed_by_their_id() {
    let told = |waiting: Vec<WaitEdge>, resumed: &[&str]| Entry {
        waiting,
        resumed: resumed.iter().map(|id| (*id).to_owned()).collect(),
        ..entry(EventType::Progress, Some(JobState::Active), 3)
    };
    let newer = WaitEdge { target: WaitTarget::external("y"), ..edge("a") };
    let mut log = vec![created(), started(JobState::Pending, 1), told(vec![edge("a"), edge("b")], &[])];
    log.push(told(vec![newer.clone()], &[]));
    assert_eq!(folded(&log).waiting_on, [edge("b"), newer.clone()]);
    log.push(told(vec![edge("c")], &["b", "c", "unknown"]));
    assert_eq!(folded(&log).waiting_on, [newer]);
}

#[test]
fn the_latest_lines_of_a_long_log_are_kept() {
    let many = |from: usize| Entry {
        logs: (from..from + 700).map(|n| line(&n.to_string())).collect(),
        ..entry(EventType::Progress, Some(JobState::Active), 3)
    };
    let logs = folded(&[created(), started(JobState::Pending, 1), many(0), many(700)]).logs;
    assert_eq!((logs.len(), logs[0].message.as_str(), logs[999].message.as_str()), (1000, "400", "1399"));
}

/// Reference section 10, item 30: an observation tells and decides nothing, whatever it says.
#[test]
fn observations_decide_nothing() {
    let before = folded(&[created(), started(JobState::Pending, 1)]);
    let mut record = Some(before.clone());
    let hostile = Entry {
        tries: 99,
        max_tries: Some(1),
        deadline: Some(rfc3339(at(0)).into()),
        payload: Some(raw("1")),
        result: Some(raw("1")),
        error: Some("no".into()),
        delay_ms: Some(1),
        instance: Some("other".into()),
        trigger: Some(Trigger::of(TriggerKind::Rpc)),
        progress: Some(Progress::of(1, 2)),
        logs: vec![line("l")],
        ..entry(EventType::Progress, Some(JobState::Active), 3)
    };
    assert!(JobRecord::apply(&mut record, 3, at(3), &hostile));
    let expected = JobRecord {
        progress: Some(Progress::of(1, 2)),
        logs: vec![line("l")],
        updated_at: at(3),
        last: 3,
        ..before
    };
    assert_eq!(format!("{:?}", record.unwrap()), format!("{expected:?}"));
}

/// A job that cannot be read is dead, and says why.
#[test]
fn an_end_without_a_beginning_is_an_end() {
    for (event, state) in [(EventType::Dead, JobState::Dead), (EventType::Skipped, JobState::Skipped)] {
        let end = Entry { error: Some("why".into()), ..entry(event, Some(JobState::Pending), 4) };
        let record = folded(&[end]);
        assert_eq!(
            (record.state, record.last_error.as_deref(), record.completed_at),
            (state, Some("why"), Some(at(4)))
        );
        assert!(record.payload.is_none());
    }
}

/// One step of a random log.
#[derive(Debug, Clone)]
struct Step {
    what: What,
    tries: u32,
    told: bool,
    delay_ms: Option<u64>,
}

#[derive(Debug, Clone)]
enum What {
    /// One of the events that the table allows now, with the tries that a worker would write.
    Legal(usize),
    /// Any event, with the right previous state, another one, or none.
    Any(usize, Previous),
    /// A legal entry of another job.
    OfAnotherJob(usize),
    /// A legal entry of another declaration.
    OfAnotherKind(usize),
    Unreadable,
}

#[derive(Debug, Clone)]
enum Previous {
    Right,
    Is(usize),
    Missing,
}

fn step() -> impl Strategy<Value = Step> {
    let previous = prop_oneof![
        3 => Just(Previous::Right),
        2 => (0..JobState::ALL.len()).prop_map(Previous::Is),
        1 => Just(Previous::Missing),
    ];
    let what = prop_oneof![
        8 => any::<usize>().prop_map(What::Legal),
        5 => (0..EventType::ALL.len(), previous).prop_map(|(event, previous)| What::Any(event, previous)),
        1 => any::<usize>().prop_map(What::OfAnotherJob),
        1 => any::<usize>().prop_map(What::OfAnotherKind),
        1 => Just(What::Unreadable),
    ];
    let delay =
        prop_oneof![2 => Just(None), 2 => (0..100_000_u64).prop_map(Some), 1 => any::<u64>().prop_map(Some)];
    (what, 0..9_u32, any::<bool>(), delay).prop_map(|(what, tries, told, delay_ms)| Step {
        what,
        tries,
        told,
        delay_ms,
    })
}

/// What the table makes of a log, and nothing more than is compared.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    state: &'static str,
    tries: u32,
    run: u64,
    signal: u64,
    fence: u64,
    last: u64,
    completed_at: Option<SystemTime>,
    lines: usize,
    waits: usize,
}

impl Model {
    fn of(record: Option<&JobRecord>) -> Option<Self> {
        record.map(|record| Self {
            state: TABLE.iter().map(|row| row.2).find(|state| *state == record.state.to_string()).unwrap(),
            tries: record.tries,
            run: record.run,
            signal: record.signal,
            fence: record.fence,
            last: record.last,
            completed_at: record.completed_at,
            lines: record.logs.len(),
            waits: record.waiting_on.len(),
        })
    }

    fn next(before: Option<&Self>, sequence: u64, entry: &Entry<'_>, next: &'static str) -> Self {
        let event = entry.event_type.token();
        let opened = Self {
            state: next,
            tries: entry.tries,
            run: sequence,
            signal: sequence,
            fence: 0,
            last: sequence,
            completed_at: None,
            lines: entry.logs.len(),
            waits: 0,
        };
        let mut model = before.cloned().unwrap_or(opened);
        if before.is_some() {
            model.lines += entry.logs.len();
        }
        (model.state, model.last) = (next, sequence);
        if event == "progress" {
            model.waits += entry.waiting.len();
        } else {
            model.tries = entry.tries;
        }
        if ["created", "retried", "ready"].contains(&event) {
            model.signal = sequence;
        }
        if event == "started" {
            model.fence = sequence;
        }
        if event == "retried" {
            (model.run, model.lines, model.completed_at) = (sequence, 0, None);
        }
        if !["progress", "ready"].contains(&event) {
            model.waits = 0;
        }
        if TERMINAL.contains(&next) {
            model.completed_at = Some(at(sequence));
        }
        model
    }
}

/// The tries that a worker writes.
fn tries_after(event: &str, tries: u32) -> u32 {
    match event {
        "started" => tries + 1,
        "handed_back" => tries.saturating_sub(1),
        "created" | "retried" => 0,
        _ => tries,
    }
}

impl Step {
    fn entry(&self, sequence: u64, now: Option<&Model>) -> Option<Entry<'static>> {
        let state = now.map_or("-", |now| now.state);
        let tries = now.map_or(0, |now| now.tries);
        let legal = |pick: usize| {
            let fits = |event: &EventType| table(state, event.token(), tries == 0).is_some();
            let events: Vec<EventType> = EventType::ALL.into_iter().filter(fits).collect();
            // An end that nothing can leave has no legal event: any other one then.
            let event = events.get(pick % events.len().max(1)).copied().unwrap_or(EventType::ALL[pick % 15]);
            let written = tries_after(event.token(), tries);
            Entry { tries: written, ..entry(event, state_of(state), sequence) }
        };
        let mut next = match &self.what {
            What::Legal(pick) => legal(*pick),
            What::Any(event, previous) => {
                let previous = match previous {
                    Previous::Right => state_of(state),
                    Previous::Is(at) => Some(JobState::ALL[*at]),
                    Previous::Missing => None,
                };
                Entry { tries: self.tries, ..entry(EventType::ALL[*event], previous, sequence) }
            }
            What::OfAnotherJob(pick) => Entry { job_id: "other".into(), ..legal(*pick) },
            What::OfAnotherKind(pick) if now.is_some() => {
                Entry { job_type: "b.other".into(), ..legal(*pick) }
            }
            What::OfAnotherKind(_) | What::Unreadable => return None,
        };
        if self.told {
            (next.logs, next.waiting) = (vec![line("l")], vec![edge(&sequence.to_string())]);
        }
        next.delay_ms = self.delay_ms;
        Some(next)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_log_is_what_the_table_makes_of_it(steps in proptest::collection::vec(step(), 1..40)) {
        let (mut model, mut after): (Option<Model>, Option<JobRecord>) = (None, None);
        let mut tree = Vec::new();
        for (sequence, step) in (1..).zip(&steps) {
            let before = after.clone();
            let entry = step.entry(sequence, model.as_ref());
            let body = entry.as_ref().map_or_else(|| b"{".to_vec(), Entry::encode);
            let token = entry.as_ref().map_or("progress", |entry| entry.event_type.token());
            let subject = format!("trellis.jobs.a-b.b-c.{ID}.{token}");
            tree.push(Stored { sequence, subject, at: at(sequence), append_id: None, body: Bytes::from(body) });
            let accepted = entry.as_ref().filter(|entry| entry.job_id == ID);
            let accepted = accepted.is_some_and(|entry| JobRecord::apply(&mut after, sequence, at(sequence), entry));
            if let (Some(record), false) = (&mut after, accepted) {
                record.last = sequence;
            }

            let state = model.as_ref().map_or("-", |model| model.state);
            let ours = entry.as_ref().filter(|entry| entry.job_id == ID && entry.job_type == "b.c");
            let legal = ours.filter(|entry| {
                model.is_none() || entry.previous_state.map(|state| state.to_string()).as_deref() == Some(state)
            });
            let unstarted = |entry: &Entry<'_>| entry.tries == 0 && model.as_ref().is_none_or(|now| now.tries == 0);
            let next = legal.and_then(|entry| Some((entry, table(state, entry.event_type.token(), unstarted(entry))?)));
            if let Some((entry, next)) = next {
                if TERMINAL.contains(&state) {
                    let event = entry.event_type.token();
                    prop_assert!(["retried", "dismissed", "dead"].contains(&event), "{} in {}", event, state);
                }
                model = Some(Model::next(model.as_ref(), sequence, entry, next));
            } else {
                // What is not accepted is counted, and changes nothing else.
                if let Some(model) = &mut model {
                    model.last = sequence;
                }
                let counted = before.map(|record| JobRecord { last: sequence, ..record });
                prop_assert_eq!(format!("{:?}", counted), format!("{:?}", after));
            }
            prop_assert_eq!(Model::of(after.as_ref()), model.clone());
            if let Some(record) = &after {
                prop_assert_eq!(record.state.is_terminal(), TERMINAL.contains(&record.state.to_string().as_str()));
                prop_assert_eq!(record.completed_at.is_some(), record.state.is_terminal());
                prop_assert!(record.due_at.is_none() || record.state.is_open());
                prop_assert!(record.waiting_on.is_empty() || record.state == JobState::Active);
                prop_assert!(record.result.is_none() || record.state == JobState::Completed);
                prop_assert!(record.run <= record.signal && record.signal <= record.last);
                prop_assert!(record.fence <= record.last);
            }
        }
        // The same as it is stored, read as a whole.
        let whole = Tree(tree).fold().unwrap();
        prop_assert_eq!(format!("{:?}", whole), format!("{:?}", after));
    }

    /// With entries as workers write them, tries are the starts of the run that were not handed back.
    #[test]
    fn tries_are_the_starts_of_a_run(picks in proptest::collection::vec(any::<usize>(), 1..40)) {
        let (mut model, mut record, mut starts) = (None::<Model>, None, 0_u32);
        for (sequence, pick) in (1..).zip(picks) {
            let step = Step { what: What::Legal(pick), tries: 0, told: false, delay_ms: None };
            let Some(entry) = step.entry(sequence, model.as_ref()) else { continue };
            let accepted = JobRecord::apply(&mut record, sequence, at(sequence), &entry);
            match entry.event_type {
                EventType::Started if accepted => starts += 1,
                EventType::HandedBack if accepted => starts -= 1,
                EventType::Retried if accepted => starts = 0,
                _ => {}
            }
            model = Model::of(record.as_ref());
            prop_assert_eq!(record.as_ref().map_or(0, |record| record.tries), starts);
        }
    }
}
