//! After a reconnect or while something is wrong: verify what is on the server, and make what is missing.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::causes::chain;
use crate::events::Provision;
use crate::outbox::Dispatcher;

/// How often the connection is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often streams are verified without a reconnect.
const VERIFY_EVERY: u32 = 120;
/// How often while something is wrong.
const VERIFY_EVERY_IN_TROUBLE: u32 = 4;

pub(crate) struct Supervisor {
    pub(crate) client: Client,
    pub(crate) provision: Arc<Provision>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    /// Why groups get no events.
    pub(crate) problems: Vec<watch::Receiver<Option<String>>>,
    /// Something may be missing.
    pub(crate) doubt: Arc<Notify>,
    /// `max_message_bytes`.
    pub(crate) accepted: usize,
    pub(crate) state: watch::Sender<Option<String>>,
    pub(crate) stop: CancellationToken,
}

impl Supervisor {
    pub(crate) async fn run(self) {
        let connects = || self.client.statistics().connects.load(Ordering::Relaxed);
        let (mut seen, mut looks) = (connects(), 0);
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.doubt.notified() => looks = VERIFY_EVERY,
                () = self.stop.cancelled() => return,
            }
            looks = looks.saturating_add(1);
            let every = if self.is_in_trouble() { VERIFY_EVERY_IN_TROUBLE } else { VERIFY_EVERY };
            let due = looks >= every || connects() != seen;
            if due && self.client.connection_state() == State::Connected {
                (seen, looks) = (connects(), 0);
                self.verify().await;
            }
        }
    }

    /// Whether anything fails that a missing stream could be the cause of.
    fn is_in_trouble(&self) -> bool {
        self.state.borrow().is_some()
            || self.dispatcher.paused().is_some()
            || self.problems.iter().any(|problem| problem.borrow().is_some())
    }

    async fn verify(&self) {
        let problem = match self.provision.streams().await {
            Ok(limit) => too_small(limit, self.accepted),
            Err(error) => Some(chain(&error)),
        };
        if let Some(problem) = &problem {
            tracing::warn!(problem, "the server is not as it must be");
        }
        self.state.send_replace(problem);
    }
}

/// What is wrong with the streams' limit, if anything.
pub(crate) fn too_small(limit: Option<usize>, accepted: usize) -> Option<String> {
    let limit = limit.filter(|limit| *limit < accepted)?;
    Some(format!("a stream takes messages of {limit} bytes, the outbox accepts {accepted}"))
}
