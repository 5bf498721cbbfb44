//! Everything that is an outbox takes jobs.
use trellis::Outbox;
use trellis_runtime::testing::MemoryOutbox;
use trellis_runtime::{OutboxError, OutboxErrorKind};

use crate::outbox_jobs::{JOB, Letter, letter};
use crate::support::{Bed, TestDb};

/// Everything that is an outbox takes jobs alike.
async fn conforms<O: Outbox<Error = OutboxError>>(outbox: &mut O) {
    let first = JOB.post.letter.create(&mut *outbox, letter(1)).await.unwrap();
    let second = JOB.post.letter.create(&mut *outbox, letter(1)).await.unwrap();
    assert_ne!(first, second, "two are two");
    JOB.post.letter.create(&mut *outbox, letter(2)).id("two").await.unwrap();
    let again = JOB.post.letter.create(&mut *outbox, letter(2)).id("two").await.unwrap();
    assert_eq!(again.as_str(), "two");
    let other = JOB.post.letter.create(&mut *outbox, letter(3)).id("two").await.unwrap_err();
    assert!(matches!(&other, OutboxError::DuplicateId { id, .. } if id == "two"), "{other:?}");
    let bad_id = JOB.post.letter.create(&mut *outbox, letter(4)).id("a.b").await.unwrap_err();
    assert_eq!(bad_id.kind(), OutboxErrorKind::Invalid);
    let invalid = JOB.post.letter.create(&mut *outbox, letter(1_000_001)).await.unwrap_err();
    assert_eq!(invalid.kind(), OutboxErrorKind::Invalid);
}

#[tokio::test]
async fn the_outbox_in_memory_takes_jobs() {
    let mut outbox = MemoryOutbox::default();
    conforms(&mut outbox).await;
    assert_eq!(outbox.created::<Letter>(), [letter(1), letter(1), letter(2)]);
    outbox.assert_created::<Letter>(|letter| letter.number == 2);
    assert_eq!(outbox.subjects()[2], "trellis.jobs.test-post.post-letter.two.created");
    assert_eq!(outbox.len(), 3);
}

/// So do the real ones: ours, and joined.
async fn the_real_ones_take_jobs<D: TestDb>() {
    let bed = Bed::<D>::new(2).await;
    let outbox = bed.outbox();
    let mut tx = outbox.begin().await.unwrap();
    conforms(&mut tx).await;
    tx.rollback().await.unwrap();
    let begin = if D::NAME == "SQLite" { "BEGIN IMMEDIATE" } else { "BEGIN" };
    let mut tx = bed.pool.begin_with(begin).await.unwrap();
    let mut joined = outbox.join(&mut tx);
    conforms(&mut joined).await;
    let wake = joined.into_wake();
    tx.commit().await.unwrap();
    wake.wake();
    assert_eq!(bed.rows().await, 3);
    let mut connection = bed.pool.acquire().await.unwrap();
    let loose = JOB.post.letter.create(&mut outbox.join(&mut connection), letter(1)).await.unwrap_err();
    assert!(matches!(loose, OutboxError::NotInTransaction), "{loose:?}");
}

#[tokio::test]
async fn on_sqlite_the_real_ones_take_jobs() {
    the_real_ones_take_jobs::<sqlx::Sqlite>().await;
}

#[tokio::test]
async fn on_postgres_the_real_ones_take_jobs() {
    the_real_ones_take_jobs::<sqlx::Postgres>().await;
}
