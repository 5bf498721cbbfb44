//! The slots of a queue: tasks that live as long as its worker, so that a delivery costs no task of its own.
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trellis::{Contract, Service};

use crate::causes::said;
use crate::ctx::Ctx;
use crate::database::Database;
use crate::jobs::worker::delivery::Signal;
use crate::jobs::worker::live::Live;
use crate::jobs::worker::queue::Worker;

/// A delivery for a slot.
pub(crate) struct Order {
    pub(crate) signal: Signal,
    pub(crate) live: Arc<Live>,
}

/// As many as the worker's concurrency, started when they are needed.
pub(crate) struct Slots<S: Service, C: Contract, D: Database> {
    worker: Arc<Worker<S, C, D>>,
    interrupt: CancellationToken,
    tasks: JoinSet<()>,
    /// Where each slot takes its orders.
    orders: Vec<mpsc::Sender<Order>>,
    /// Slots without an order.
    idle: Vec<usize>,
    most: usize,
    tell: mpsc::UnboundedSender<usize>,
    told: mpsc::UnboundedReceiver<usize>,
}

impl<S, C, D> Slots<S, C, D>
where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    pub(crate) fn new(worker: Arc<Worker<S, C, D>>, interrupt: CancellationToken) -> Self {
        let most = worker.config.concurrency.into();
        // Bounded by the slots: each one has one order at a time.
        let (tell, told) = mpsc::unbounded_channel();
        let (tasks, orders, idle) = (JoinSet::new(), Vec::new(), Vec::new());
        Self { worker, interrupt, tasks, orders, idle, most, tell, told }
    }

    /// How many orders can be given now.
    pub(crate) fn free(&self) -> usize {
        self.idle.len() + (self.most - self.orders.len())
    }

    /// Give an order to a free slot. It comes back when there is none.
    pub(crate) fn give(&mut self, order: Order) -> Result<(), Order> {
        if self.idle.is_empty() && self.orders.len() < self.most {
            self.start_one();
        }
        let slot = self.idle.pop().and_then(|at| self.orders.get(at));
        match slot {
            Some(slot) => slot.try_send(order).map_err(mpsc::error::TrySendError::into_inner),
            None => Err(order),
        }
    }

    /// Ready when a slot has become free.
    ///
    /// Cancel safety: nothing is lost.
    pub(crate) async fn freed(&mut self) {
        // Never closed: this holds a sender.
        if let Some(at) = self.told.recv().await {
            self.idle.push(at);
        }
        while let Ok(at) = self.told.try_recv() {
            self.idle.push(at);
        }
    }

    /// Wait until every slot has ended its order.
    pub(crate) async fn end(mut self) {
        self.orders.clear();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a slot broke off, its job comes back after its ack wait");
            }
        }
    }

    fn start_one(&mut self) {
        let (orders, taken) = mpsc::channel(1);
        let at = self.orders.len();
        self.orders.push(orders);
        self.idle.push(at);
        let (worker, interrupt) = (Arc::clone(&self.worker), self.interrupt.clone());
        self.tasks.spawn(work(worker, taken, interrupt, at, self.tell.clone()));
    }
}

async fn work<S, C, D>(
    worker: Arc<Worker<S, C, D>>,
    mut orders: mpsc::Receiver<Order>,
    interrupt: CancellationToken,
    at: usize,
    tell: mpsc::UnboundedSender<usize>,
) where
    S: Service<Ctx = Ctx<C, D>>,
    C: Contract,
    D: Database,
{
    while let Some(Order { signal, live }) = orders.recv().await {
        let delivered = AssertUnwindSafe(worker.deliver(signal, live, &interrupt)).catch_unwind().await;
        if let Err(panic) = delivered {
            let reason = said(&*panic);
            tracing::error!(reason, "a delivery broke off, its job comes back after its ack wait");
        }
        if tell.send(at).is_err() {
            return;
        }
    }
}
