//! The demo: the orders example from end to end, with a SIGKILL for each of its processes half-way.
mod progress;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use orders_demo::{Binaries, Books, Counts, Error, Expected, Kind, Role, Settings, Stage, Watch};
use testbed::Stopwatch;

use crate::progress::Progress;

const ORDERS: &str = include_str!("../../data/orders.jsonl");
const CATALOGUE: &str = include_str!("../../data/catalogue.json");

/// How often the databases are asked.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long nothing may happen before the books are read as they are.
const STANDSTILL_LIMIT: Duration = Duration::from_secs(20);

#[derive(Parser)]
#[command(
    about = "Run the orders example from end to end: place, handle, mail, kill, start again, balance the books"
)]
struct Args {
    /// Keep the state in PostgreSQL instead of SQLite
    #[arg(long)]
    postgres: bool,
    /// Leave databases and logs behind
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_env_filter("warn").with_writer(std::io::stderr).init();
    match run(&Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<bool, Error> {
    let kind = if args.postgres { Kind::Postgres } else { Kind::Sqlite };
    let binaries = Binaries::build()?;
    let mut stage = Stage::set_up(kind, binaries, (ORDERS, CATALOGUE), Settings::default())?;
    let outcome = Demo::run(&mut stage, kind).await;
    if args.keep || !matches!(outcome, Ok(true)) {
        eprintln!("databases and logs: {}", stage.keep().display());
    }
    outcome
}

struct Demo<'a> {
    stage: &'a mut Stage,
    watch: Watch,
    progress: Progress,
}

impl<'a> Demo<'a> {
    async fn run(stage: &'a mut Stage, kind: Kind) -> Result<bool, Error> {
        let expected = Expected::new(ORDERS, CATALOGUE)?;
        let progress = Progress::new(&expected);
        progress.say(&format!("nats-server {} runs, the state is kept in {kind}", stage.nats_version()));
        for role in Role::ALL {
            let pid = stage.start(role)?;
            stage.wait_until_ready(role)?;
            progress.say(&format!("the {} process runs (pid {pid})", role.name()));
        }
        let watch = Watch::new(stage).await?;
        let mut demo = Self { stage, watch, progress };

        let (lines, orders) = (expected.lines as u64, expected.placed.len() as u64);
        demo.wait_until(|counts| counts.lines() >= lines / 2).await?;
        demo.kill_and_restart(Role::Placing)?;
        demo.wait_until(|counts| counts.handled >= orders * 6 / 10).await?;
        demo.kill_and_restart(Role::Handling)?;
        demo.wait_until(|counts| counts.ended() >= orders * 7 / 10).await?;
        demo.kill_and_restart(Role::Mailing)?;
        let counts = demo.wait_until(|counts| counts.are_complete(&expected)).await?;
        demo.progress.finish(&counts);
        demo.watch.close().await;
        for role in Role::ALL.into_iter().rev() {
            demo.stage.stop(role)?;
            demo.progress.say(&format!("the {} process was told to stop and did", role.name()));
        }

        let books = Books::balance(&expected, &demo.stage.read().await?);
        let verdict = if books.are_balanced() { "they balance" } else { "they do NOT balance" };
        println!(
            "\nThe books, by distinct order id, from both databases, both streams and the mail server: {verdict}\n{books}"
        );
        Ok(books.are_balanced())
    }

    fn kill_and_restart(&mut self, role: Role) -> Result<(), Error> {
        let killed = self.stage.kill(role)?;
        let started = self.stage.start(role)?;
        let name = role.name();
        self.progress.say(&format!(
            "the {name} process (pid {killed}) was killed with SIGKILL and started again (pid {started})"
        ));
        Ok(())
    }

    /// Wait until this is reached, or until nothing happens any more: then the books say what is missing.
    async fn wait_until(&mut self, reached: impl Fn(&Counts) -> bool) -> Result<Counts, Error> {
        let (mut before, mut standstill) = (Counts::default(), Stopwatch::start());
        loop {
            for role in Role::ALL {
                self.stage.check(role)?;
            }
            let counts = self.watch.counts().await?;
            self.progress.show(&counts);
            if reached(&counts) {
                return Ok(counts);
            }
            if counts != before {
                (before, standstill) = (counts, Stopwatch::start());
            }
            if standstill.elapsed() > STANDSTILL_LIMIT {
                self.progress.say("nothing happens any more, but something is left to do");
                return Ok(counts);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
