//! One thread that starts all children, because Linux ends a child with the *thread* that started it.
//!
//! `setpriv --pdeathsig` means the parent thread; tests run in threads that end long before a shared server should.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::command;

type Job = (Command, Sender<io::Result<Child>>);

/// Starts the command from the thread that lives as long as this process.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static JOBS: OnceLock<Sender<Job>> = OnceLock::new();
    let jobs = JOBS.get_or_init(start_thread);

    let (answer, answered) = channel();
    jobs.send((command, answer)).map_err(io::Error::other)?;
    answered.recv().map_err(io::Error::other)?
}

fn start_thread() -> Sender<Job> {
    let (jobs, received) = channel::<Job>();
    let work = move || {
        for (mut command, answer) in received {
            // A caller that no longer listens has panicked while waiting: nothing to tell it.
            drop(answer.send(command::spawn(&mut command)));
        }
    };
    // If the thread cannot be started, the receiver is gone and `send` reports it.
    drop(thread::Builder::new().name("testbed-spawner".into()).spawn(work));
    jobs
}
