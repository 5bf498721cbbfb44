//! Ended jobs that are no longer kept go.
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;

use crate::causes::chain;
use crate::jobs::upkeep::Upkeep;
use crate::jobs::upkeep::survey::{Gone, Survey};
use crate::jobs::worker::JobRetention;

/// Removals under way at once.
const AT_ONCE: usize = 16;

impl Upkeep {
    /// Remove what is no longer kept. Each removal ends with the entry that the job was seen with:
    /// a redrive that came since stays, and opens the job by itself. How many went.
    pub(super) async fn remove(&self, queue: &str, found: Survey) -> Result<usize, String> {
        let log = &self.consumers.log;
        let going = going(found, &self.retention, log.broker_now());
        if going.is_empty() {
            return Ok(0);
        }
        let stream = log.context.get_stream_no_info(&log.stream).await.map_err(|error| chain(&error))?;
        let count = going.len();
        let removals = going.into_iter().map(|(id, gone)| {
            let purge = stream.purge().filter(format!("{queue}.{id}.>")).sequence(gone.last + 1);
            async move { tokio::time::timeout(Duration::from_secs(10), purge).await }
        });
        let mut removals = futures_util::stream::iter(removals).buffer_unordered(AT_ONCE);
        while let Some(removed) = removals.next().await {
            let removed = removed.map_err(|_| "a removal was not answered".to_owned())?;
            removed.map_err(|error| chain(&error))?;
        }
        tracing::info!(queue, count, "ended jobs were removed");
        Ok(count)
    }
}

/// Which of those that ended at least `at_least` ago go: those older than `at_most`, and the oldest
/// beyond `count`.
fn going(found: Survey, retention: &JobRetention, now: SystemTime) -> Vec<(String, Gone)> {
    let surplus = found.ended_count.saturating_sub(retention.count);
    let mut candidates: Vec<(String, Gone)> = found.ended.into_iter().collect();
    candidates.sort_unstable_by_key(|(_, gone)| (gone.at, gone.last));
    let is_old = |gone: &Gone| now.duration_since(gone.at).is_ok_and(|age| age >= retention.at_most);
    candidates
        .into_iter()
        .enumerate()
        .filter(|(at, (_, gone))| *at < surplus || is_old(gone))
        .map(|(_, it)| it)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Gone, Survey, going};
    use crate::jobs::worker::JobRetention;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_oldest_go_first_and_none_before_its_time() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        // Jobs that ended later than `at_least` ago are counted and are no candidates.
        let found = |count| Survey {
            ended: (1..=5).map(|n| (n.to_string(), Gone { last: n, at: at(n * 10) })).collect(),
            ended_count: count,
            ..Survey::default()
        };
        let gone = |ended, count, at_most| {
            let retention =
                JobRetention { at_least: Duration::ZERO, at_most: Duration::from_secs(at_most), count };
            let going = going(found(ended), &retention, at(100));
            going.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
        };
        assert_eq!(gone(5, 100, 1000), [""; 0]);
        assert_eq!(gone(5, 3, 1000), ["1", "2"]);
        assert_eq!(gone(50, 3, 1000), ["1", "2", "3", "4", "5"]);
        assert_eq!(gone(5, 100, 70), ["1", "2", "3"]);
    }
}
