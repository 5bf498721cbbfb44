//! A published page: what became of each row is marked in the table.
use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::causes::chain;
use crate::database::{Database, Store};
use crate::outbox::config::DeadKey;
use crate::outbox::dispatcher::lane::Worker;
use crate::outbox::dispatcher::page::{Outcome, Page, PageRow, Suspect};
use crate::outbox::dispatcher::verdict::fail;
use crate::outbox::outcome::SubmissionOutcome;
use crate::outbox::row::{ClaimedRow, Decision};

/// How often a settlement is tried by a dispatcher that stops.
const SETTLE_TRIES: u32 = 4;
/// The wait between two tries: it doubles from the first to the longest.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
const BETWEEN_TRIES_LONGEST: Duration = Duration::from_secs(1);

impl<D: Database> Worker<D> {
    /// Mark every row of a page.
    pub(super) async fn settle(&self, page: &Page, outcome: Outcome) {
        let row = |at: usize| page.rows.get(at).map(|row| &row.row);
        let ids = |at: &mut dyn Iterator<Item = usize>| -> Vec<String> {
            at.filter_map(|at| Some(row(at)?.id.clone())).collect()
        };
        let (shared, counters) = (&self.shared, &self.control.counters);

        let sent: Vec<&ClaimedRow> = outcome.sent.iter().filter_map(|(at, _)| row(*at)).collect();
        if !sent.is_empty() {
            let duplicates = outcome.sent.iter().filter(|(_, ack)| ack.duplicate).count();
            counters.sent.fetch_add(sent.len() as u64, Relaxed);
            counters.duplicates.fetch_add(duplicates as u64, Relaxed);
            let keys = keys(sent.iter().copied());
            self.settled("sent", sent.len(), || {
                <D as Store>::sent(&shared.pool, &shared.sql, &page.token, &sent, &keys)
            })
            .await;
            self.wake_for(&keys);
        }
        if !outcome.decided.is_empty() {
            self.settle_decided(page, &outcome.decided).await;
        }
        if !(outcome.failed.is_empty() && outcome.lost.is_empty()) {
            self.settle_failed(page, &outcome.failed, &outcome.lost).await;
        }
        let released = ids(&mut outcome.released.iter().map(|suspect| suspect.at));
        if !released.is_empty() {
            let unsent = outcome
                .released
                .iter()
                .filter(|suspect| row(suspect.at).is_some_and(|row| is_unsent(row, suspect)));
            let unsent = ids(&mut unsent.map(|suspect| suspect.at));
            counters.released.fetch_add(released.len() as u64, Relaxed);
            self.settled("released", released.len(), || {
                <D as Store>::release(&shared.pool, &shared.sql, &page.token, &released, &unsent)
            })
            .await;
        }
    }

    /// Record what became of jobs, and tell those who wait for it.
    async fn settle_decided(&self, page: &Page, decided: &[(usize, SubmissionOutcome, bool)]) {
        let (shared, counters) = (&self.shared, &self.control.counters);
        let mut decisions = Vec::with_capacity(decided.len());
        let (mut sent, mut duplicates, mut rejected) = (0, 0, 0);
        for (row, outcome, repeated) in decided
            .iter()
            .filter_map(|(at, outcome, repeated)| Some((&page.rows.get(*at)?.row, outcome, *repeated)))
        {
            if outcome.is_accepted() {
                sent += 1;
                duplicates += u64::from(repeated);
            } else {
                rejected += 1;
                tracing::warn!(id = row.id, subject = row.subject, ?outcome, "a job was rejected");
            }
            decisions.push(Decision { seq: row.seq, id: row.id.clone(), outcome: outcome.encode() });
        }
        counters.sent.fetch_add(sent, Relaxed);
        counters.duplicates.fetch_add(duplicates, Relaxed);
        counters.rejected.fetch_add(rejected, Relaxed);
        let offset = shared.db_clock.offset_ms();
        self.settled("decided", decisions.len(), || {
            <D as Store>::decided(&shared.pool, &shared.sql, &page.token, &decisions, offset)
        })
        .await;
        shared.waiters.tell(decisions.iter().map(|decision| decision.id.as_str()));
    }

    /// Put off what `failed`, and to death what has failed too often or is `lost`.
    async fn settle_failed(&self, page: &Page, failed: &[Suspect], lost: &[(usize, String)]) {
        let (config, jitter) = (&self.shared.config, &self.shared.ports.jitter);
        let mut failures = Vec::with_capacity(failed.len() + lost.len());
        let mut dead = Vec::new();
        let failed = failed.iter().map(|suspect| (suspect.at, &suspect.reason, Some(suspect)));
        let lost = lost.iter().map(|(at, reason)| (*at, reason, None));
        for (at, reason, suspect) in failed.chain(lost) {
            let Some(PageRow { row, .. }) = page.rows.get(at) else { continue };
            let mut failure =
                fail(config, row.id.clone(), row.attempts, reason, |longest| jitter.full(longest));
            failure.retry_in_ms = failure.retry_in_ms.filter(|_| suspect.is_some());
            failure.unsent = suspect.is_some_and(|suspect| is_unsent(row, suspect));
            if failure.retry_in_ms.is_none() {
                tracing::error!(
                    id = row.id,
                    name = row.name,
                    subject = row.subject,
                    reason,
                    "a row is dead; `redrive` sends it again"
                );
                dead.push(row);
            } else {
                tracing::warn!(
                    id = row.id,
                    name = row.name,
                    attempts = row.attempts + 1,
                    reason,
                    "a row failed and waits"
                );
            }
            failures.push(failure);
        }
        self.control.counters.failed.fetch_add(failures.len() as u64, Relaxed);
        self.control.counters.dead.fetch_add(dead.len() as u64, Relaxed);
        let dead_ids: Vec<String> = dead.iter().map(|row| row.id.clone()).collect();
        let keys = if config.dead_key == DeadKey::Skip { keys(dead.into_iter()) } else { Vec::new() };
        let (shared, offset) = (&self.shared, self.shared.db_clock.offset_ms());
        let mark = || <D as Store>::failed(&shared.pool, &shared.sql, &page.token, &failures, &keys, offset);
        self.settled("failed", failures.len(), mark).await;
        shared.waiters.tell(dead_ids.iter().map(String::as_str));
        self.wake_for(&keys);
    }

    /// The next rows of these keys can be claimed now, by a lane that may be idle.
    fn wake_for(&self, keys: &[String]) {
        if !keys.is_empty() {
            self.shared.wake.notify_one();
        }
    }

    /// Repeat a settlement that the database refuses until it succeeds, or the dispatcher stops; then
    /// the lease settles it. Nothing is claimed meanwhile.
    async fn settled<F: Future<Output = sqlx::Result<u64>>>(
        &self,
        what: &str,
        rows: usize,
        settle: impl Fn() -> F,
    ) {
        let mut owed = None;
        let mut tries: u32 = 0;
        loop {
            match self.asked(settle()).await {
                Ok(settled) if settled == rows as u64 => break,
                Ok(settled) => {
                    tracing::debug!(what, rows, settled, "some rows were no longer held by this claim");
                    break;
                }
                Err(error) => {
                    let reason = format!("{rows} rows that were {what} cannot be marked: {}", chain(&error));
                    tracing::warn!(tries, reason, "the outbox is in trouble, trying again");
                    self.control.trouble.send_replace(Some(reason));
                    owed.get_or_insert_with(|| Owed::new(&self.control.owed));
                }
            }
            tries += 1;
            let stopping = self.control.halt.is_cancelled() || self.control.drain.is_cancelled();
            if stopping && tries >= SETTLE_TRIES {
                return;
            }
            let longest = BETWEEN_TRIES.saturating_mul(1 << tries.min(5)).min(BETWEEN_TRIES_LONGEST);
            tokio::time::sleep(longest / 2 + self.shared.ports.jitter.full(longest / 2)).await;
        }
        if owed.is_some() {
            self.shared.wake.notify_one();
        }
    }
}

/// Whether the row was sent neither by this claim nor by an earlier one.
fn is_unsent(row: &ClaimedRow, suspect: &Suspect) -> bool {
    !suspect.sent && row.sent_ago_ms == 0
}

/// A mark that the database has refused, as long as it lives.
struct Owed<'a>(&'a AtomicUsize);

impl<'a> Owed<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn keys<'a>(rows: impl Iterator<Item = &'a ClaimedRow>) -> Vec<String> {
    let mut keys: Vec<String> = rows.filter_map(|row| row.order_key.clone()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}
