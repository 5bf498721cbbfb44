//! One lane of a dispatcher: claim, publish, settle, again.
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::broker::Broker;
use crate::causes::chain;
use crate::database::{ClaimBy, Database, Store};
use crate::outbox::OutboxError;
use crate::outbox::config::DeadKey;
use crate::outbox::dispatcher::Control;
use crate::outbox::dispatcher::page::{Outcome, Page, PageRow};
use crate::outbox::dispatcher::verdict::fail;
use crate::outbox::row::{Claim, ClaimedRow, Failure};
use crate::outbox::shared::Shared;
use crate::ports::whole_ms;

/// How often keys are mended and unknown kinds are looked for.
const UPKEEP_EVERY: Duration = Duration::from_secs(60);
/// Shortest and longest wait after the database failed or while the broker is away.
const TROUBLE_FIRST: Duration = Duration::from_millis(100);
const TROUBLE_LONGEST: Duration = Duration::from_secs(2);
/// How often a settlement is repeated when the database fails.
const SETTLE_TRIES: u32 = 4;

pub(crate) struct Worker<D: Database> {
    pub(crate) shared: Arc<Shared<D>>,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) control: Arc<Control>,
    /// The turn to claim.
    pub(crate) claiming: Mutex<Upkeep>,
}

/// What the claiming lane remembers.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    done_at: Option<Duration>,
    troubles: u32,
    warned_of: Vec<String>,
}

impl<D: Database> Worker<D> {
    pub(crate) async fn run(self: Arc<Self>) {
        while let Some(page) = self.next_page().await {
            self.work_off(page).await;
        }
    }

    /// Wait for rows. `None` ends the lane.
    async fn next_page(&self) -> Option<Page> {
        let mut upkeep = self.claiming.lock().await;
        loop {
            if self.control.halt.is_cancelled() {
                return None;
            }
            if !self.broker_is_back(&mut upkeep).await {
                return None;
            }
            self.maintain(&mut upkeep).await;
            let token = self.shared.ports.ulid();
            let claimed_at = self.shared.ports.clock.monotonic();
            match self.claim(&token).await {
                Ok(Claim { rows, behind }) => {
                    upkeep.troubles = 0;
                    if !rows.is_empty() {
                        let rows = rows.into_iter().map(PageRow::from).collect();
                        return Some(Page { token, rows, claimed_at });
                    }
                    if !behind.is_empty() {
                        continue;
                    }
                    if self.control.drain.is_cancelled() {
                        return None;
                    }
                    self.idle().await;
                }
                Err(error) => self.trouble(&mut upkeep, "rows cannot be claimed", &error).await,
            }
        }
    }

    async fn claim(&self, token: &str) -> Result<Claim, OutboxError> {
        let shared = &self.shared;
        let by = ClaimBy {
            token,
            page: shared.config.page.into(),
            lease_ms: whole_ms(shared.config.lease),
            horizon_ms: whole_ms(shared.config.horizon()),
        };
        let turn = shared.writer().await?;
        let claim = <D as Store>::claim(&shared.pool, &shared.sql, by, shared.db_clock.offset_ms()).await;
        let claim = claim.map_err(|error| shared.error(error))?;
        if !claim.behind.is_empty() {
            // The rows that were claimed count, whatever becomes of this.
            if let Err(error) = <D as Store>::hold(&shared.pool, &shared.sql, &claim.behind).await {
                tracing::debug!(%error, "rows behind others of their key could not be held back, the next claim does it");
            }
        }
        drop(turn);
        Ok(claim)
    }

    /// Wait for a wake-up, the poll, or the end.
    async fn idle(&self) {
        let poll = self.shared.config.poll;
        tokio::select! {
            () = self.shared.wake.notified() => {}
            () = tokio::time::sleep(poll / 2 + self.shared.ports.jitter.full(poll / 2)) => {}
            () = self.control.drain.cancelled() => {}
            () = self.control.halt.cancelled() => {}
        }
    }

    /// Wait while the broker is away. False when there is nothing to wait for.
    async fn broker_is_back(&self, upkeep: &mut Upkeep) -> bool {
        while self.control.paused.borrow().is_some() {
            match self.broker.probe().await {
                Ok(()) => {
                    tracing::info!("the broker is back, dispatching goes on");
                    self.control.paused.send_replace(None);
                    upkeep.troubles = 0;
                }
                Err(reason) => {
                    self.control.paused.send_replace(Some(reason));
                    if self.control.drain.is_cancelled() {
                        return false;
                    }
                    self.pause(upkeep).await;
                }
            }
        }
        true
    }

    async fn trouble(&self, upkeep: &mut Upkeep, what: &str, error: &OutboxError) {
        tracing::warn!(error = %chain(error), "{what}, trying again");
        self.pause(upkeep).await;
    }

    async fn pause(&self, upkeep: &mut Upkeep) {
        let longest = TROUBLE_FIRST.saturating_mul(1 << upkeep.troubles.min(8)).min(TROUBLE_LONGEST);
        upkeep.troubles = upkeep.troubles.saturating_add(1);
        tokio::select! {
            () = tokio::time::sleep(longest / 2 + self.shared.ports.jitter.full(longest / 2)) => {}
            () = self.control.halt.cancelled() => {}
        }
    }

    /// Mend keys and tell of unknown kinds, now and then.
    async fn maintain(&self, upkeep: &mut Upkeep) {
        let now = self.shared.ports.clock.monotonic();
        if upkeep.done_at.is_some_and(|at| now.saturating_sub(at) < UPKEEP_EVERY) {
            return;
        }
        upkeep.done_at = Some(now);
        let shared = &self.shared;
        let Ok(turn) = shared.writer().await else { return };
        match <D as Store>::mend(&shared.pool, &shared.sql).await {
            Ok(0) => {}
            Ok(keys) => tracing::info!(keys, "ordering keys whose first row was gone go on"),
            Err(error) => tracing::debug!(%error, "ordering keys could not be mended"),
        }
        drop(turn);
        let kinds = <D as Store>::unknown_kinds(&shared.pool, &shared.sql).await.unwrap_or_default();
        if !kinds.is_empty() && kinds != upkeep.warned_of {
            tracing::warn!(
                ?kinds,
                "rows of kinds that this version does not know are left for processes that do"
            );
        }
        upkeep.warned_of = kinds;
    }

    async fn work_off(&self, page: Page) {
        let lease = self.shared.config.lease;
        let clock = &self.shared.ports.clock;
        let in_time = || clock.monotonic().saturating_sub(page.claimed_at) < lease / 2;
        if !in_time() {
            tracing::warn!("this process was stopped for long; its claimed rows are left to their lease");
            return;
        }
        let outcome = page.publish(&self.broker, in_time).await;
        if let Some(reason) = &outcome.unavailable {
            tracing::warn!(%reason, "the broker is not available, dispatching pauses");
            self.control.paused.send_replace(Some(reason.clone()));
        }
        self.settle(&page, outcome).await;
    }

    async fn settle(&self, page: &Page, outcome: Outcome) {
        let row = |at: usize| page.rows.get(at).map(|row| &row.row);
        let ids = |at: &mut dyn Iterator<Item = usize>| -> Vec<String> {
            at.filter_map(|at| Some(row(at)?.id.clone())).collect()
        };
        let counters = &self.control.counters;

        let sent = ids(&mut outcome.sent.iter().map(|(at, _)| *at));
        if !sent.is_empty() {
            let duplicates = outcome.sent.iter().filter(|(_, ack)| ack.duplicate).count();
            counters.sent.fetch_add(sent.len() as u64, Relaxed);
            counters.duplicates.fetch_add(duplicates as u64, Relaxed);
            let keys = keys(outcome.sent.iter().filter_map(|(at, _)| row(*at)));
            self.settled("sent", sent.len(), || self.mark_sent(&page.token, &sent, &keys)).await;
            if !keys.is_empty() {
                self.shared.wake.notify_one();
            }
        }
        if !outcome.failed.is_empty() {
            self.settle_failed(page, &outcome.failed).await;
        }
        let released = ids(&mut outcome.released.iter().copied());
        if !released.is_empty() {
            counters.released.fetch_add(released.len() as u64, Relaxed);
            self.settled("released", released.len(), || self.release(&page.token, &released)).await;
        }
    }

    async fn settle_failed(&self, page: &Page, failed: &[(usize, String)]) {
        let (config, jitter) = (&self.shared.config, &self.shared.ports.jitter);
        let mut failures = Vec::with_capacity(failed.len());
        let mut dead = Vec::new();
        for (row, reason) in failed.iter().filter_map(|(at, reason)| Some((&page.rows.get(*at)?.row, reason)))
        {
            let failure = fail(config, row.id.clone(), row.attempts, reason, |longest| jitter.full(longest));
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
        let keys = if config.dead_key == DeadKey::Skip { keys(dead.into_iter()) } else { Vec::new() };
        self.settled("failed", failures.len(), || self.mark_failed(&page.token, &failures, &keys)).await;
    }

    /// Repeat a settlement that the database refuses, for a while; then the lease settles it.
    async fn settled<F: Future<Output = Result<u64, OutboxError>>>(
        &self,
        what: &str,
        rows: usize,
        settle: impl Fn() -> F,
    ) {
        for attempt in 1..=SETTLE_TRIES {
            match settle().await {
                Ok(settled) if settled == rows as u64 => return,
                Ok(settled) => {
                    tracing::debug!(what, rows, settled, "some rows were no longer held by this claim");
                    return;
                }
                Err(error) => {
                    tracing::warn!(what, rows, attempt, error = %chain(&error), "rows could not be marked");
                }
            }
            tokio::time::sleep(self.shared.ports.jitter.full(TROUBLE_FIRST * attempt)).await;
        }
    }

    async fn mark_sent(&self, token: &str, ids: &[String], keys: &[String]) -> Result<u64, OutboxError> {
        let shared = &self.shared;
        let _turn = shared.writer().await?;
        let marked = <D as Store>::sent(&shared.pool, &shared.sql, token, ids, keys).await;
        marked.map_err(|error| shared.error(error))
    }

    async fn mark_failed(
        &self,
        token: &str,
        failures: &[Failure],
        keys: &[String],
    ) -> Result<u64, OutboxError> {
        let shared = &self.shared;
        let _turn = shared.writer().await?;
        let offset = shared.db_clock.offset_ms();
        let marked = <D as Store>::failed(&shared.pool, &shared.sql, token, failures, keys, offset).await;
        marked.map_err(|error| shared.error(error))
    }

    async fn release(&self, token: &str, ids: &[String]) -> Result<u64, OutboxError> {
        let shared = &self.shared;
        let _turn = shared.writer().await?;
        let released = <D as Store>::release(&shared.pool, &shared.sql, token, ids).await;
        released.map_err(|error| shared.error(error))
    }
}

fn keys<'a>(rows: impl Iterator<Item = &'a ClaimedRow>) -> Vec<String> {
    let mut keys: Vec<String> = rows.filter_map(|row| row.order_key.clone()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}
