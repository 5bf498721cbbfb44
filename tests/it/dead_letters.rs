//! What a group gives up is kept, with its reason; and the group goes on.
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Message;
use futures_util::FutureExt;
use testbed::nats::Options;
use trellis::HandlerError;
use trellis_runtime::{GroupConfig, OutboxConfig, SqlOutbox};

use crate::support::contract::notes;
use crate::support::nats::Nats;
use crate::support::reader::{Reader, SOON, add, host, host_of, quick};
use crate::support::{Bed, until};

type Db = sqlx::Sqlite;

fn header<'a>(message: &'a Message, name: &str) -> &'a str {
    message.headers.as_ref().unwrap().get(name).map_or("", |value| value.as_str())
}

/// Wait for so many dead letters.
async fn dead(nats: &Nats, count: u64) -> Vec<Message> {
    until("dead letters are written", SOON, || async { nats.count("TRELLIS_DEAD").await >= count }).await;
    let letters = nats.messages("TRELLIS_DEAD").await;
    assert_eq!(letters.len() as u64, count);
    letters
}

/// Publish as something else than an outbox would.
async fn publish(nats: &Nats, subject: &'static str, headers: HeaderMap, body: &str) {
    let sent = nats.context.publish_with_headers(subject, headers, body.to_owned().into());
    sent.await.unwrap().await.unwrap();
}

/// After the last delivery the event is in the dead stream, and later events are handled.
#[tokio::test]
async fn the_last_failure_makes_a_dead_letter() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::new(|_, seen| {
        Box::pin(async move { if seen.number == 1 { Err(HandlerError::retry("no\nstock")) } else { Ok(()) } })
    });
    let config = GroupConfig { max_deliveries: 3, ..quick() };
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(config).start().await.unwrap();
    add(&host.ctx(), [1]).await;
    let first = heard.next().await;
    let letter = dead(&nats, 1).await.remove(0);
    assert_eq!(letter.subject.as_str(), "dead.v1.test-notes.readers.notes.added");
    assert_eq!(header(&letter, "Trellis-Root-Id"), first.root_id);
    assert_eq!(header(&letter, "Trellis-Dead-Reason"), "delivered 3 times, the limit is 3: no stock");
    assert_eq!(header(&letter, "Trellis-Deliveries"), "3");
    assert_eq!(header(&letter, "Trellis-Dead-Subject"), "events.v1.notes.added");
    assert_eq!(header(&letter, "Trellis-Dead-Sequence"), "1");
    assert_eq!(header(&letter, "Trellis-Event-Descriptor"), "v1 test.notes@v1 notes.added 0");
    assert_eq!(letter.payload.as_ref(), br#"{"number":1,"text":"note 1"}"#);
    add(&host.ctx(), [2]).await;
    assert_eq!(heard.numbers(3).await, [1, 1, 2]);
    host.stop().await;
    assert_eq!(nats.consumer("test-notes--readers").await.num_ack_pending, 0);
}

/// `HandlerError::dead` needs no second delivery; and a redrive that fails again is news, also
/// within the stream's duplicate window.
#[tokio::test]
async fn a_hopeless_event_is_dead_at_once_and_each_time() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::new(|_, _| Box::pin(async { Err(HandlerError::dead("never")) }));
    let host = host(&bed, &nats, &reader).mount::<notes::Readers>().start().await.unwrap();
    add(&host.ctx(), [1]).await;
    let letter = dead(&nats, 1).await.remove(0);
    assert_eq!(
        (header(&letter, "Trellis-Dead-Reason"), header(&letter, "Trellis-Deliveries")),
        ("never", "1")
    );
    let root = heard.next().await.root_id;

    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", "redriven");
    headers.insert("Trellis-Root-Id", root.as_str());
    publish(&nats, "events.v1.notes.added", headers, r#"{"number":1,"text":""}"#).await;
    let again = dead(&nats, 2).await.remove(1);
    assert_eq!(header(&again, "Trellis-Root-Id"), root);
    host.stop().await;
}

/// A panic is a failure like any other.
#[tokio::test]
async fn a_panic_is_tried_again_and_the_host_lives() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::new(|_, seen| {
        assert!(seen.number != 2, "panic before the first await");
        Box::pin(async move {
            assert!(seen.number != 1, "panic {}", seen.number);
            Ok(())
        })
    });
    let config = GroupConfig { max_deliveries: 2, ..quick() };
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(config).start().await.unwrap();
    add(&host.ctx(), [1, 2, 3]).await;
    let letters = dead(&nats, 2).await;
    let mut reasons: Vec<&str> = letters.iter().map(|letter| header(letter, "Trellis-Dead-Reason")).collect();
    reasons.sort_unstable();
    assert_eq!(
        reasons,
        [
            "delivered 2 times, the limit is 2: the handler panicked: panic 1",
            "delivered 2 times, the limit is 2: the handler panicked: panic before the first await"
        ]
    );
    let mut numbers = heard.numbers(5).await;
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 1, 2, 2, 3]);
    assert!(host.health().is_ready());
    host.stop().await;
}

const ADDED: &str = "events.v1.notes.added";
const MOVED: &str = "events.v1.notes.moved.eu";

/// What cannot be read is dead at once, and the reason names the place.
#[tokio::test]
async fn an_unreadable_event_is_dead_and_its_reason_names_the_place() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::content();
    let host = host(&bed, &nats, &reader).mount::<notes::Readers>().start().await.unwrap();
    let good = r#"{"number":1,"text":""}"#;
    let cases = [
        (ADDED, None, "{\"number\":", "payload at `number`: EOF"),
        (ADDED, None, r#"{"number":"one","text":""}"#, "payload at `number`: invalid type: string \"one\""),
        (ADDED, None, r#"{"text":""}"#, "missing field `number`"),
        (ADDED, None, r#"{"number":1,"text":""} more"#, "trailing characters"),
        (MOVED, None, r#"{"key":1,"region":"eu","step":0}"#, "`/step`: 0 is less than the minimum of 1"),
        (
            ADDED,
            Some("v1 test.notes@v1 notes.moved 1"),
            good,
            "`v1 test.notes@v1 notes.moved 1` where the subject is of `v1 test.notes@v1 notes.added 0`",
        ),
        (ADDED, Some("v1 other.notes@v1 notes.added 0"), good, "`v1 other.notes@v1 notes.added 0`"),
        (
            ADDED,
            Some("v2 test.notes@v1 notes.added 0 zstd"),
            good,
            "descriptor `v2 test.notes@v1 notes.added 0 zstd` is of a format that this version does not know",
        ),
    ];
    for (at, (subject, descriptor, body, reason)) in (1..).zip(cases) {
        let mut headers = HeaderMap::new();
        if let Some(descriptor) = descriptor {
            headers.insert("Trellis-Event-Descriptor", descriptor);
        }
        publish(&nats, subject, headers, body).await;
        let letter = dead(&nats, at).await.pop().unwrap();
        let found = header(&letter, "Trellis-Dead-Reason");
        assert!(found.contains(reason), "{found}");
        assert_eq!(header(&letter, "Trellis-Deliveries"), "1");
        assert_eq!(letter.payload.as_ref(), body.as_bytes());
    }
    publish(&nats, ADDED, HeaderMap::new(), good).await;
    assert_eq!(heard.next().await.number, 1);
    host.stop().await;
}

/// An event that fits, but not together with a dead letter's headers, leaves its body behind and says so.
#[tokio::test]
async fn a_dead_letter_of_a_large_event_has_no_body_and_says_so() {
    let bed = Bed::<Db>::new(4).await;
    let nats = Nats::start_with(Options { max_payload: Some(8192), ..Options::default() }).await;
    let (reader, _heard) = Reader::new(|_, _| Box::pin(async { Err(HandlerError::dead("never")) }));
    let config = OutboxConfig { max_message_bytes: 8192, ..OutboxConfig::default() };
    let outbox = SqlOutbox::builder(bed.pool.clone()).config(config).build().unwrap();
    let host = host_of(outbox, &nats, &reader).mount::<notes::Readers>().start().await.unwrap();
    let body = format!(r#"{{"number":1,"text":"{}"}}"#, "x".repeat(8192 - 23));
    assert_eq!(body.len(), 8191);
    nats.context.publish("events.v1.notes.added", body.into()).await.unwrap().await.unwrap();
    let letter = dead(&nats, 1).await.remove(0);
    assert_eq!(header(&letter, "Trellis-Dead-Reason"), "[body of 8191 bytes left out: too large] never");
    assert_eq!(header(&letter, "Trellis-Dead-Sequence"), "1");
    assert!(letter.payload.is_empty());
    host.stop().await;
}

/// Without the dead stream nothing is given up: the event comes back until the stream is there again.
#[tokio::test]
async fn without_the_dead_stream_an_event_comes_back() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::new(|_, _| Box::pin(async { Err(HandlerError::dead("never")) }));
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(quick()).start().await.unwrap();
    nats.context.delete_stream("TRELLIS_DEAD").await.unwrap();
    add(&host.ctx(), [1]).await;
    let letter = dead(&nats, 1).await.remove(0);
    let seen = [heard.next().await, heard.next().await];
    assert_eq!((seen[0].number, seen[1].number, seen[1].deliveries), (1, 1, 2));
    assert_eq!(header(&letter, "Trellis-Root-Id"), seen[0].root_id);
    assert_eq!(nats.stored().await, 1);
    host.stop().await;
}

/// An event that ends its process each time fails no handler. It is given up all the same.
#[tokio::test]
async fn an_event_that_is_never_ended_is_given_up() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::new(|_, seen| {
        Box::pin(async move { if seen.number == 1 { std::future::pending().await } else { Ok(()) } })
    });
    let config =
        GroupConfig { max_deliveries: 1, ack_wait: Duration::from_secs(1), ..GroupConfig::default() };
    let start = || host(&bed, &nats, &reader).mount_with::<notes::Readers>(config.clone()).start();
    let first = start().await.unwrap();
    add(&first.ctx(), [1]).await;
    let mut running = first;
    for deliveries in 1..=3 {
        assert_eq!(heard.next().await.deliveries, deliveries);
        // As a crash would.
        drop(running);
        running = start().await.unwrap();
    }
    let letter = dead(&nats, 1).await.remove(0);
    assert!(header(&letter, "Trellis-Dead-Reason").starts_with("delivered 4 times without an end"));
    add(&running.ctx(), [2]).await;
    assert_eq!(heard.next().await.number, 2);
    assert!(running.stop().now_or_never().is_none());
    running.stop().await;
}
