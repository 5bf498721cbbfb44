//! Events from commit to handler: complete, once, in time, whatever happens to either side.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Semaphore, mpsc};
use trellis::HandlerError;
use trellis_runtime::{GroupConfig, OutboxError, TraceContext};

use crate::on_both_databases;
use crate::support::contract::{EVENT, added, moved, notes};
use crate::support::nats::Nats;
use crate::support::reader::{NotesCtx, Reader, SOON, add, host, quick};
use crate::support::{Bed, TestDb, until};

#[trellis::contract(id = "test.reading@v1")]
pub mod reading {
    use super::notes;

    #[group("late")]
    pub struct Late(notes::Added);

    #[group("second", replay = "all")]
    pub struct Second(notes::Added);
}

/// The next version of `test.reading`: its group takes one event more.
pub mod next_version {
    #[trellis::contract(id = "test.reading@v1")]
    pub mod reading {
        use crate::support::contract::notes;

        #[group("late")]
        pub struct Late(notes::Added, notes::Moved);
    }
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// From a transaction of one host to a handler of another, with nothing missing.
async fn an_event_arrives_as_it_was_committed<D: TestDb>() {
    let (here, there, nats) = (Bed::<D>::new(4).await, Bed::<D>::new(4).await, Nats::start().await);
    let (producer, _) = Reader::<D>::content();
    let producer = host(&here, &nats, &producer).start().await.unwrap();
    let (reader, heard) = Reader::<D>::new(|ctx, seen| {
        Box::pin(async move {
            if seen.event == "notes.moved" {
                add(ctx, [1]).await;
            }
            Ok(())
        })
    });
    let consumer = host(&there, &nats, &reader).mount::<notes::Readers>().start().await.unwrap();

    let before = clock();
    let trace = TraceContext::parse(PARENT, Some("vendor=1")).unwrap();
    let ctx = producer.ctx();
    let commit =
        ctx.transaction(async |tx| EVENT.notes.moved.enqueue(tx, moved(7, 3)).id("the-id").await.map(drop));
    Box::pin(trace.scope(commit)).await.unwrap();

    let seen = heard.next().await;
    assert_eq!((seen.event, seen.number, seen.deliveries), ("notes.moved", 3, 1));
    assert_eq!((seen.id.as_str(), seen.root_id.as_str()), ("the-id", "the-id"));
    assert_eq!(seen.subject, "events.v1.notes.moved.e~2E~u");
    // The header keeps milliseconds.
    assert!(seen.time + Duration::from_millis(1) > before && seen.time <= clock(), "{:?}", seen.time);

    assert_eq!(heard.next().await.event, "notes.added", "what the handler enqueued");
    for message in nats.messages("TRELLIS_EVENTS").await {
        let headers = message.headers.as_ref().unwrap();
        let parent = headers.get("traceparent").unwrap().as_str();
        assert!(parent.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{parent}");
        assert_ne!(parent, PARENT, "each message is a span of its own");
        assert_eq!(headers.get("tracestate").unwrap().as_str(), "vendor=1");
    }
    assert!(consumer.health().is_ready() && producer.health().is_ready());
    consumer.stop().await;
    producer.stop().await;
    assert!(heard.rest().await.is_empty());
}

fn clock() -> std::time::SystemTime {
    trellis_runtime::ports::Ports::default().clock.now()
}

/// A message that no outbox wrote is taken at its subject's word; what a payload has more is ignored.
#[tokio::test]
async fn a_foreign_message_is_read_if_it_can_be() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(2).await, Nats::start().await);
    let (reader, heard) = Reader::content();
    let host = host(&bed, &nats, &reader).mount::<notes::Readers>().start().await.unwrap();
    let before = clock();
    let body = r#"{"number":5,"text":"x","added_later":{"a":1}}"#;
    nats.context.publish("events.v1.notes.added", body.into()).await.unwrap().await.unwrap();
    let seen = heard.next().await;
    assert_eq!(
        (seen.number, seen.id.as_str(), seen.root_id.as_str()),
        (5, "TRELLIS_EVENTS:1", "TRELLIS_EVENTS:1")
    );
    assert!(seen.time + Duration::from_secs(1) > before, "the stream's time, not 1970: {:?}", seen.time);
    host.stop().await;
}

/// Counts its effect in the inbox's transaction, and fails a first delivery after that.
async fn note_once<D: TestDb>(ctx: &NotesCtx<D>, name: u64) -> Result<String, HandlerError> {
    ctx.once(async |tx| {
        D::run(tx, &format!("INSERT INTO things VALUES ('{name}')")).await.map_err(OutboxError::Database)?;
        Ok::<_, OutboxError>(format!("result {name}"))
    })
    .await
    .map_err(HandlerError::from)
}

/// Committed, but not acknowledged: the second delivery gets what the first one stored.
async fn a_redelivery_repeats_no_effect<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    let (tell, mut results) = mpsc::unbounded_channel();
    let (reader, heard) = Reader::<D>::new(move |ctx, seen| {
        let tell = tell.clone();
        Box::pin(async move {
            tell.send(note_once(ctx, seen.deliveries).await?).unwrap();
            if seen.deliveries == 1 { Err(HandlerError::retry("after the commit")) } else { Ok(()) }
        })
    });
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(quick()).start().await.unwrap();
    add(&host.ctx(), [1]).await;
    for _ in 0..2 {
        assert_eq!(results.recv().await.unwrap(), "result 1");
    }
    assert_eq!(bed.things().await, 1);

    // A redrive: another message, the same root.
    let root = heard.next().await.root_id;
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Nats-Msg-Id", "redriven");
    headers.insert("Trellis-Root-Id", root.as_str());
    let publish = nats.context.publish_with_headers(
        "events.v1.notes.added",
        headers,
        r#"{"number":1,"text":""}"#.into(),
    );
    publish.await.unwrap().await.unwrap();
    for _ in 0..2 {
        assert_eq!(results.recv().await.unwrap(), "result 1");
    }
    let redriven = heard.take(3).await.remove(1);
    assert_eq!((redriven.id.as_str(), redriven.root_id), ("redriven", root));
    assert_eq!(bed.things().await, 1);
    host.stop().await;
}

/// Two groups keep their inboxes apart although they share the table.
async fn groups_of_one_database_do_not_hide_events_from_each_other<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    let (reader, heard) =
        Reader::<D>::new(|ctx, seen| Box::pin(async move { note_once(ctx, seen.number).await.map(drop) }));
    let host = host(&bed, &nats, &reader).mount::<notes::Readers>().mount::<reading::Second>();
    let host = host.start().await.unwrap();
    add(&host.ctx(), 1..=5).await;
    heard.take(10).await;
    host.stop().await;
    assert_eq!(bed.things().await, 10);
}

/// Twins at the same moment: one effect, and both get its result.
async fn concurrent_twins_have_one_effect<D: TestDb>() {
    let bed = Bed::<D>::new(8).await;
    let outbox = bed.outbox();
    let effects = Arc::new(AtomicUsize::new(0));
    let twins = (0..8).map(|twin: usize| {
        let (outbox, effects) = (outbox.clone(), Arc::clone(&effects));
        tokio::spawn(async move {
            let once = outbox.once("group", "root", async |tx| {
                effects.fetch_add(1, Ordering::SeqCst);
                D::run(tx, "INSERT INTO things VALUES ('x')").await.map_err(OutboxError::Database)?;
                EVENT.notes.added.enqueue(tx, added(1)).await?;
                Ok::<_, OutboxError>(twin)
            });
            once.await.unwrap()
        })
    });
    let results: Vec<usize> = join_all(twins).await.into_iter().map(Result::unwrap).collect();
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    assert_eq!((effects.load(Ordering::SeqCst), bed.things().await, bed.rows().await), (1, 1, 1));
}

/// `once` is once per delivery, may follow its own failure, and belongs into a handler.
async fn once_is_once_per_delivery<D: TestDb>() {
    let (bed, nats) = (Bed::<D>::new(4).await, Nats::start().await);
    let (tell, mut said) = mpsc::unbounded_channel();
    let (reader, _heard) = Reader::<D>::new(move |ctx, _| {
        let tell = tell.clone();
        Box::pin(async move {
            let failed: Result<(), OutboxError> = ctx
                .once(async |tx| {
                    D::run(tx, "INSERT INTO things VALUES ('undone')").await.unwrap();
                    Err(OutboxError::NotInTransaction)
                })
                .await;
            let then = note_once(ctx, 1).await.map_err(|error| error.to_string());
            let again: Result<(), OutboxError> = ctx.once(async |_| Ok(())).await;
            tell.send((failed.unwrap_err(), then, again.unwrap_err())).unwrap();
            Ok(())
        })
    });
    let host = host(&bed, &nats, &reader).mount::<notes::Readers>().start().await.unwrap();
    let outside: Result<(), OutboxError> = host.ctx().once(async |_| Ok(())).await;
    assert!(matches!(outside, Err(OutboxError::NoDelivery)), "{outside:?}");
    add(&host.ctx(), [1]).await;
    let (failed, then, again) = said.recv().await.unwrap();
    assert!(matches!(failed, OutboxError::NotInTransaction), "{failed:?}");
    assert_eq!(then, Ok("result 1".to_owned()));
    assert!(matches!(again, OutboxError::OnceAgain), "{again:?}");
    assert_eq!(bed.things().await, 1);
    host.stop().await;
}

on_both_databases!(
    an_event_arrives_as_it_was_committed,
    a_redelivery_repeats_no_effect,
    groups_of_one_database_do_not_hide_events_from_each_other,
    concurrent_twins_have_one_effect,
    once_is_once_per_delivery,
);

/// Each failure waits longer than the one before, and the count says so.
#[tokio::test]
async fn a_failing_event_comes_back_with_growing_delays() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(2).await, Nats::start().await);
    let (reader, heard) = Reader::new(|_, seen| {
        Box::pin(
            async move { if seen.deliveries < 4 { Err(HandlerError::retry("not yet")) } else { Ok(()) } },
        )
    });
    let config = GroupConfig {
        backoff_first: Duration::from_millis(200),
        backoff_longest: Duration::from_millis(800),
        ..GroupConfig::default()
    };
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(config).start().await.unwrap();
    add(&host.ctx(), [1]).await;
    let seen = heard.take(4).await;
    assert_eq!(seen.iter().map(|seen| seen.deliveries).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let gaps: Vec<Duration> = seen.windows(2).map(|pair| pair[1].after(&pair[0])).collect();
    // Half of a delay is jitter.
    for (gap, at_least) in gaps.iter().zip([100, 200, 400]) {
        assert!(*gap >= Duration::from_millis(at_least), "{gaps:?}");
    }
    host.stop().await;
}

/// B-51: as long as it takes, it is delivered once. Also when it blocks its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_handler_is_delivered_once() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(2).await, Nats::start().await);
    let long = Duration::from_secs(3);
    let (reader, heard) = Reader::new(move |_, seen| {
        Box::pin(async move {
            match seen.number {
                1 => tokio::time::sleep(long).await,
                2 => std::thread::sleep(long),
                _ => {}
            }
            Ok(())
        })
    });
    let config = GroupConfig { ack_wait: Duration::from_secs(1), concurrency: 2, ..GroupConfig::default() };
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(config).start().await.unwrap();
    add(&host.ctx(), [1, 2]).await;
    heard.take(2).await;
    host.stop().await;
    assert!(heard.rest().await.is_empty());
    let consumer = nats.consumer("test-notes--readers").await;
    assert_eq!((consumer.num_ack_pending, consumer.delivered.consumer_sequence), (0, 2));
}

/// Four at once and no more; each once.
#[tokio::test]
async fn concurrency_is_a_limit_that_is_used() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(2).await, Nats::start().await);
    let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (reader, heard) = Reader::new({
        let (busy, most, gate) = (Arc::clone(&busy), Arc::clone(&most), Arc::clone(&gate));
        move |_, _| {
            let (busy, most, gate) = (Arc::clone(&busy), Arc::clone(&most), Arc::clone(&gate));
            Box::pin(async move {
                most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                gate.acquire().await.unwrap().forget();
                busy.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
        }
    });
    let config = GroupConfig { concurrency: 4, ..GroupConfig::default() };
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(config).start().await.unwrap();
    add(&host.ctx(), 0..40).await;
    let mut numbers = heard.numbers(4).await;
    gate.add_permits(40);
    numbers.extend(heard.numbers(36).await);
    host.stop().await;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<_>>());
    assert_eq!(most.load(Ordering::SeqCst), 4);
    assert!(heard.rest().await.is_empty());
}

/// With concurrency 1 the order is the stream's.
#[tokio::test]
async fn one_at_a_time_keeps_the_order_of_the_stream() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(2).await, Nats::start().await);
    let (reader, heard) = Reader::content();
    let host = host(&bed, &nats, &reader).mount::<notes::Readers>().start().await.unwrap();
    add(&host.ctx(), 0..50).await;
    let heard = heard.take(50).await;
    let ids: Vec<String> = heard.into_iter().map(|seen| seen.id).collect();
    let stored = nats.messages("TRELLIS_EVENTS").await;
    let stored: Vec<&str> =
        stored.iter().map(|m| m.headers.as_ref().unwrap().get("Nats-Msg-Id").unwrap().as_str()).collect();
    assert_eq!(ids, stored);
    host.stop().await;
}

/// An instance whose handlers are all busy leaves the rest to the others.
#[tokio::test]
async fn a_full_instance_does_not_hoard() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::start().await);
    let gate = Arc::new(Semaphore::new(0));
    let (stuck, stuck_heard) = Reader::new({
        let gate = Arc::clone(&gate);
        move |_, _| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(())
            })
        }
    });
    let first = host(&bed, &nats, &stuck).mount::<notes::Readers>().start().await.unwrap();
    add(&first.ctx(), [0]).await;
    stuck_heard.next().await;
    let (free, free_heard) = Reader::content();
    let second = host(&bed, &nats, &free).mount::<notes::Readers>().start().await.unwrap();
    add(&first.ctx(), 1..=10).await;
    let mut numbers = free_heard.numbers(10).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    gate.add_permits(1);
    first.stop().await;
    second.stop().await;
    assert!(stuck_heard.rest().await.is_empty());
}

/// Each event once in all; and what an instance held when it vanished, another one gets.
#[tokio::test]
async fn instances_share_a_group_and_take_over_from_each_other() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::start().await);
    let hang = Arc::new(AtomicBool::new(false));
    let (reader, heard) = Reader::new({
        let hang = Arc::clone(&hang);
        move |_, _| {
            let hang = Arc::clone(&hang);
            Box::pin(async move {
                if hang.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                Ok(())
            })
        }
    });
    let start = || host(&bed, &nats, &reader).mount_with::<notes::Readers>(quick()).start();
    let (first, second) = (start().await.unwrap(), start().await.unwrap());
    add(&first.ctx(), 0..60).await;
    let mut seen = heard.take(60).await;
    assert!(seen.iter().all(|seen| seen.deliveries == 1));
    seen.sort_unstable_by_key(|seen| seen.number);
    assert_eq!(seen.iter().map(|seen| seen.number).collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
    second.stop().await;

    hang.store(true, Ordering::SeqCst);
    add(&first.ctx(), [60]).await;
    let held = heard.next().await;
    drop(first);
    hang.store(false, Ordering::SeqCst);
    let third = start().await.unwrap();
    let taken = heard.next().await;
    assert_eq!((taken.number, taken.deliveries), (60, 2));
    let waited = taken.after(&held);
    assert!(waited < quick().ack_wait + Duration::from_secs(3), "{waited:?}");
    third.stop().await;
}

/// `new` begins at the group's first start, `all` with what the stream holds; both go on where they were.
#[tokio::test]
async fn a_group_begins_where_it_says_and_goes_on_where_it_was() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::start().await);
    let (idle, _) = Reader::content();
    let producer = host(&bed, &nats, &idle).start().await.unwrap();
    add(&producer.ctx(), [1]).await;
    until("the first event is stored", SOON, || async { nats.stored().await == 1 }).await;

    let (new, new_heard) = Reader::content();
    let (all, all_heard) = Reader::content();
    let late = host(&bed, &nats, &new).mount::<reading::Late>().start().await.unwrap();
    let whole = host(&bed, &nats, &all).mount::<reading::Second>().start().await.unwrap();
    add(&producer.ctx(), [2]).await;
    assert_eq!(new_heard.numbers(1).await, [2]);
    let mut numbers = all_heard.numbers(2).await;
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    late.stop().await;

    add(&producer.ctx(), [3]).await;
    assert_eq!(all_heard.numbers(1).await, [3]);
    let late = host(&bed, &nats, &new).mount::<reading::Late>().start().await.unwrap();
    assert_eq!(new_heard.numbers(1).await, [3]);
    for host in [late, whole, producer] {
        host.stop().await;
    }
}

/// A deploy widens a group while the old version runs on: neither narrows it again, nor do events
/// of the new kind become dead with the old one.
#[tokio::test]
async fn versions_of_a_group_run_side_by_side() {
    let (bed, mut nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::content();
    let old = host(&bed, &nats, &reader).mount_with::<reading::Late>(quick()).start().await.unwrap();
    let new =
        host(&bed, &nats, &reader).mount_with::<next_version::reading::Late>(quick()).start().await.unwrap();
    let both = ["events.v1.notes.added", "events.v1.notes.moved.*"];
    let move_on = async |steps: std::ops::RangeInclusive<u64>| {
        let done: Result<(), OutboxError> = old
            .ctx()
            .transaction(async |tx| {
                for step in steps {
                    EVENT.notes.moved.enqueue(tx, moved(step, step)).await?;
                }
                Ok(())
            })
            .await;
        done.unwrap();
    };
    move_on(1..=6).await;
    let mut steps = heard.numbers(6).await;
    steps.sort_unstable();
    assert_eq!(steps, [1, 2, 3, 4, 5, 6]);

    // An old instance starts and all instances bind again: the filter stays.
    let another = host(&bed, &nats, &reader).mount_with::<reading::Late>(quick()).start().await.unwrap();
    nats.server.kill().unwrap();
    nats.server.restart().unwrap();
    move_on(7..=12).await;
    let mut steps = BTreeSet::new();
    // The kill may have taken the last acknowledgements away, so earlier ones may come again.
    while !steps.is_superset(&(7..=12).collect()) {
        steps.insert(heard.next().await.number);
    }
    assert_eq!(nats.consumer("test-reading--late").await.config.filter_subjects, both);
    assert_eq!(nats.count("TRELLIS_DEAD").await, 0);
    for host in [old, new, another] {
        host.stop().await;
    }

    // Alone, the declaration holds.
    until("no pull waits any more", SOON, || async {
        nats.consumer("test-reading--late").await.num_waiting == 0
    })
    .await;
    let back = host(&bed, &nats, &reader).mount_with::<reading::Late>(quick()).start().await.unwrap();
    let consumer = nats.consumer("test-reading--late").await.config;
    let filters = [vec![consumer.filter_subject], consumer.filter_subjects].concat();
    assert!(filters.iter().filter(|filter| !filter.is_empty()).eq(["events.v1.notes.added"]), "{filters:?}");
    back.stop().await;
}

/// Killed and started again while the group waits and while a handler runs: work goes on by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_server_loses_nothing_and_nobody_falls_silent() {
    let (bed, mut nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::start().await);
    let gate = Arc::new(Semaphore::new(0));
    let (reader, heard) = Reader::new({
        let gate = Arc::clone(&gate);
        move |ctx: &NotesCtx<sqlx::Sqlite>, seen| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                if seen.number == 2 {
                    gate.acquire().await.unwrap().forget();
                }
                note_once(ctx, seen.number).await.map(drop)
            })
        }
    });
    let config = GroupConfig { concurrency: 2, ..quick() };
    let host = host(&bed, &nats, &reader).mount_with::<notes::Readers>(config).start().await.unwrap();
    add(&host.ctx(), [0]).await;
    heard.next().await;

    // While it waits.
    nats.server.kill().unwrap();
    until("health says so", SOON, || async { !host.health().is_ready() }).await;
    assert!(host.health().problems[0].starts_with("no connection to the NATS server"), "{:?}", host.health());
    add(&host.ctx(), [1]).await;
    nats.server.restart().unwrap();
    assert_eq!(heard.next().await.number, 1);
    until("it is ready again", SOON, || async { host.health().is_ready() }).await;

    // While a handler runs.
    add(&host.ctx(), [2]).await;
    assert_eq!(heard.next().await.number, 2);
    nats.server.kill().unwrap();
    nats.server.restart().unwrap();
    add(&host.ctx(), 3..=5).await;
    gate.add_permits(10);
    until("all are handled", SOON, || async { bed.things().await == 6 }).await;
    until("it is ready again", SOON, || async { host.health().is_ready() }).await;
    until("all are settled", SOON, || async {
        nats.consumer("test-notes--readers").await.num_ack_pending == 0
    })
    .await;
    assert_eq!(bed.things().await, 6);
    host.stop().await;
}

/// B-60: a server that is connected and mute is not taken for one that has nothing to say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mute_server_is_noticed() {
    let (bed, mut nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::content();
    let host = host(&bed, &nats, &reader).mount_with::<reading::Late>(quick()).start().await.unwrap();
    nats.server.suspend().unwrap();
    let mute = "group `late` gets no events";
    until("health says so", SOON, || async {
        host.health().problems.iter().any(|problem| problem.starts_with(mute))
    })
    .await;
    nats.server.resume().unwrap();
    add(&host.ctx(), [1]).await;
    heard.next().await;
    until("it is ready again", SOON, || async { host.health().is_ready() }).await;
    host.stop().await;
}

/// An operator deletes the consumer: it is made again where the group was, also for events that
/// were committed while there was none, and for those that were under way.
#[tokio::test]
async fn a_deleted_consumer_is_made_again_and_nothing_is_missed() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::new(|_, seen| {
        Box::pin(async move { if seen.number == 2 { Err(HandlerError::retry("no")) } else { Ok(()) } })
    });
    let slow = GroupConfig { backoff_first: Duration::from_secs(60), ..GroupConfig::default() };
    let (idle, _) = Reader::content();
    let producer = host(&bed, &nats, &idle).start().await.unwrap();
    add(&producer.ctx(), [0]).await;
    until("the first event is stored", SOON, || async { nats.stored().await == 1 }).await;

    let host = host(&bed, &nats, &reader).mount_with::<reading::Late>(slow).start().await.unwrap();
    add(&host.ctx(), [1]).await;
    assert_eq!(heard.numbers(1).await, [1]);
    add(&host.ctx(), [2]).await;
    assert_eq!(heard.numbers(1).await, [2]);
    let settled = || async { nats.consumer("test-reading--late").await.num_waiting == 1 };
    until("it waits for more", SOON, settled).await;

    nats.context.delete_consumer_from_stream("test-reading--late", "TRELLIS_EVENTS").await.unwrap();
    add(&producer.ctx(), [3]).await;
    let mut numbers: Vec<u64> = Vec::new();
    while !numbers.contains(&3) {
        numbers.push(heard.next().await.number);
    }
    assert!(numbers.contains(&2), "the one under way comes back: {numbers:?}");
    assert!(!numbers.contains(&0), "what was before the group stays before it: {numbers:?}");
    until("it is ready again", SOON, || async { host.health().is_ready() }).await;
    host.stop().await;
    producer.stop().await;
}

/// An operator deletes the stream: it is made again, rows leave, and groups get what is in it.
#[tokio::test]
async fn a_deleted_stream_is_made_again_and_rows_leave() {
    let (bed, nats) = (Bed::<sqlx::Sqlite>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::content();
    let host = host(&bed, &nats, &reader).mount::<reading::Late>().start().await.unwrap();
    add(&host.ctx(), 0..10).await;
    heard.take(10).await;
    nats.context.delete_stream("TRELLIS_EVENTS").await.unwrap();
    add(&host.ctx(), 10..13).await;
    assert_eq!(heard.numbers(3).await, [10, 11, 12]);
    until("it is ready again", SOON, || async { host.health().is_ready() }).await;
    assert_eq!(nats.stored().await, 3);
    host.stop().await;
}
