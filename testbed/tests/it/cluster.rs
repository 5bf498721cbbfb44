//! Three nats-servers, their leaders killed and suspended.

use std::time::Duration;

use testbed::nats::{self, Cluster, Options, Server};
use testbed::{Error, Stopwatch};

use crate::support::{is_alive, is_free};

const STREAM: &str = "ORDERS";
const CONSUMER: &str = "work";
/// Far longer than an election takes, even on a busy machine.
const ELECTED: Duration = Duration::from_secs(45);

fn cluster() -> Result<Cluster, Error> {
    Cluster::start(&nats::find()?, &Options::default())
}

fn make_stream(cluster: &Cluster) -> Result<String, Error> {
    let config =
        format!(r#"{{"name":"{STREAM}","subjects":["orders.>"],"storage":"file","num_replicas":3}}"#);
    cluster.ask(&format!("$JS.API.STREAM.CREATE.{STREAM}"), &config)
}

fn make_consumer(cluster: &Cluster) -> Result<String, Error> {
    let config = format!(
        r#"{{"stream_name":"{STREAM}","config":{{"durable_name":"{CONSUMER}","ack_policy":"explicit"}}}}"#
    );
    cluster.ask(&format!("$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{CONSUMER}"), &config)
}

fn store(cluster: &Cluster, text: &str) -> Result<String, Error> {
    cluster.ask("orders.placed", text)
}

/// At least as many as were sent: one whose answer was late is sent again.
fn count_of_stored(cluster: &Cluster) -> Result<usize, Error> {
    let info = cluster.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), "")?;
    let counted = info.split_once("\"messages\":").map_or("", |(_, rest)| rest);
    let digits: String = counted.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse().unwrap_or(0))
}

#[test]
fn a_killed_leader_is_replaced_and_comes_back() {
    let mut cluster = cluster().unwrap();
    make_stream(&cluster).unwrap();
    make_consumer(&cluster).unwrap();
    store(&cluster, "before").unwrap();

    let killed = cluster.leader_of_stream(STREAM).unwrap();
    cluster.node_mut(&killed).unwrap().kill().unwrap();
    let stopwatch = Stopwatch::start();
    assert_ne!(cluster.leader_of_stream(STREAM).unwrap(), killed);
    assert_ne!(cluster.leader_of_consumer(STREAM, CONSUMER).unwrap(), killed);
    assert!(stopwatch.elapsed() < ELECTED, "{:?}", stopwatch.elapsed());
    store(&cluster, "without it").unwrap();

    cluster.node_mut(&killed).unwrap().restart().unwrap();
    cluster.wait_until_caught_up().unwrap();

    // It has all of it: with one of the others gone, the stream goes on only if this one takes part.
    let next = cluster.leader_of_stream(STREAM).unwrap();
    cluster.node_mut(&next).unwrap().kill().unwrap();
    assert_ne!(cluster.leader_of_stream(STREAM).unwrap(), next);
    assert!(count_of_stored(&cluster).unwrap() >= 2);
}

#[test]
fn all_of_it_can_be_killed_and_started_again() {
    let mut cluster = cluster().unwrap();
    make_stream(&cluster).unwrap();
    store(&cluster, "kept").unwrap();
    let urls = cluster.urls();

    cluster.nodes_mut().iter_mut().for_each(|node| node.kill().unwrap());
    cluster.restart().unwrap();
    assert_eq!(cluster.urls(), urls);
    assert!(count_of_stored(&cluster).unwrap() >= 1);
}

#[test]
#[cfg(unix)]
fn a_suspended_leader_is_replaced() {
    let mut cluster = cluster().unwrap();
    let silent = cluster.leader_of_stream(Cluster::KEPT).unwrap();
    cluster.node_mut(&silent).unwrap().suspend().unwrap();
    assert_ne!(cluster.leader_of_stream(Cluster::KEPT).unwrap(), silent);

    cluster.node_mut(&silent).unwrap().resume().unwrap();
    cluster.wait_until_caught_up().unwrap();
}

#[test]
fn nothing_of_it_is_left_when_it_is_dropped() {
    let cluster = cluster().unwrap();
    let seen: Vec<_> =
        cluster.nodes().iter().map(|node| (node.pid().unwrap(), node.port(), node.store_dir())).collect();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|(pid, port, store)| is_alive(*pid) && !is_free(*port) && store.exists()));

    drop(cluster);
    assert!(seen.iter().all(|(pid, port, store)| !is_alive(*pid) && is_free(*port) && !store.exists()));
}

#[test]
fn what_is_not_there_is_said_at_once() {
    let mut cluster = cluster().unwrap();
    let error = cluster.leader_of_stream("NONE").unwrap_err();
    assert!(
        matches!(&error, Error::Refused { answer, .. } if answer.contains("stream not found")),
        "{error}"
    );
    assert!(matches!(cluster.node_mut("nobody").map(|_: &mut Server| ()), Err(Error::NoSuchNode { .. })));
}

#[test]
fn one_port_is_not_enough() {
    let options = Options { port: Some(4222), ..Options::default() };
    let error = Cluster::start(&nats::find().unwrap(), &options).unwrap_err();
    assert!(matches!(error, Error::Port { .. }), "{error}");
}
