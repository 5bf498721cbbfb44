//! One lane of a dispatcher: claim, publish, settle, again.
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Mutex;

use crate::broker::{Broker, Destination};
use crate::causes::{chain, said};
use crate::database::{ClaimBy, Database, Store};
use crate::outbox::OutboxError;
use crate::outbox::config::HORIZON;
use crate::outbox::dispatcher::Control;
use crate::outbox::dispatcher::page::{Page, PageRow, Suspect};
use crate::outbox::row::{Claim, Kind};
use crate::outbox::shared::Shared;
use crate::ports::whole_ms;

/// Bytes of bodies after which a page ends, so that large rows do not fill the memory.
const PAGE_BYTES: i64 = 16 << 20;
/// How often keys are mended, old outcomes removed and unknown kinds looked for.
const UPKEEP_EVERY: Duration = Duration::from_secs(60);
/// Most outcomes that are removed at once: as many as a page can bring, so that their number stays
/// where it is, and a transaction that is short.
const FORGET_AT_ONCE: i64 = 1000;
/// Shortest and longest wait after the database failed.
const TROUBLE_FIRST: Duration = Duration::from_millis(100);
const TROUBLE_LONGEST: Duration = Duration::from_secs(2);

pub(crate) struct Worker<D: Database> {
    pub(crate) shared: Arc<Shared<D>>,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) control: Arc<Control>,
    /// The turn to claim.
    pub(crate) claiming: Mutex<Upkeep>,
}

/// What one of a dispatcher's tasks does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// Claim, publish, settle.
    Lane,
    /// Probe while it is away.
    LookAfter(Destination),
}

/// What the claiming lane remembers.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    done_at: Option<Duration>,
    /// There may be more outcomes to be removed.
    forgetting: bool,
    troubles: u32,
    warned_of: Vec<String>,
}

impl<D: Database> Worker<D> {
    /// Work until told to stop. A panic costs a page its lease, not the dispatcher its task.
    pub(crate) async fn run(self: Arc<Self>, task: Task) {
        while let Err(panic) = AssertUnwindSafe(self.work(task)).catch_unwind().await {
            let reason = format!("a lane panicked: {}", said(&*panic));
            tracing::error!(
                reason,
                "the dispatcher goes on; what the lane held is sent again after its lease"
            );
            self.control.trouble.send_replace(Some(reason));
            tokio::time::sleep(TROUBLE_LONGEST).await;
        }
    }

    async fn work(&self, task: Task) {
        match task {
            Task::Lane => {
                while let Some(page) = self.next_page().await {
                    self.work_off(page).await;
                }
            }
            Task::LookAfter(destination) => self.look_after(destination).await,
        }
    }

    /// Wait for rows. `None` ends the lane.
    async fn next_page(&self) -> Option<Page> {
        let mut upkeep = self.claiming.lock().await;
        loop {
            if self.control.halt.is_cancelled() {
                return None;
            }
            let kinds = self.reachable();
            if !kinds.contains(&true) {
                if !self.goes_on_without_rows().await {
                    return None;
                }
                continue;
            }
            if self.control.owed.load(Ordering::Acquire) > 0 {
                // What was sent and could not be marked would only be sent again.
                if self.control.drain.is_cancelled() {
                    return None;
                }
                self.pause(&mut upkeep).await;
                continue;
            }
            self.maintain(&mut upkeep).await;
            let token = self.shared.ports.ulid();
            let claimed_at = self.shared.ports.clock.monotonic();
            match self.claim(&token, kinds).await {
                Ok(Claim { rows, behind }) => {
                    upkeep.troubles = 0;
                    self.control.trouble.send_if_modified(|trouble| trouble.take().is_some());
                    if !rows.is_empty() {
                        let config = &self.shared.config;
                        // A send by this claim ends within its lease.
                        let longest_ms = whole_ms(config.job_horizon.saturating_sub(config.lease));
                        let rows = rows.into_iter().map(|row| PageRow::new(row, longest_ms)).collect();
                        return Some(Page { token, rows, claimed_at });
                    }
                    let forgetting = upkeep.forgetting && !self.control.drain.is_cancelled();
                    if behind.is_empty() && !forgetting && !self.goes_on_without_rows().await {
                        return None;
                    }
                }
                Err(error) => self.trouble(&mut upkeep, &error).await,
            }
        }
    }

    /// There is nothing to claim: wait, or end once what is away is not back. False to end.
    async fn goes_on_without_rows(&self) -> bool {
        if self.control.drain.is_cancelled() {
            return self.any_is_back().await;
        }
        self.idle().await;
        true
    }

    /// Ask the database with an end: one statement that is never answered must not stop a lane for
    /// ever. What it did all the same is settled by the lease.
    pub(super) async fn asked<T>(
        &self,
        question: impl Future<Output = sqlx::Result<T>>,
    ) -> Result<T, OutboxError> {
        let shared = &self.shared;
        let turn = shared.writer().await?;
        let limit = shared.config.lease / 3;
        let answer = tokio::time::timeout(limit, question).await.map_err(|_| OutboxError::NoAnswer(limit))?;
        drop(turn);
        answer.map_err(|error| shared.error(error))
    }

    async fn claim(&self, token: &str, kinds: [bool; Kind::ALL.len()]) -> Result<Claim, OutboxError> {
        let shared = &self.shared;
        let by = ClaimBy {
            token,
            page: shared.config.page.into(),
            lease_ms: whole_ms(shared.config.lease),
            horizon_ms: whole_ms(HORIZON),
            bytes: PAGE_BYTES,
            kinds,
        };
        let offset = shared.db_clock.offset_ms();
        let claim = self.asked(<D as Store>::claim(&shared.pool, &shared.sql, by, offset)).await?;
        if !claim.behind.is_empty() {
            // The rows that were claimed count, whatever becomes of this.
            let held = self.asked(<D as Store>::hold(&shared.pool, &shared.sql, &claim.behind)).await;
            if let Err(error) = held {
                tracing::debug!(error = %chain(&error), "rows behind others of their key are held by the next claim");
            }
        }
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

    async fn trouble(&self, upkeep: &mut Upkeep, error: &OutboxError) {
        let reason = format!("rows cannot be claimed: {}", chain(error));
        tracing::warn!(reason, "the outbox is in trouble, trying again");
        self.control.trouble.send_replace(Some(reason));
        self.pause(upkeep).await;
    }

    pub(super) async fn pause(&self, upkeep: &mut Upkeep) {
        let longest = TROUBLE_FIRST.saturating_mul(1 << upkeep.troubles.min(8)).min(TROUBLE_LONGEST);
        upkeep.troubles = upkeep.troubles.saturating_add(1);
        tokio::select! {
            () = tokio::time::sleep(longest / 2 + self.shared.ports.jitter.full(longest / 2)) => {}
            () = self.control.halt.cancelled() => {}
        }
    }

    /// Mend keys, remove old outcomes and tell of unknown kinds, now and then.
    async fn maintain(&self, upkeep: &mut Upkeep) {
        let now = self.shared.ports.clock.monotonic();
        let is_due = upkeep.done_at.is_none_or(|at| now.saturating_sub(at) >= UPKEEP_EVERY);
        if is_due || upkeep.forgetting {
            upkeep.forgetting = self.forget().await;
        }
        if !is_due {
            return;
        }
        upkeep.done_at = Some(now);
        let shared = &self.shared;
        match self.asked(<D as Store>::mend(&shared.pool, &shared.sql)).await {
            Ok(0) => {}
            Ok(keys) => tracing::info!(keys, "ordering keys whose first row was gone go on"),
            Err(error) => tracing::debug!(error = %chain(&error), "ordering keys could not be mended"),
        }
        let kinds =
            self.asked(<D as Store>::unknown_kinds(&shared.pool, &shared.sql)).await.unwrap_or_default();
        if !kinds.is_empty() && kinds != upkeep.warned_of {
            tracing::warn!(
                ?kinds,
                "rows of kinds that this version does not know are left for processes that do"
            );
        }
        upkeep.warned_of = kinds;
    }

    /// Remove some of the outcomes that were kept for their time; whether there may be more.
    async fn forget(&self) -> bool {
        let shared = &self.shared;
        let (older_ms, offset) = (whole_ms(shared.config.job_outcome_retention), shared.db_clock.offset_ms());
        let forget = <D as Store>::forget(&shared.pool, &shared.sql, older_ms, FORGET_AT_ONCE, offset);
        match self.asked(forget).await {
            Ok(gone) => gone >= FORGET_AT_ONCE.unsigned_abs(),
            Err(error) => {
                tracing::debug!(error = %chain(&error), "old outcomes of jobs could not be removed");
                false
            }
        }
    }

    async fn work_off(&self, page: Page) {
        let lease = self.shared.config.lease;
        let clock = &self.shared.ports.clock;
        // What begins by then ends within the lease, of which `ack_timeout` is a quarter at most.
        let in_time = || clock.monotonic().saturating_sub(page.claimed_at) < lease * 3 / 4;
        if !in_time() {
            tracing::warn!("this process was stopped for long; its claimed rows are left to their lease");
            return;
        }
        let (outcome, mut suspects) = page.publish(&self.broker, &in_time).await;
        self.settle(&page, outcome).await;
        // One after the other: a row that spoils the connection would cast suspicion on the others.
        for kind in Kind::ALL {
            let suspects: Vec<Suspect> =
                suspects.extract_if(.., |suspect| page.kind(suspect.at) == Some(kind)).collect();
            if suspects.is_empty() {
                continue;
            }
            let mut judged = page.judge(&self.broker, kind, suspects, &in_time).await;
            if let Some(reason) = judged.unavailable.take() {
                self.pause_for(kind.destination(), reason);
            }
            self.settle(&page, judged).await;
        }
    }
}
