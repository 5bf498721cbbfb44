//! One suite for everything that is an outbox: the real ones, joined ones, the one in memory.
use trellis::Outbox;
use trellis_runtime::testing::MemoryOutbox;
use trellis_runtime::{OutboxError, OutboxErrorKind};

use crate::on_both_databases;
use crate::support::contract::{Added, EVENT, Moved, added, moved};
use crate::support::{Bed, TestDb};

/// What every outbox does.
async fn conforms<O: Outbox<Error = OutboxError>>(outbox: &mut O) {
    let first = EVENT.notes.added.enqueue(outbox, added(1)).await.unwrap();
    let second = EVENT.notes.added.enqueue(outbox, added(1)).await.unwrap();
    assert_ne!(first, second, "two enqueues are two messages");

    let chosen = EVENT.notes.added.enqueue(outbox, added(2)).id("two").await.unwrap();
    assert_eq!(chosen.as_str(), "two");
    let again = EVENT.notes.added.enqueue(outbox, added(2)).id("two").await.unwrap();
    assert_eq!(again.as_str(), "two", "the same content under the same id is the stored row");
    let other = EVENT.notes.added.enqueue(outbox, added(3)).id("two").await.unwrap_err();
    assert_eq!(other.kind(), OutboxErrorKind::Duplicate);
    assert!(other.to_string().contains("`two` is taken by other content (`notes.added`)"), "{other}");

    let bad_id = EVENT.notes.added.enqueue(outbox, added(4)).id("a b").await.unwrap_err();
    assert_eq!(bad_id.kind(), OutboxErrorKind::Invalid);

    let invalid = EVENT.notes.moved.enqueue(outbox, moved(1, 0)).await.unwrap_err();
    assert!(
        matches!(&invalid, OutboxError::Invalid(invalid) if invalid.name == "notes.moved" && invalid.path == "/step"),
        "{invalid:?}"
    );
    assert!(invalid.to_string().contains("less than the minimum of 1"), "{invalid}");

    let large = Added { number: 5, text: "x".repeat(1 << 20) };
    let too_large = EVENT.notes.added.enqueue(outbox, large).await.unwrap_err();
    assert!(matches!(too_large, OutboxError::TooLarge { limit: 1_048_576, .. }), "{too_large:?}");

    EVENT.notes.moved.enqueue(outbox, moved(7, 1)).await.unwrap();
    EVENT.notes.moved.enqueue(outbox, moved(7, 2)).ordered_by("other").await.unwrap();
    let long_key =
        EVENT.notes.moved.enqueue(outbox, moved(7, 3)).ordered_by("k".repeat(2000)).await.unwrap_err();
    assert!(matches!(long_key, OutboxError::KeyTooLong { limit: 1024, .. }), "{long_key:?}");
}

#[tokio::test]
async fn the_outbox_in_memory_conforms() {
    let mut outbox = MemoryOutbox::default();
    conforms(&mut outbox).await;
    assert_eq!(outbox.len(), 5);
    assert_eq!(outbox.order_keys(), [None, None, None, Some("key=7"), Some("other")]);
    assert_eq!(outbox.subjects()[3], "events.v1.notes.moved.e~2E~u");
    assert_eq!(outbox.enqueued::<Added>(), [added(1), added(1), added(2)]);
    outbox.assert_enqueued::<Moved>(|moved| moved.step == 2);
}

#[test]
#[should_panic(expected = "no `notes.moved` as expected was enqueued; enqueued was: nothing")]
fn a_missing_message_is_told_with_what_there_is() {
    MemoryOutbox::default().assert_enqueued::<Moved>(|_| true);
}

/// A transaction of ours conforms, and what it leaves in the table is what was asked for.
async fn a_transaction_conforms<D: TestDb>() {
    let bed = Bed::<D>::new(2).await;
    let mut tx = bed.outbox().begin().await.unwrap();
    conforms(&mut tx).await;
    tx.commit().await.unwrap();
    stored_as_asked(&bed).await;
}

/// A joined transaction conforms.
async fn a_joined_transaction_conforms<D: TestDb>() {
    let bed = Bed::<D>::new(2).await;
    let begin = if D::NAME == "SQLite" { "BEGIN IMMEDIATE" } else { "BEGIN" };
    let mut tx = bed.pool.begin_with(begin).await.unwrap();
    let mut joined = bed.outbox().join(&mut tx);
    conforms(&mut joined).await;
    let wake = joined.into_wake();
    tx.commit().await.unwrap();
    wake.wake();
    stored_as_asked(&bed).await;
}

async fn stored_as_asked<D: TestDb>(bed: &Bed<D>) {
    assert_eq!(bed.rows().await, 5);
    let text = |sql: &'static str| async move { bed.text(sql).await };
    assert_eq!(
        text("SELECT order_key FROM trellis_outbox WHERE subject = 'events.v1.notes.moved.e~2E~u' ORDER BY seq LIMIT 1").await.as_deref(),
        Some("key=7")
    );
    assert_eq!(
        text("SELECT order_key FROM trellis_outbox ORDER BY seq DESC LIMIT 1").await.as_deref(),
        Some("other")
    );
    let headers = text("SELECT headers FROM trellis_outbox WHERE id = 'two'").await.unwrap();
    assert!(headers.contains(r#""Nats-Msg-Id":"two""#), "{headers}");
    assert!(headers.contains(r#""Trellis-Event-Descriptor":"v1 test.notes@v1 notes.added 0""#), "{headers}");
}

on_both_databases!(a_transaction_conforms, a_joined_transaction_conforms);
