//! One pass over the heads of a queue's messages: which jobs are open, which have ended long ago.
use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use async_nats::jetstream::consumer::pull::Config as PullConfig;
use futures_util::StreamExt;
use trellis::JobId;

use crate::causes::chain;
use crate::jobs::event::EventType;
use crate::jobs::log::JobLog;
use crate::jobs::record::transition;
use crate::jobs::state::JobState;
use crate::jobs::upkeep::survey_config;

/// Messages of one fetch.
const PAGE: usize = 2000;
/// How long a fetch may take.
const FETCH: Duration = Duration::from_secs(5);
/// Jobs to be removed that one pass remembers.
const MAX_ENDED: usize = 50_000;

/// What a pass has found.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) open: HashMap<String, Open>,
    /// Jobs that ended longer ago than asked for; not all, where there are very many.
    pub(crate) ended: HashMap<String, Gone>,
    /// Jobs with entries of a later version: they are left alone.
    pub(crate) unknown: HashSet<String>,
    /// All that have ended.
    pub(crate) ended_count: usize,
    /// Sequence number of the last message that was looked at.
    pub(crate) last: u64,
}

/// An open job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) state: JobState,
    pub(crate) first: u64,
    pub(crate) signal: u64,
}

/// A job that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) last: u64,
    pub(crate) at: SystemTime,
}

/// Look at every message that the queue has now; `turn` is the consumer to do it with.
pub(crate) async fn survey(
    log: &JobLog,
    queue: &str,
    turn: Option<PullConfig>,
    ended_for: Duration,
) -> Result<Survey, String> {
    log.measure_clock().await?;
    let now = log.broker_now();
    let config = turn.unwrap_or_else(|| survey_config(queue));
    let stream = log.context.get_stream(&log.stream).await.map_err(|error| chain(&error))?;
    let mut found = Survey { last: stream.cached_info().state.last_sequence, ..Survey::default() };
    let made = log.context.create_consumer_strict_on_stream(config, &log.stream).await;
    let consumer = made.map_err(|error| chain(&error))?;
    let mut left = consumer.cached_info().num_pending;
    while left > 0 {
        let page = usize::try_from(left).unwrap_or(PAGE).min(PAGE);
        let fetched = consumer.fetch().max_messages(page).expires(FETCH).messages().await;
        let mut fetched = fetched.map_err(|error| chain(&error))?;
        let mut came = 0;
        while let Some(message) = fetched.next().await {
            let message = message.map_err(|error| chain(error.as_ref()))?;
            let info = message.info().map_err(|error| chain(error.as_ref()))?;
            came += 1;
            let Some((id, token)) =
                message.subject.strip_prefix(queue).and_then(|rest| rest.strip_prefix('.')?.split_once('.'))
            else {
                continue;
            };
            found.see(id, token, info.stream_sequence, info.published.into(), (now, ended_for));
        }
        left = left.saturating_sub(came);
        if came == 0 {
            // Some were removed meanwhile, or the server is slow: a part must not pass for the whole.
            let info = consumer.get_info().await.map_err(|error| chain(&error))?;
            if info.num_pending > 0 {
                return Err(format!("{} messages were not delivered in time", info.num_pending));
            }
            break;
        }
    }
    Ok(found)
}

impl Survey {
    /// Whether there were more ended jobs than one pass remembers.
    pub(crate) fn is_cut(&self) -> bool {
        self.ended.len() >= MAX_ENDED
    }

    fn see(
        &mut self,
        id: &str,
        token: &str,
        sequence: u64,
        at: SystemTime,
        (now, ended_for): (SystemTime, Duration),
    ) {
        self.last = self.last.max(sequence);
        let Some(event) = EventType::of_token(token) else {
            // A later version wrote it, and may have opened the job again.
            self.unknown.insert(id.to_owned());
            self.ended.remove(id);
            return;
        };
        if let Some(open) = self.open.get_mut(id) {
            // An event between two entries that were accepted is one that was accepted.
            let Some(next) = transition(Some(open.state), event, true) else { return };
            if next.is_terminal() {
                self.open.remove(id);
                self.ended_count += 1;
                self.end(id, sequence, at, (now, ended_for));
            } else {
                open.state = next;
                if event.is_signal() {
                    open.signal = sequence;
                }
            }
            return;
        }
        match event {
            // No worker takes what no reference can name.
            EventType::Created | EventType::Retried if JobId::new(id).is_err() => {}
            EventType::Created | EventType::Retried => {
                if self.ended.remove(id).is_some() || event == EventType::Retried {
                    self.ended_count = self.ended_count.saturating_sub(1);
                }
                let open = Open { state: JobState::Pending, first: sequence, signal: sequence };
                self.open.insert(id.to_owned(), open);
            }
            // The end of an end: dismissed, or given up after it had failed.
            _ if self.ended.contains_key(id) => self.end(id, sequence, at, (now, ended_for)),
            EventType::Skipped => {
                self.ended_count += 1;
                self.end(id, sequence, at, (now, ended_for));
            }
            _ => {}
        }
    }

    fn end(&mut self, id: &str, last: u64, at: SystemTime, (now, ended_for): (SystemTime, Duration)) {
        if self.unknown.contains(id) {
            return;
        }
        let long_ago = now.duration_since(at).is_ok_and(|age| age >= ended_for);
        if long_ago && (self.ended.len() < MAX_ENDED || self.ended.contains_key(id)) {
            self.ended.insert(id.to_owned(), Gone { last, at });
        } else {
            self.ended.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Open, Survey};
    use crate::jobs::state::JobState;
    use std::time::{Duration, SystemTime};

    const NOW: Duration = Duration::from_secs(1000);

    fn see(survey: &mut Survey, entries: &[(&str, &str, u64)]) {
        for (sequence, (id, token, at)) in (survey.last + 1..).zip(entries) {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(*at);
            let now = SystemTime::UNIX_EPOCH + NOW;
            survey.see(id, token, sequence, at, (now, Duration::from_secs(100)));
        }
    }

    #[test]
    fn open_and_ended_jobs_are_told_apart() {
        let mut survey = Survey::default();
        see(
            &mut survey,
            &[
                ("a", "created", 1),
                ("b", "created", 1),
                ("a", "started", 2),
                ("b", "started", 2),
                ("a", "progress", 3),
                ("a", "completed", 10),
                ("b", "retry", 11),
                ("c", "created", 990),
                ("c", "started", 991),
                ("c", "completed", 992),
                ("b", "ready", 993),
            ],
        );
        assert_eq!(survey.open.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(survey.open["b"], Open { state: JobState::Retry, first: 2, signal: 11 });
        assert_eq!(survey.ended.keys().collect::<Vec<_>>(), ["a"], "c ended just now");
        assert_eq!((survey.ended["a"].last, survey.ended_count, survey.last), (6, 2, 11));
    }

    #[test]
    fn what_names_no_job_is_passed_over() {
        let mut survey = Survey::default();
        see(&mut survey, &[("a:b", "created", 1), ("ü", "created", 1), ("a", "created", 1)]);
        assert_eq!(survey.open.keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn a_redrive_opens_a_job_again_and_a_dismissal_does_not() {
        let mut survey = Survey::default();
        see(
            &mut survey,
            &[
                ("a", "created", 1),
                ("a", "started", 1),
                ("a", "dead", 2),
                ("b", "created", 1),
                ("b", "dead", 2),
                ("a", "dismissed", 3),
                ("b", "retried", 4),
            ],
        );
        assert_eq!(survey.ended["a"].last, 6);
        assert_eq!(survey.open["b"].first, 7, "what came before may be removed");
        assert_eq!(survey.ended_count, 1);
    }
}
