//! A host: starts on what is right, says what is wrong, stops in time and leaves nothing behind.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::jetstream::{consumer, stream};
use futures_util::future::join_all;
use testbed::nats::{Options, Server, fetch};
use testbed::{Launch, Stopwatch};
use tokio::sync::Semaphore;
use trellis_runtime::wire::Environment;
use trellis_runtime::{Host, OutboxError, ProvisionError, SqlOutbox, StartError, StartErrorKind};

use crate::support::contract::{EVENT, added, notes};
use crate::support::nats::{Nats, connect};
use crate::support::reader::{NotesHost, Reader, SOON, add, host, host_of, quick, small};
use crate::support::{Bed, TestDb, until};

type Db = sqlx::Sqlite;

/// Another contract, whose event has the subject of one of ours.
#[trellis::contract(id = "test.rival@v1")]
pub mod rival {
    #[event("notes.added")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Added {}
}

/// Another contract, which gets on with ours.
#[trellis::contract(id = "test.friend@v1")]
pub mod friend {
    #[event("friends.met")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Met {}
}

/// A contract that names fields of payloads it cannot see.
pub mod elsewhere {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Order {
        pub id: u64,
        pub region: String,
    }

    #[trellis::contract(id = "test.params@v1")]
    pub mod params {
        #[event("orders.placed", payload = super::Order, params(country))]
        pub struct Placed;
    }

    #[trellis::contract(id = "test.order@v1")]
    pub mod order {
        #[event("orders.placed", payload = super::Order, order_by = number)]
        pub struct Placed;
    }
}

/// A service without handlers.
struct Idle<C>(std::marker::PhantomData<C>);

impl<C: trellis::Contract> trellis::Service for Idle<C> {
    type Ctx = trellis_runtime::Ctx<C, Db>;
}

/// Start a service of contract `C` that only enqueues.
async fn start<C: trellis::Contract>(bed: &Bed<Db>, nats: &Nats) -> Result<Host<C, Db>, StartError> {
    let service = Idle::<C>(std::marker::PhantomData);
    Host::builder(service, bed.outbox()).client(nats.client.clone()).streams(small()).start().await
}

async fn notes(bed: &Bed<Db>, nats: &Nats) -> Result<Host<notes::Contract, Db>, StartError> {
    start(bed, nats).await
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let binary = tokio::task::spawn_blocking(|| fetch("2.10.26").unwrap()).await.unwrap();
    let nats = Nats::on(Server::start(&binary, Options::default()).unwrap()).await;
    let error = notes(&Bed::new(1).await, &nats).await.unwrap_err();
    assert_eq!(error.to_string(), "nats-server 2.10.26 is too old: Trellis needs 2.11 or newer");
    assert_eq!(error.kind(), StartErrorKind::Setup);
}

#[tokio::test]
async fn a_server_without_jetstream_is_refused() {
    let nats = Nats::start_with(Options { jetstream: false, ..Options::default() }).await;
    let error = notes(&Bed::new(1).await, &nats).await.unwrap_err();
    assert!(matches!(error, StartError::NoJetStream(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_with_a_lower_limit_is_refused_and_a_lowered_one_reported() {
    let (bed, mut nats) = (Bed::new(1).await, Nats::start().await);
    let host = notes(&bed, &nats).await.unwrap();
    nats.server.restart_with(|options| options.max_payload = Some(65_536)).unwrap();
    let says = "the server takes messages of 65536 bytes, the outbox accepts 1048576";
    until("health says so", SOON, || async { host.health().problems.iter().any(|problem| problem == says) })
        .await;
    host.stop().await;
    let error = notes(&bed, &nats).await.unwrap_err();
    assert!(matches!(error, StartError::MessageLimit { limit: 65_536, accepted: 1_048_576 }), "{error:?}");
}

#[tokio::test]
async fn missing_tables_a_missing_connection_and_a_closed_port_are_told() {
    let nats = Nats::start().await;
    let error = notes(&Db::empty(1).await, &nats).await.unwrap_err();
    assert!(matches!(error, StartError::Outbox(OutboxError::NotMigrated { .. })), "{error:?}");

    let bed = Bed::<Db>::new(1).await;
    let builder = || Host::<notes::Contract, Db>::builder(Idle(std::marker::PhantomData), bed.outbox());
    assert!(matches!(builder().start().await.unwrap_err(), StartError::NoConnection));

    let port = testbed::free_port().unwrap();
    let waited = Stopwatch::start();
    let error = builder().connect(format!("127.0.0.1:{port}")).start().await.unwrap_err();
    assert!(matches!(error, StartError::Connect(_)), "{error:?}");
    assert_eq!(error.kind(), StartErrorKind::Unavailable);
    assert!(waited.elapsed() < Duration::from_secs(10), "{:?}", waited.elapsed());

    let retrying = async_nats::ConnectOptions::new().retry_on_initial_connect();
    let error = builder().connect_with(retrying, format!("127.0.0.1:{port}")).start().await.unwrap_err();
    assert!(matches!(error, StartError::NotConnected { .. }), "{error:?}");
}

#[tokio::test]
async fn streams_and_consumers_of_others_are_left_untouched() {
    let (bed, nats) = (Bed::new(1).await, Nats::start().await);
    let foreign = |name: &str, subjects: &str| stream::Config {
        name: name.to_owned(),
        subjects: vec![subjects.to_owned()],
        ..stream::Config::default()
    };
    for (config, why) in [
        (foreign("TRELLIS_EVENTS", "events.>"), "its metadata has no `trellis.made_by`"),
        (foreign("TRELLIS_EVENTS", "other.>"), "it holds [\"other.>\"], not `events.>`"),
        (
            foreign("OTHERS", "events.v1.>"),
            "it holds subjects of `events.>`, which stream `TRELLIS_EVENTS` is for",
        ),
    ] {
        nats.context.create_stream(config.clone()).await.unwrap();
        let before = nats.context.get_stream(&config.name).await.unwrap();
        match notes(&bed, &nats).await.unwrap_err() {
            StartError::Provision(ProvisionError::ForeignStream { stream, why: found }) => {
                assert_eq!((stream, found.as_str()), (config.name.clone(), why));
            }
            other => panic!("{other:?}"),
        }
        let after = nats.context.get_stream(&config.name).await.unwrap();
        assert_eq!(before.cached_info().config, after.cached_info().config);
        nats.context.delete_stream(&config.name).await.unwrap();
    }

    notes(&bed, &nats).await.unwrap().stop().await;
    let config =
        consumer::pull::Config { durable_name: Some("test-notes--readers".into()), ..Default::default() };
    nats.context.create_consumer_on_stream(config, "TRELLIS_EVENTS").await.unwrap();
    let before = nats.consumer("test-notes--readers").await.config;
    let (reader, _heard) = Reader::content();
    let error = host(&bed, &nats, &reader).mount::<notes::Readers>().start().await.unwrap_err();
    assert!(matches!(error, StartError::Provision(ProvisionError::ForeignConsumer { .. })), "{error:?}");
    assert_eq!(before, nats.consumer("test-notes--readers").await.config);
}

#[tokio::test]
async fn a_subject_has_one_owner_whose_name_the_other_is_told() {
    let (bed, nats) = (Bed::new(2).await, Nats::start().await);
    notes(&bed, &nats).await.unwrap().stop().await;
    let error = start::<rival::Contract>(&bed, &nats).await.unwrap_err();
    assert_eq!(error.kind(), StartErrorKind::Setup);
    let text = error.to_string();
    assert!(text.contains("`test.rival@v1` declares event `notes.added`"), "{text}");
    assert!(text.contains("belongs to `test.notes@v1` as `notes.added`"), "{text}");
}

/// Four hosts of two contracts at once, on a server that has nothing: all start, and both owners are known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_start_at_once_and_again() {
    let (bed, nats) = (Bed::new(4).await, Nats::start().await);
    let (reader, _heard) = Reader::<Db>::content();
    for _ in 0..3 {
        let ours = (0..4).map(|_| host(&bed, &nats, &reader).mount::<notes::Readers>().start());
        let theirs = (0..2).map(|_| start::<friend::Contract>(&bed, &nats));
        let (ours, theirs) = tokio::join!(join_all(ours), join_all(theirs));
        let metadata =
            nats.context.get_stream("TRELLIS_EVENTS").await.unwrap().cached_info().config.metadata.clone();
        let owner =
            |event: &str| metadata.get(&format!("trellis.owner.events.v1.{event}")).map(String::as_str);
        assert_eq!(owner("notes.added"), Some("test.notes@v1 0"));
        assert_eq!(owner("notes.moved"), Some("test.notes@v1 1"));
        assert_eq!(owner("friends.met"), Some("test.friend@v1 0"));
        for host in ours {
            host.unwrap().stop().await;
        }
        for host in theirs {
            host.unwrap().stop().await;
        }
    }
}

#[tokio::test]
async fn environments_do_not_see_each_other() {
    let (here, there, nats) = (Bed::new(2).await, Bed::new(2).await, Nats::start().await);
    let outbox = |bed: &Bed<Db>, name| {
        SqlOutbox::builder(bed.pool.clone()).environment(Environment::new(name).unwrap()).build().unwrap()
    };
    let (blue, blue_heard) = Reader::content();
    let (green, green_heard) = Reader::content();
    let blue = host_of(outbox(&here, "blue"), &nats, &blue).mount::<notes::Readers>().start().await.unwrap();
    let green =
        host_of(outbox(&there, "green"), &nats, &green).mount::<notes::Readers>().start().await.unwrap();
    add(&blue.ctx(), [1]).await;
    add(&green.ctx(), [2]).await;
    let seen = blue_heard.next().await;
    assert_eq!((seen.number, seen.subject.as_str()), (1, "blue.events.v1.notes.added"));
    assert_eq!(green_heard.next().await.number, 2);
    blue.stop().await;
    green.stop().await;
    assert!(blue_heard.rest().await.is_empty() && green_heard.rest().await.is_empty());
    assert_eq!((nats.count("BLUE_TRELLIS_EVENTS").await, nats.count("GREEN_TRELLIS_EVENTS").await), (1, 1));
}

#[tokio::test]
async fn fields_that_a_payload_elsewhere_lacks_are_named() {
    let (bed, nats) = (Bed::new(1).await, Nats::start().await);
    let errors = [
        start::<elsewhere::params::Contract>(&bed, &nats).await.unwrap_err(),
        start::<elsewhere::order::Contract>(&bed, &nats).await.unwrap_err(),
    ];
    let told = |error: &StartError| match error {
        StartError::UnknownField { event, field, known } => (*event, *field, known.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(told(&errors[0]), ("orders.placed", "country", "id, region".to_owned()));
    assert_eq!(told(&errors[1]), ("orders.placed", "number", "id, region".to_owned()));
}

/// A start that is given up half-way leaves nothing that runs.
#[tokio::test]
async fn a_start_dropped_at_any_moment_leaves_nothing_running() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let (reader, heard) = Reader::content();
    for ms in [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 20_000] {
        let starting = host(&bed, &nats, &reader).mount_with::<notes::Readers>(quick()).start();
        drop(tokio::time::timeout(Duration::from_millis(ms), starting).await);
    }
    // Those that got through were dropped as well, and nobody sends or handles any more.
    let committed: Result<(), OutboxError> =
        bed.outbox().transaction(async |tx| EVENT.notes.added.enqueue(tx, added(1)).await.map(drop)).await;
    committed.unwrap();
    until("no pull waits", SOON, || async { nats.consumer("test-notes--readers").await.num_waiting == 0 })
        .await;
    assert!(heard.rest().await.is_empty());
    assert_eq!((bed.rows().await, nats.stored().await), (1, 0));
    let host = host(&bed, &nats, &reader).mount::<notes::Readers>().start().await.unwrap();
    assert_eq!(heard.next().await.deliveries, 1);
    host.stop().await;
}

/// Handlers that wait for the gate, and whether one of them was heard to its end.
fn gated(gate: &Arc<Semaphore>, ended: &Arc<AtomicBool>) -> (Reader<Db>, crate::support::reader::Heard) {
    let (gate, ended) = (Arc::clone(gate), Arc::clone(ended));
    Reader::new(move |ctx, _| {
        let (gate, ended) = (Arc::clone(&gate), Arc::clone(&ended));
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            ctx.transaction(async |tx| {
                EVENT.notes.moved.enqueue(tx, crate::support::contract::moved(1, 1)).await.map(drop)
            })
            .await?;
            ended.store(true, Ordering::SeqCst);
            Ok(())
        })
    })
}

/// A stop hears running handlers to their end, sends what they enqueued, and may be called as often as one likes.
#[tokio::test]
async fn a_stop_finishes_what_runs_and_drains_the_outbox() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (gate, ended) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicBool::new(false)));
    let (reader, heard) = gated(&gate, &ended);
    let host = host(&bed, &nats, &reader).mount::<crate::events::reading::Late>().start().await.unwrap();
    add(&host.ctx(), [1, 2]).await;
    heard.next().await;
    let stops = async { tokio::join!(host.stop(), host.stop(), host.stop()) };
    let open = async {
        until("it is stopping", SOON, || async { !host.health().is_ready() }).await;
        assert_eq!(host.health().problems, ["the service is stopping"]);
        add(&host.ctx(), [3]).await;
        gate.add_permits(10);
    };
    tokio::time::timeout(SOON, async { tokio::join!(stops, open) }).await.unwrap();
    host.stop().await;
    assert!(ended.load(Ordering::SeqCst));
    assert!(heard.rest().await.is_empty(), "nothing new was begun");
    assert_eq!((bed.rows().await, nats.stored().await), (0, 4));
    let consumer = nats.consumer("test-reading--late").await;
    assert_eq!(consumer.num_ack_pending, 0, "what came late was given back");
}

/// A handler that never ends does not hold up a stop; its event goes to another instance at once.
#[tokio::test]
async fn a_handler_that_never_ends_is_given_up() {
    let (bed, nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (gate, ended) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicBool::new(false)));
    let (stuck, stuck_heard) = gated(&gate, &ended);
    let (free, heard) = Reader::content();
    let first = host(&bed, &nats, &stuck).stop_timeout(Duration::from_millis(300));
    let first = first.mount::<crate::events::reading::Late>().start().await.unwrap();
    add(&first.ctx(), [1]).await;
    stuck_heard.next().await;
    let second = host(&bed, &nats, &free).mount::<crate::events::reading::Late>().start().await.unwrap();
    let took = Stopwatch::start();
    first.stop().await;
    let taken = heard.next().await;
    assert!(took.elapsed() < Duration::from_secs(8), "{:?}, and the ack wait is 30 s", took.elapsed());
    assert_eq!((taken.number, taken.deliveries), (1, 2));
    assert!(!ended.load(Ordering::SeqCst));
    second.stop().await;
}

/// A stop ends although neither server nor handlers answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_is_bounded_when_the_server_is_mute() {
    let (bed, mut nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (reader, _heard) = Reader::content();
    let host =
        host(&bed, &nats, &reader).stop_timeout(Duration::from_secs(1)).drain_timeout(Duration::from_secs(1));
    let host = host.mount_with::<notes::Readers>(quick()).start().await.unwrap();
    nats.server.suspend().unwrap();
    let took = Stopwatch::start();
    host.stop().await;
    assert!(took.elapsed() < Duration::from_secs(15), "{:?}", took.elapsed());
    nats.server.resume().unwrap();
}

/// Each problem in turn, in words.
#[tokio::test]
async fn health_names_what_is_wrong() {
    let (bed, mut nats) = (Bed::<Db>::new(4).await, Nats::start().await);
    let (reader, heard) = Reader::content();
    let host: NotesHost<Db> =
        host(&bed, &nats, &reader).mount_with::<notes::Readers>(quick()).start().await.unwrap();
    assert!(host.health().is_ready(), "{:?}", host.health());
    let says = async |part: &str| {
        let has = || host.health().problems.iter().any(|problem| problem.contains(part));
        until(part, SOON, || async { has() }).await;
    };
    nats.server.kill().unwrap();
    says("no connection to the NATS server").await;
    add(&host.ctx(), [1]).await;
    says("the dispatcher is paused: ").await;
    says("group `readers` gets no events: ").await;
    nats.server.restart().unwrap();
    heard.next().await;
    until("it is ready", SOON, || async { host.health().is_ready() }).await;

    // Somebody else takes the place of the stream.
    nats.context.delete_stream("TRELLIS_EVENTS").await.unwrap();
    let foreign =
        stream::Config { name: "TRELLIS_EVENTS".into(), subjects: vec!["x".into()], ..Default::default() };
    nats.context.create_stream(foreign).await.unwrap();
    says("stream `TRELLIS_EVENTS` exists and is not one of ours").await;
    nats.context.delete_stream("TRELLIS_EVENTS").await.unwrap();
    until("it is ready", SOON, || async { host.health().is_ready() }).await;
    host.stop().await;
    assert_eq!(host.health().problems, ["the service is stopping"]);
}

/// `run` stops the service when the process is asked to end.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_ends_on_sigterm_and_finishes_first() {
    let (bed, nats) = (Bed::<Db>::new(2).await, Nats::start().await);
    let log = tempfile::tempdir().unwrap();
    let launch = Launch::new(std::env::current_exe().unwrap(), log.path().join("child.log"));
    let launch = launch.args(["--ignored", "--exact", "--nocapture", "host::a_child_that_runs"]);
    let launch = launch.env("TRELLIS_IT_CHILD_NATS", nats.server.url()).env("TRELLIS_IT_CHILD_DB", &bed.url);
    tokio::task::spawn_blocking(move || {
        let mut child = launch.start().unwrap();
        child.wait_until_printed("handling", SOON).unwrap();
        child.terminate().unwrap();
        let status = child.wait_timeout(SOON).unwrap().expect("it should have ended");
        assert!(status.success(), "{}", child.printed());
        assert!(child.printed().contains("handled\nstopped"), "{}", child.printed());
    })
    .await
    .unwrap();
    assert_eq!(nats.consumer("test-notes--readers").await.num_ack_pending, 0);
}

/// The process of the test above.
#[tokio::test]
#[ignore = "started by `run_ends_on_sigterm_and_finishes_first`"]
async fn a_child_that_runs() {
    let pool = sqlx::SqlitePool::connect(&std::env::var("TRELLIS_IT_CHILD_DB").unwrap()).await.unwrap();
    let (reader, _heard) = Reader::<Db>::new(|_, _| {
        Box::pin(async {
            println!("handling");
            tokio::time::sleep(Duration::from_millis(500)).await;
            println!("handled");
            Ok(())
        })
    });
    let client = connect(std::env::var("TRELLIS_IT_CHILD_NATS").unwrap()).await;
    let host = Host::builder(reader, SqlOutbox::new(pool).unwrap()).client(client).streams(small());
    let host = host.mount::<notes::Readers>().start().await.unwrap();
    add(&host.ctx(), [1]).await;
    host.run().await;
    println!("stopped");
}
