//! Whether a service can do its work now.
use async_nats::connection::State;
use trellis::Contract;

use crate::database::Database;
use crate::host::{Host, TaskState};

/// The state of a service, for a readiness probe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// What keeps it from its work, one sentence each. Empty when it is ready.
    pub problems: Vec<String>,
}

impl Health {
    /// Whether nothing keeps the service from its work.
    pub fn is_ready(&self) -> bool {
        self.problems.is_empty()
    }
}

impl<C: Contract, D: Database> Host<C, D> {
    /// What keeps the service from its work, seen from here and now. Asks nobody; for the rows of
    /// the outbox ask [`SqlOutbox::stats`](crate::SqlOutbox::stats).
    pub fn health(&self) -> Health {
        let mut problems = Vec::new();
        if self.stop.is_cancelled() {
            problems.push("the service is stopping".to_owned());
        }
        let state = self.client.connection_state();
        if state != State::Connected {
            problems.push(format!("no connection to the NATS server ({state})"));
        }
        let (limit, accepted) = (self.client.max_payload(), self.outbox.config().max_message_bytes);
        if limit < accepted {
            problems
                .push(format!("the server takes messages of {limit} bytes, the outbox accepts {accepted}"));
        }
        problems.extend(self.provisioned.borrow().clone());
        problems.extend(self.dispatcher.paused().map(|reason| format!("the dispatcher is paused: {reason}")));
        let problem = |task: &TaskState| {
            let gone = task.problem.has_changed().is_err() && !self.stop.is_cancelled();
            let problem = gone.then(|| "its task has ended".to_owned());
            problem.or_else(|| task.problem.borrow().clone())
        };
        for group in &self.groups {
            problems.extend(
                problem(group).map(|reason| format!("group `{}` gets no events: {reason}", group.name)),
            );
        }
        for worker in &self.workers {
            problems.extend(
                problem(worker).map(|reason| format!("worker `{}` gets no jobs: {reason}", worker.name)),
            );
        }
        Health { problems }
    }
}
