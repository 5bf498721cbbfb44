//! One database: kill, start again, and look whether anything stays behind.
use std::time::Duration;

use orders_demo::{Binaries, Books, Counts, Error, Expected, Kind, Role, Settings, Stage, Watch};
use serde::Serialize;
use testbed::Stopwatch;

use super::input;
use super::plan::{Kill, Plan};

const ORDERS: &str = include_str!("../../../examples/data/orders.jsonl");
const CATALOGUE: &str = include_str!("../../../examples/data/catalogue.json");

/// How often the outbox is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a lease may be over, with a process alive to see it, before its row counts as stuck: one
/// poll (1 s), the start of that process, and the pauses of a slow machine.
const OVERDUE_LIMIT: Duration = Duration::from_secs(4);
/// The longest time for a mail: short, because there are many.
const SLOWEST_MAIL: Duration = Duration::from_millis(10);
/// How long nothing may happen before the books are read as they are.
const STANDSTILL_LIMIT: Duration = Duration::from_secs(30);

/// What was seen on one database.
#[derive(Serialize)]
pub(super) struct DatabaseResult {
    database: String,
    version: String,
    seconds: f64,
    lease_ms: u128,
    ack_wait_ms: u128,
    /// The longest that a row stayed leased after its lease was over, with a process alive to see it.
    longest_overdue_ms: u128,
    overdue_limit_ms: u128,
    /// From the last start, with no line left to be placed, to an empty outbox.
    drained_after_ms: u128,
    drain_limit_ms: u128,
    /// From then to the last event handled.
    handled_after_ms: u128,
    /// From then to the last job of a receipt ended.
    ended_after_ms: u128,
    books: Books,
    kills: Vec<KillResult>,
}

/// One kill, and how far all processes were then.
#[derive(Serialize)]
struct KillResult {
    victim: &'static str,
    /// Since the last victim was started again.
    after_ms: u128,
    /// The pause after each line from then on.
    pause_ms: u128,
    lines: u64,
    outbox: u64,
    handled: u64,
    ended: u64,
}

impl DatabaseResult {
    pub(super) fn holds(&self) -> bool {
        self.books.are_balanced()
            && self.longest_overdue_ms <= self.overdue_limit_ms
            && self.drained_after_ms <= self.drain_limit_ms
    }
}

/// Carry out the plan; the version of the NATS server and the result.
pub(super) async fn run(
    kind: Kind,
    binaries: &Binaries,
    plan: &Plan,
    seed: u64,
) -> Result<(String, DatabaseResult), Error> {
    let started = Stopwatch::start();
    let rounds = input::rounds(ORDERS.lines().count(), plan.duration());
    let orders = input::orders(ORDERS, rounds);
    println!("{kind}: at most {} lines", orders.lines().count());

    let settings = Settings { slowest_mail: SLOWEST_MAIL, seed, ..Settings::default() };
    let mut stage = Stage::set_up(kind, binaries.clone(), (&orders, CATALOGUE), settings)?;
    let nats_server = stage.nats_version();
    let outcome = Trial::run(&mut stage, plan, &orders).await;
    let outcome = outcome.map(|trial| trial.result(kind, &started));
    if !outcome.as_ref().is_ok_and(DatabaseResult::holds) {
        eprintln!("databases and logs: {}", stage.keep().display());
    }
    Ok((nats_server, outcome?))
}

/// Carries out one plan.
struct Trial<'a> {
    stage: &'a mut Stage,
    watch: Watch,
    /// Since the placing process was started last.
    dispatching: Stopwatch,
    longest_overdue: Duration,
    drained_after: Duration,
    handled_after: Duration,
    ended_after: Duration,
    kills: Vec<KillResult>,
    version: String,
    books: Books,
}

impl<'a> Trial<'a> {
    async fn run(stage: &'a mut Stage, plan: &Plan, orders: &str) -> Result<Self, Error> {
        for role in Role::ALL {
            stage.start(role)?;
            stage.wait_until_ready(role)?;
        }
        let watch = Watch::new(stage).await?;
        let version = watch.orders().version().await?;
        let mut trial = Self {
            stage,
            watch,
            dispatching: Stopwatch::start(),
            longest_overdue: Duration::ZERO,
            drained_after: Duration::ZERO,
            handled_after: Duration::ZERO,
            ended_after: Duration::ZERO,
            kills: Vec::new(),
            version,
            books: Books::default(),
        };
        for kill in &plan.kills {
            trial.look_for(kill.after).await?;
            trial.kill(kill, plan.kills.len()).await?;
        }
        let expected = trial.end_of_input(orders).await?;
        trial.finish(&expected).await?;
        trial.watch.close().await;
        for role in Role::ALL.into_iter().rev() {
            trial.stage.stop(role)?;
        }
        trial.books = Books::balance(&expected, &trial.stage.read().await?);
        println!("{}", trial.books);
        Ok(trial)
    }

    async fn kill(&mut self, kill: &Kill, all: usize) -> Result<(), Error> {
        let victim = kill.victim;
        self.stage.kill(victim)?;
        let counts = self.watch.counts().await?;
        let (lines, ended, Counts { outbox, handled, .. }) = (counts.lines(), counts.ended(), counts);
        self.stage.set_pause(kill.pause);
        self.stage.start(victim)?;
        if victim == Role::Placing {
            self.dispatching = Stopwatch::start();
        }
        let (after_ms, pause_ms) = (kill.after.as_millis(), kill.pause.as_millis());
        let victim_name = victim.name();
        self.kills.push(KillResult {
            victim: victim_name,
            after_ms,
            pause_ms,
            lines,
            outbox,
            handled,
            ended,
        });
        println!(
            "{:>3}/{all}: the {victim_name:<8} process was killed after {after_ms:>4} ms, with {lines:>5} lines done, {outbox:>3} rows in the outbox, {handled:>5} events handled, {ended:>5} jobs ended",
            self.kills.len(),
        );
        Ok(())
    }

    /// Let them work for this long, with an eye on the outbox.
    async fn look_for(&mut self, time: Duration) -> Result<(), Error> {
        let waiting = Stopwatch::start();
        while let Some(left) = time.checked_sub(waiting.elapsed()).filter(|left| !left.is_zero()) {
            self.look().await?;
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<(), Error> {
        let overdue = self.watch.orders().longest_overdue().await?;
        self.longest_overdue = self.longest_overdue.max(overdue.min(self.dispatching.elapsed()));
        Ok(())
    }

    /// Stop placing in the middle of its work, and start it again with no line left to be placed.
    async fn end_of_input(&mut self, orders: &str) -> Result<Expected, Error> {
        self.stage.wait_until_ready(Role::Placing)?;
        self.stage.stop(Role::Placing)?;
        let done = usize::try_from(self.watch.counts().await?.lines())?;
        let orders: String = orders.split_inclusive('\n').take(done).collect();
        self.stage.set_orders(&orders)?;
        self.stage.start(Role::Placing)?;
        self.dispatching = Stopwatch::start();
        Expected::new(&orders, CATALOGUE)
    }

    /// Wait until all is sent and handled, and all jobs have ended.
    async fn finish(&mut self, expected: &Expected) -> Result<(), Error> {
        let orders = expected.placed.len() as u64;
        let (mut before, mut standstill) = (Counts::default(), Stopwatch::start());
        let (started, mut drained, mut handled) = (Stopwatch::start(), None, None);
        loop {
            for role in Role::ALL {
                self.stage.check(role)?;
            }
            self.look().await?;
            let counts = self.watch.counts().await?;
            drained = drained.or_else(|| (counts.outbox == 0).then(|| started.elapsed()));
            handled = handled.or_else(|| (counts.handled >= orders).then(|| started.elapsed()));
            let at_a_standstill = standstill.elapsed() > STANDSTILL_LIMIT;
            if at_a_standstill {
                eprintln!("nothing happens any more, but something is left to do: {counts:?}");
            }
            if counts.are_complete(expected) || at_a_standstill {
                self.drained_after = drained.unwrap_or(STANDSTILL_LIMIT);
                self.ended_after = started.elapsed();
                self.handled_after = handled.unwrap_or(self.ended_after);
                return Ok(());
            }
            if counts != before {
                (before, standstill) = (counts, Stopwatch::start());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn result(self, kind: Kind, started: &Stopwatch) -> DatabaseResult {
        let Settings { lease, ack_wait, .. } = *self.stage.settings();
        DatabaseResult {
            database: kind.to_string(),
            version: self.version,
            seconds: started.elapsed().as_secs_f64(),
            lease_ms: lease.as_millis(),
            ack_wait_ms: ack_wait.as_millis(),
            longest_overdue_ms: self.longest_overdue.as_millis(),
            overdue_limit_ms: OVERDUE_LIMIT.as_millis(),
            drained_after_ms: self.drained_after.as_millis(),
            drain_limit_ms: (lease + OVERDUE_LIMIT).as_millis(),
            handled_after_ms: self.handled_after.as_millis(),
            ended_after_ms: self.ended_after.as_millis(),
            books: self.books,
            kills: self.kills,
        }
    }
}
