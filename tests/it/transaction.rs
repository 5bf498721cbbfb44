//! Transactions: atomic, clean after every cancellation, honest about misuse.
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use trellis_runtime::{OutboxError, OutboxErrorKind};

use crate::on_both_databases;
use crate::support::contract::{EVENT, added};
use crate::support::{Bed, TestDb};

/// The row of the state and the message, or neither.
async fn state_and_message_go_together<D: TestDb>() {
    let bed = Bed::<D>::new(3).await;
    let outbox = bed.outbox();
    let done: Result<u32, OutboxError> = outbox
        .transaction(async |tx| {
            D::run(tx, "INSERT INTO things VALUES ('a')").await.unwrap();
            EVENT.notes.added.enqueue(tx, added(1)).await?;
            Ok(7)
        })
        .await;
    assert_eq!(done.unwrap(), 7);
    assert_eq!((bed.things().await, bed.rows().await), (1, 1));

    let failed: Result<(), Box<dyn std::error::Error + Send + Sync>> = outbox
        .transaction(async |tx| {
            D::run(tx, "INSERT INTO things VALUES ('b')").await?;
            EVENT.notes.added.enqueue(tx, added(2)).await?;
            Err("changed my mind".into())
        })
        .await;
    assert_eq!(failed.unwrap_err().to_string(), "changed my mind");
    assert_eq!((bed.things().await, bed.rows().await), (1, 1));

    drop(outbox.begin().await.unwrap());
    let mut tx = outbox.begin().await.unwrap();
    EVENT.notes.added.enqueue(&mut tx, added(3)).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(bed.rows().await, 1);
}

/// What a savepoint undoes is not sent, and the rest is.
async fn a_savepoint_takes_its_messages_with_it<D: TestDb>() {
    let bed = Bed::<D>::new(1).await;
    let outbox = bed.outbox();
    let result: Result<(), OutboxError> = outbox
        .transaction(async |tx| {
            EVENT.notes.added.enqueue(tx, added(1)).await?;
            let undone: Result<(), OutboxError> = tx
                .savepoint(async |tx| {
                    EVENT.notes.added.enqueue(tx, added(2)).await?;
                    D::run(tx, "INSERT INTO nowhere VALUES (1)").await.map_err(OutboxError::Database)
                })
                .await;
            assert!(undone.is_err());
            tx.savepoint(async |tx| {
                tx.savepoint(async |tx| EVENT.notes.added.enqueue(tx, added(3)).await.map(drop)).await
            })
            .await
        })
        .await;
    result.unwrap();
    let numbers = bed.text("SELECT group_concat_numbers FROM (SELECT count(*) || '' AS group_concat_numbers FROM trellis_outbox) x");
    assert_eq!(numbers.await.as_deref(), Some("2"));
}

/// A half-done savepoint cannot be committed.
async fn an_abandoned_savepoint_spoils_its_transaction<D: TestDb>() {
    let bed = Bed::<D>::new(1).await;
    let mut tx = bed.outbox().begin().await.unwrap();
    {
        let stuck = tx.savepoint(async |tx| {
            EVENT.notes.added.enqueue(tx, added(1)).await?;
            std::future::pending::<Result<(), OutboxError>>().await
        });
        assert!(tokio::time::timeout(Duration::from_millis(300), stuck).await.is_err());
    }
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, OutboxError::SavepointAbandoned), "{error:?}");
    assert_eq!(bed.rows().await, 0);
}

/// Polls a future a given number of times, then never again.
async fn polled_at_most<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// With one connection, a transaction is dropped at each of its polls: before COMMIT nothing
/// happened, and the next borrower always gets a clean connection.
async fn dropped_at_any_poll_it_leaves_a_clean_connection<D: TestDb>() {
    let bed = Bed::<D>::new(1).await;
    let mut longest = 0;
    // How many polls a transaction takes depends on how fast the database answers.
    for _ in 0..10 {
        longest = longest.max(drop_at_each_poll(&bed).await);
    }
    assert!(longest >= 3, "only {longest} polls: this test proves little");
}

/// Drop a transaction after 0, 1, 2 … polls until it is done; how many it took.
async fn drop_at_each_poll<D: TestDb>(bed: &Bed<D>) -> usize {
    let outbox = bed.outbox();
    let mut committed = bed.rows().await;
    let mut polls = 0;
    loop {
        let body_done = Arc::new(AtomicUsize::new(0));
        let reached = Arc::clone(&body_done);
        let transaction = outbox.transaction(async move |tx| {
            D::run(tx, "INSERT INTO things VALUES ('x')").await.map_err(OutboxError::Database)?;
            EVENT.notes.added.enqueue(tx, added(1)).await?;
            reached.store(1, Ordering::SeqCst);
            Ok::<_, OutboxError>(())
        });
        let finished = polled_at_most(polls, transaction).await;
        // The next borrower: sees no half of it, and can begin and commit at once.
        let next = tokio::time::timeout(
            Duration::from_secs(10),
            outbox.transaction(async |tx| {
                D::run(tx, "DELETE FROM things WHERE name = 'y'").await.map_err(OutboxError::Database)
            }),
        );
        next.await.unwrap_or_else(|_| panic!("the connection is stuck after {polls} polls")).unwrap();
        let (things, rows) = (bed.things().await, bed.rows().await);
        assert_eq!(things, rows, "half of a transaction after {polls} polls");
        assert!(rows == committed || rows == committed + 1, "after {polls} polls");
        if body_done.load(Ordering::SeqCst) == 0 {
            assert_eq!(rows, committed, "committed before its end, after {polls} polls");
        }
        committed = rows;
        if let Some(result) = finished {
            result.unwrap();
            return polls;
        }
        polls += 1;
    }
}

/// The same for a future that is dropped after a time instead of a number of polls, from a task
/// that runs on another thread.
async fn dropped_at_any_time_it_leaves_a_clean_connection<D: TestDb>() {
    let bed = Bed::<D>::new(1).await;
    let outbox = bed.outbox();
    for micros in (0..4000).step_by(40) {
        let task = tokio::spawn({
            let outbox = outbox.clone();
            async move {
                outbox
                    .transaction(async |tx| {
                        D::run(tx, "INSERT INTO things VALUES ('x')").await.map_err(OutboxError::Database)?;
                        EVENT.notes.added.enqueue(tx, added(1)).await.map(drop)
                    })
                    .await
            }
        });
        tokio::time::sleep(Duration::from_micros(micros)).await;
        task.abort();
        drop(task.await);
        assert_eq!(bed.things().await, bed.rows().await);
    }
}

/// An error that was swallowed must not turn a commit into nothing.
async fn a_swallowed_error_is_no_silent_rollback<D: TestDb>() {
    let bed = Bed::<D>::new(1).await;
    let result: Result<(), OutboxError> = bed
        .outbox()
        .transaction(async |tx| {
            EVENT.notes.added.enqueue(tx, added(1)).await?;
            assert!(D::run(tx, "INSERT INTO nowhere VALUES (1)").await.is_err());
            Ok(())
        })
        .await;
    match result {
        Ok(()) => assert_eq!(bed.rows().await, 1, "reported as committed, but nothing is there"),
        Err(error) => {
            assert!(matches!(error, OutboxError::Aborted(_)), "{error:?}");
            assert_eq!(bed.rows().await, 0);
        }
    }
}

/// An enqueue outside of a transaction is refused.
async fn a_connection_without_a_transaction_is_refused<D: TestDb>() {
    let bed = Bed::<D>::new(1).await;
    let mut connection = bed.pool.acquire().await.unwrap();
    let mut joined = bed.outbox().join(&mut connection);
    let error = EVENT.notes.added.enqueue(&mut joined, added(1)).await.unwrap_err();
    assert!(matches!(error, OutboxError::NotInTransaction), "{error:?}");
    assert_eq!(error.kind(), OutboxErrorKind::Misuse);
}

/// Missing tables are named, with what to do.
async fn missing_tables_are_named<D: TestDb>() {
    let bed = D::empty(1).await;
    let error = bed.outbox().verify().await.unwrap_err();
    for says in ["`trellis_outbox` is missing", "run `trellis_runtime::migrate(&pool)`"] {
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Several processes may migrate at once and again.
async fn migrations_can_run_at_once<D: TestDb>() {
    let bed = D::empty(4).await;
    let runs = (0..4).map(|_| trellis_runtime::migrate(&bed.pool));
    for done in futures_util::future::join_all(runs).await {
        done.unwrap();
    }
    trellis_runtime::migrate(&bed.pool).await.unwrap();
    bed.outbox().verify().await.unwrap();
    let artifacts = trellis_runtime::migrations::<D>(&trellis_runtime::Tables::default());
    assert_eq!(artifacts.iter().map(|artifact| artifact.version).collect::<Vec<_>>(), [1, 2]);
}

on_both_databases!(
    state_and_message_go_together,
    a_savepoint_takes_its_messages_with_it,
    an_abandoned_savepoint_spoils_its_transaction,
    dropped_at_any_poll_it_leaves_a_clean_connection,
    dropped_at_any_time_it_leaves_a_clean_connection,
    a_swallowed_error_is_no_silent_rollback,
    a_connection_without_a_transaction_is_refused,
    missing_tables_are_named,
    migrations_can_run_at_once,
);

/// 16 writers, each with its own read-then-write, and no BUSY reaches any of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_on_sqlite_meet_no_busy() {
    let bed = Bed::<sqlx::Sqlite>::new(8).await;
    let outbox = bed.outbox();
    let writers = (0..16).map(|writer| {
        let outbox = outbox.clone();
        tokio::spawn(async move {
            for number in 0..25 {
                let done: Result<(), OutboxError> = outbox
                    .transaction(async |tx| {
                        let things: i64 = sqlx::query_scalar("SELECT count(*) FROM things")
                            .fetch_one(&mut **tx)
                            .await
                            .map_err(OutboxError::Database)?;
                        sqlx::query("INSERT INTO things VALUES (?1)")
                            .bind(things.to_string())
                            .execute(&mut **tx)
                            .await
                            .map_err(OutboxError::Database)?;
                        EVENT.notes.added.enqueue(tx, added(writer * 100 + number)).await.map(drop)
                    })
                    .await;
                done.unwrap();
            }
        })
    });
    for writer in futures_util::future::join_all(writers).await {
        writer.unwrap();
    }
    assert_eq!((bed.things().await, bed.rows().await), (400, 400));
    let distinct = bed.number("SELECT count(DISTINCT name) FROM things").await;
    assert_eq!(distinct, 400, "two transactions saw the same state");
}

/// A deferred transaction of the user's that meets a writer is told what to do instead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deferred_transaction_is_told_to_begin_immediate() {
    let bed = Bed::<sqlx::Sqlite>::new(3).await;
    let outbox = bed.outbox();
    let mut deferred = bed.pool.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM things").execute(&mut *deferred).await.unwrap();
    let written: Result<(), OutboxError> = outbox
        .transaction(async |tx| {
            sqlx::query("INSERT INTO things VALUES ('w')")
                .execute(&mut **tx)
                .await
                .map(drop)
                .map_err(OutboxError::Database)
        })
        .await;
    written.unwrap();
    let mut joined = outbox.join(&mut deferred);
    let error = EVENT.notes.added.enqueue(&mut joined, added(1)).await.unwrap_err();
    assert!(error.to_string().contains(r#"begin_with("BEGIN IMMEDIATE")"#), "{error}");
    assert_eq!(error.kind(), OutboxErrorKind::Misuse);
}

/// Opposite orders of keys end one of the two transactions with an error that says: repeat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opposite_key_orders_are_a_retryable_conflict() {
    let bed = Bed::<sqlx::Postgres>::new(4).await;
    let outbox = bed.outbox();
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let both = [["a", "b"], ["b", "a"]].map(|keys| {
        let (outbox, barrier) = (outbox.clone(), Arc::clone(&barrier));
        tokio::spawn(async move {
            outbox
                .transaction(async |tx| {
                    EVENT.notes.added.enqueue(tx, added(1)).ordered_by(keys[0]).await?;
                    barrier.wait().await;
                    EVENT.notes.added.enqueue(tx, added(2)).ordered_by(keys[1]).await.map(drop)
                })
                .await
        })
    });
    let mut failures: Vec<OutboxError> = Vec::new();
    for one in both {
        failures.extend(one.await.unwrap().err());
    }
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].kind(), OutboxErrorKind::Retryable, "{:?}", failures[0]);
    assert_eq!(bed.rows().await, 2);
}

/// A deadlock is retryable whichever statement met it: here one of the user's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_in_a_statement_of_the_users_is_retryable_too() {
    let bed = Bed::<sqlx::Postgres>::new(4).await;
    bed.execute("INSERT INTO things VALUES ('a'), ('b')").await;
    let outbox = bed.outbox();
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let both = [["a", "b"], ["b", "a"]].map(|[first, second]| {
        let (outbox, barrier) = (outbox.clone(), Arc::clone(&barrier));
        tokio::spawn(async move {
            outbox
                .transaction(async |tx| {
                    let update = "UPDATE things SET name = name WHERE name = $1";
                    sqlx::query(update).bind(first).execute(&mut **tx).await?;
                    barrier.wait().await;
                    sqlx::query(update).bind(second).execute(&mut **tx).await?;
                    Ok::<_, OutboxError>(())
                })
                .await
        })
    });
    let mut failures: Vec<OutboxError> = Vec::new();
    for one in both {
        failures.extend(one.await.unwrap().err());
    }
    assert_eq!(failures.iter().map(OutboxError::kind).collect::<Vec<_>>(), [OutboxErrorKind::Retryable]);
}

/// A future that was polled once and dropped has done nothing.
#[tokio::test]
async fn a_transaction_that_was_only_begun_does_nothing() {
    let bed = Bed::<sqlx::Sqlite>::new(1).await;
    let outbox = bed.outbox();
    let mut transaction = Box::pin(outbox.transaction(async |_| Ok::<_, OutboxError>(())));
    assert!(transaction.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(transaction);
    assert_eq!(bed.rows().await, 0);
}
