//! Carries out one plan: creates the jobs, makes the moves, waits for the ends, balances the books.
use std::time::Duration;

use futures_util::StreamExt;
use orders_demo::Error;
use testbed::Stopwatch;
use trellis_runtime::{CreateError, Nats};

use super::Proof;
use super::books::{Books, job_id};
use super::plan::{Move, Plan, What};
use super::stage::{Settings, Stage};
use super::worker::work::{JOB, Task};

const ACK_WAIT: Duration = Duration::from_secs(2);
/// How long past its ack wait a worker stays frozen.
const BEYOND: Duration = Duration::from_millis(700);
/// How long nothing may happen before the books are read as they are.
const STANDSTILL: Duration = Duration::from_secs(60);
/// Jobs created at once.
const CREATING: usize = 64;

pub(super) async fn run(plan: &Plan) -> Result<Proof, Error> {
    let started = Stopwatch::start();
    let mut stage = Stage::set_up(Settings { ack_wait: ACK_WAIT, concurrency: 32 }).await?;
    for which in 0..2 {
        stage.start(which)?;
    }
    let creating = tokio::spawn(create(stage.nats(), plan.tasks.clone()));
    let (mut revived, mut moves) = (0, Vec::new());
    for (at, one) in plan.moves.iter().enumerate() {
        tokio::time::sleep(one.after).await;
        make(&mut stage, one).await?;
        revived += stage.revive()?;
        println!("{:>3}/{}: {:?} after {} ms", at + 1, plan.moves.len(), one.what, one.after.as_millis());
        moves.push(format!("{:?} after {} ms", one.what, one.after.as_millis()));
    }
    creating.await??;
    revived += until_all_ended(&mut stage).await?;
    let books = Books::balance(&plan.tasks, &stage.entries().await?, &stage.effects().await?);
    for which in 0..2 {
        stage.stop(which)?;
    }
    let proof = Proof {
        name: "jobs",
        seed: 0,
        holds: books.are_balanced(),
        nats_server: stage.server.binary().version.to_string(),
        trellis: env!("CARGO_PKG_VERSION"),
        seconds: started.elapsed().as_secs_f64(),
        ack_wait_ms: ACK_WAIT.as_millis(),
        thaw: super::thaw::Outcome::default(),
        revived,
        moves,
        books,
    };
    if !proof.holds {
        eprintln!("logs: {}", stage.keep().display());
    }
    Ok(proof)
}

/// Create every job, again where it is not certain that one exists.
async fn create(nats: Nats, tasks: Vec<Task>) -> Result<(), Error> {
    let creating = futures_util::stream::iter(tasks).map(|task| {
        let nats = nats.clone();
        async move {
            loop {
                let created = JOB.work.task.create(&nats, task.clone()).id(job_id(task.number)).await;
                match created {
                    Ok(_) => return Ok::<_, Error>(()),
                    Err(CreateError::NotCreated { .. } | CreateError::Undecided { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    });
    let mut creating = creating.buffer_unordered(CREATING);
    while let Some(created) = creating.next().await {
        created?;
    }
    Ok(())
}

async fn make(stage: &mut Stage, one: &Move) -> Result<(), Error> {
    match one.what {
        What::Kill(which) => {
            stage.worker(which)?.kill_hard()?;
            stage.launch(which)
        }
        What::Freeze(which) => {
            stage.worker(which)?.suspend()?;
            tokio::time::sleep(ACK_WAIT + BEYOND).await;
            Ok(stage.worker(which)?.resume()?)
        }
        What::Stop(which) => {
            stage.worker(which)?.terminate()?;
            let status = stage.worker(which)?.wait_timeout(Duration::from_secs(60))?;
            if status.is_none() {
                return Err(format!("worker {which} did not stop when it was told to").into());
            }
            stage.launch(which)
        }
        What::KillServer => {
            stage.server.kill()?;
            Ok(stage.server.restart()?)
        }
    }
}

/// Wait until every job has ended, or nothing happens any more.
async fn until_all_ended(stage: &mut Stage) -> Result<usize, Error> {
    let (mut before, mut standstill, mut revived) = (0, Stopwatch::start(), 0);
    loop {
        revived += stage.revive()?;
        let messages = stage.messages().await?;
        // Every signal is settled: then every job has ended, or it never will.
        if stage.consumer().await? == (0, 0) {
            return Ok(revived);
        }
        if messages != before {
            (before, standstill) = (messages, Stopwatch::start());
        }
        if standstill.elapsed() > STANDSTILL {
            eprintln!("nothing happens any more, but something is left to do");
            return Ok(revived);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
