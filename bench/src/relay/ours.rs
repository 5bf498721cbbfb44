//! Ours: a dispatcher at its default settings, from its start until the table is empty.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use testbed::Stopwatch;
use trellis_runtime::broker::NatsBroker;
use trellis_runtime::{Dispatcher, SqlOutbox};

use crate::Result;
use crate::database::{ANY_OURS, Dialect};

const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Far longer than any backlog here takes.
const LIMIT: Duration = Duration::from_mins(2);

pub(crate) async fn relay<D: Dialect>(
    outbox: &SqlOutbox<D>,
    pool: &Pool<D>,
    client: async_nats::Client,
    stream: &str,
    rows: u32,
) -> Result<Duration> {
    let broker = NatsBroker::new(client, stream, outbox.config().ack_timeout);
    let stopwatch = Stopwatch::start();
    let dispatcher = Dispatcher::start(outbox, Arc::new(broker));
    let emptied = tokio::time::timeout(LIMIT, emptied(&dispatcher, pool, rows)).await;
    let took = stopwatch.elapsed();
    dispatcher.stop(Duration::ZERO).await;
    emptied.map_err(|_| format!("the dispatcher did not finish: {:?}", dispatcher.stats()))??;
    Ok(took)
}

/// Ask the dispatcher, which costs nothing, until it has sent all; then the table, which counts.
async fn emptied<D: Dialect>(dispatcher: &Dispatcher, pool: &Pool<D>, rows: u32) -> Result<()> {
    while dispatcher.stats().sent < u64::from(rows) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    while D::count(pool, ANY_OURS).await? > 0 {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}
