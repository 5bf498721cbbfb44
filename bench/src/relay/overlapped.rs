//! The ideal loop: three stages at once, one claims pages, one publishes them, one removes them.
//!
//! It does what a relay must and nothing else: no ordering keys, no back-off, no dead rows, no
//! fencing of what it removes, one process.

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::message::PublishMessage;
use sqlx::Pool;
use testbed::Stopwatch;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::Result;
use crate::database::{Dialect, Row};
use crate::message::decode_headers;

const PAGE: i64 = 500;
/// Pages that wait between two stages.
const BETWEEN_STAGES: usize = 2;
/// Pages whose acknowledgements are under way.
const IN_FLIGHT: usize = 2;

/// A page that was published, its acknowledgements still to come.
struct Sent {
    ids: Vec<String>,
    acks: Vec<PublishAckFuture>,
}

pub(crate) async fn relay<D: Dialect>(pool: &Pool<D>, js: &jetstream::Context) -> Result<Duration> {
    let stopwatch = Stopwatch::start();
    let (claimed, to_publish) = channel(BETWEEN_STAGES);
    let (acknowledged, to_remove) = channel(BETWEEN_STAGES);
    let claiming = tokio::spawn(claim::<D>(pool.clone(), claimed));
    let publishing = tokio::spawn(publish(js.clone(), to_publish, acknowledged));
    remove(pool, to_remove).await?;
    claiming.await??;
    publishing.await??;
    Ok(stopwatch.elapsed())
}

async fn claim<D: Dialect>(pool: Pool<D>, claimed: Sender<Vec<Row>>) -> Result<()> {
    loop {
        let page = D::claim(&pool, PAGE).await?;
        if page.is_empty() || claimed.send(page).await.is_err() {
            return Ok(());
        }
    }
}

async fn publish(
    js: jetstream::Context,
    mut to_publish: Receiver<Vec<Row>>,
    acknowledged: Sender<Vec<String>>,
) -> Result<()> {
    let mut in_flight = VecDeque::new();
    loop {
        if let Some(page) = next_page(&mut to_publish, in_flight.len()).await {
            in_flight.push_back(send(&js, page).await?);
            if in_flight.len() < IN_FLIGHT {
                continue;
            }
        }
        let Some(sent) = in_flight.pop_front() else { return Ok(()) };
        acknowledged.send(all_acknowledged(sent).await?).await?;
    }
}

/// Wait for a page only when there is no acknowledgement to wait for.
async fn next_page(to_publish: &mut Receiver<Vec<Row>>, in_flight: usize) -> Option<Vec<Row>> {
    match in_flight {
        0 => to_publish.recv().await,
        IN_FLIGHT.. => None,
        _ => to_publish.try_recv().ok(),
    }
}

async fn send(js: &jetstream::Context, page: Vec<Row>) -> Result<Sent> {
    let mut sent = Sent { ids: Vec::with_capacity(page.len()), acks: Vec::with_capacity(page.len()) };
    for row in page {
        let (id, ack) = send_row(js, row).await?;
        sent.ids.push(id);
        sent.acks.push(ack);
    }
    Ok(sent)
}

/// Publish one row; its acknowledgement is still to come.
pub(super) async fn send_row(js: &jetstream::Context, row: Row) -> Result<(String, PublishAckFuture)> {
    let message = PublishMessage::build().headers(decode_headers(&row.headers)?).payload(row.body);
    Ok((row.id, js.send_publish(row.subject, message).await?))
}

async fn all_acknowledged(sent: Sent) -> Result<Vec<String>> {
    for ack in sent.acks {
        ack.await?;
    }
    Ok(sent.ids)
}

async fn remove<D: Dialect>(pool: &Pool<D>, mut to_remove: Receiver<Vec<String>>) -> Result<()> {
    while let Some(ids) = to_remove.recv().await {
        D::delete(pool, ids).await?;
    }
    Ok(())
}
