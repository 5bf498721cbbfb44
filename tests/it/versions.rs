//! The servers that are promised to work: commit, handle, give up on each.
use testbed::nats::{Options, Server, fetch};
use trellis::HandlerError;
use trellis_runtime::GroupConfig;

use crate::support::contract::notes;
use crate::support::nats::Nats;
use crate::support::reader::{Reader, SOON, add, host, quick};
use crate::support::{Bed, until};

async fn commits_handles_and_gives_up(version: &'static str) {
    let binary = tokio::task::spawn_blocking(move || fetch(version).unwrap()).await.unwrap();
    let nats = Nats::on(Server::start(&binary, Options::default()).unwrap()).await;
    let bed = Bed::<sqlx::Sqlite>::new(4).await;
    let (reader, heard) = Reader::new(|_, seen| {
        Box::pin(async move { if seen.number == 1 { Err(HandlerError::retry("no")) } else { Ok(()) } })
    });
    let config = GroupConfig { max_deliveries: 2, ..quick() };
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(config).start().await.unwrap();
    add(&host.ctx(), [1, 2]).await;
    let mut numbers = heard.numbers(3).await;
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 1, 2]);
    until("a dead letter", SOON, || async { nats.count("TRELLIS_DEAD").await == 1 }).await;
    assert!(host.health().is_ready(), "{:?}", host.health());
    host.stop().await;
    let consumer = nats.consumer("test-notes--readers").await;
    assert_eq!((consumer.num_ack_pending, consumer.num_pending), (0, 0));
    assert_eq!(bed.rows().await, 0);
}

#[tokio::test]
async fn on_2_11() {
    commits_handles_and_gives_up("2.11.11").await;
}

#[tokio::test]
async fn on_2_12() {
    commits_handles_and_gives_up("2.12.8").await;
}

#[tokio::test]
async fn on_2_15() {
    commits_handles_and_gives_up("2.15.1").await;
}
