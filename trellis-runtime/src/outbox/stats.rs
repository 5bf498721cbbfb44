//! What is in the table, for health and operators.
use std::collections::BTreeMap;
use std::time::Duration;

use crate::outbox::row::Kind;

/// Rows by state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxStats {
    /// Can be claimed.
    pub pending: u64,
    /// Wait behind an earlier row of their ordering key.
    pub held: u64,
    /// Are being sent.
    pub leased: u64,
    /// Failed and wait for their next attempt.
    pub failed: u64,
    /// Were given up; see [`SqlOutbox::dead`](crate::SqlOutbox::dead).
    pub dead: u64,
    /// Jobs of which is decided what became of them. Their rows are kept for
    /// [`OutboxConfig::job_outcome_retention`](crate::OutboxConfig::job_outcome_retention).
    pub dispatched: u64,
    /// Rows of kinds that this version does not know, by kind. They are left alone.
    pub unknown: BTreeMap<String, u64>,
    /// Age of the oldest row that is still to be sent.
    pub oldest: Duration,
}

impl OutboxStats {
    pub(crate) fn count(&mut self, kind: String, state: &str, held: bool, rows: i64, age_ms: i64) {
        let rows = rows.cast_unsigned();
        if state == "dispatched" {
            self.dispatched += rows;
            return;
        }
        if Kind::of(&kind).is_none() {
            *self.unknown.entry(kind).or_default() += rows;
            return;
        }
        let slot = match (state, held) {
            ("dead", _) => &mut self.dead,
            ("leased", _) => &mut self.leased,
            ("failed", _) => &mut self.failed,
            (_, true) => &mut self.held,
            (_, false) => &mut self.pending,
        };
        *slot += rows;
        if state != "dead" {
            self.oldest = self.oldest.max(Duration::from_millis(age_ms.max(0).cast_unsigned()));
        }
    }

    /// Rows that are still to be sent by this version.
    pub fn unsent(&self) -> u64 {
        self.pending + self.held + self.leased + self.failed
    }
}

/// A row that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadRow {
    /// Its id, for [`SqlOutbox::redrive`](crate::SqlOutbox::redrive): a message's id, or
    /// `job:<name>:<job id>`.
    pub id: String,
    /// What it is and in which format.
    pub kind: String,
    /// Logical name.
    pub name: String,
    /// Where it was to go.
    pub subject: String,
    /// Its ordering key, whose later rows wait for it unless dead rows are skipped.
    pub order_key: Option<String>,
    /// How often it failed.
    pub attempts: u32,
    /// Why it was given up.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::OutboxStats;
    use std::time::Duration;

    #[test]
    fn rows_are_counted_by_state() {
        let mut stats = OutboxStats::default();
        let mut count = |kind: &str, state, held, age| stats.count(kind.to_owned(), state, held, 1, age);
        count("event.v1", "pending", false, 1000);
        count("event.v1", "pending", true, 2000);
        count("job.create.v1", "leased", false, 3000);
        count("job.create.v1", "failed", false, 4000);
        count("job.create.v1", "dead", false, 9000);
        count("job.create.v1", "dispatched", false, 9000);
        count("job.create.v9", "dispatched", false, 9000);
        count("job.create.v9", "pending", false, 9000);
        assert_eq!((stats.pending, stats.held, stats.leased, stats.failed), (1, 1, 1, 1));
        assert_eq!((stats.dead, stats.dispatched, stats.unsent()), (1, 2, 4));
        assert_eq!(stats.unknown.get("job.create.v9"), Some(&1));
        assert_eq!(stats.oldest, Duration::from_secs(4));
    }
}
