//! nats-server, fetched for real.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use testbed::nats::{self, OLDEST, Options, Server};
use testbed::{Error, Version, free_port};

use crate::support::{greeting, is_alive, is_free};

#[test]
fn a_server_answers_with_its_name_and_jetstream() {
    let binary = nats::find().unwrap();
    assert!(binary.version >= OLDEST);

    let server = Server::start(&binary, Options::default()).unwrap();
    let info = greeting(server.port());
    assert!(info.starts_with("INFO ") && info.contains("\"jetstream\":true"), "{info}");
    assert!(info.contains("\"host\":\"127.0.0.1\""), "{info}");
}

#[test]
fn nothing_is_left_when_it_is_dropped() {
    let server = Server::start(&nats::find().unwrap(), Options::default()).unwrap();
    let (pid, port, store) = (server.pid().unwrap(), server.port(), server.store_dir());
    assert!(is_alive(pid) && !is_free(port) && store.exists());

    drop(server);
    assert!(!is_alive(pid) && is_free(port) && !store.exists());
}

#[test]
fn it_comes_back_on_the_same_port_and_store_after_a_stop_and_a_kill() {
    let mut server = Server::start(&nats::find().unwrap(), Options::default()).unwrap();
    let (port, first) = (server.port(), server.pid().unwrap());
    let mark = server.store_dir().join("mark");
    std::fs::write(&mark, "still here").unwrap();

    server.stop().unwrap();
    assert!(server.pid().is_none() && !is_alive(first));
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), Some(first));

    server.kill().unwrap();
    assert!(is_free(port));
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert!(mark.exists());
}

#[test]
fn options_can_change_with_a_restart() {
    let mut server = Server::start(&nats::find().unwrap(), Options::default()).unwrap();
    let port = server.port();
    assert!(greeting(port).contains("\"max_payload\":1048576"));

    server.restart_with(|options| options.max_payload = Some(4096)).unwrap();
    assert_eq!(server.port(), port);
    assert!(greeting(port).contains("\"max_payload\":4096"));
}

#[test]
fn a_taken_port_that_was_asked_for_is_an_error() {
    let listener = TcpListener::bind(("127.0.0.1", free_port().unwrap())).unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = Options { port: Some(port), ..Options::default() };

    let error = Server::start(&nats::find().unwrap(), options).unwrap_err();
    assert!(matches!(error, Error::Port { .. }), "{error}");
}

#[test]
fn a_server_that_does_not_start_shows_why() {
    let options = Options { extra_config: "no_such_option: 1".into(), ..Options::default() };
    let message = Server::start(&nats::find().unwrap(), options).unwrap_err().to_string();
    assert!(message.contains("no_such_option"), "{message}");
}

#[test]
fn a_server_with_credentials_is_seen_to_be_ready() {
    let extra_config = "authorization { token: \"secret\" }".into();
    let server =
        Server::start(&nats::find().unwrap(), Options { extra_config, ..Options::default() }).unwrap();
    assert!(greeting(server.port()).contains("\"auth_required\":true"));
}

#[test]
fn jetstream_can_be_off_and_every_write_synced() {
    let binary = nats::find().unwrap();
    let plain = Server::start(&binary, Options { jetstream: false, ..Options::default() }).unwrap();
    assert!(!greeting(plain.port()).contains("\"jetstream\":true"));

    let synced = Server::start(&binary, Options { sync_always: true, ..Options::default() }).unwrap();
    assert!(greeting(synced.port()).contains("\"jetstream\":true"));
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let binary = nats::find().unwrap();
    let server = thread::spawn(move || Server::start(&binary, Options::default()).unwrap()).join().unwrap();
    thread::sleep(Duration::from_millis(300));
    assert!(greeting(server.port()).starts_with("INFO "));
}

#[test]
#[cfg(unix)]
fn a_suspended_server_can_be_stopped() {
    let mut server = Server::start(&nats::find().unwrap(), Options::default()).unwrap();
    let pid = server.pid().unwrap();
    server.suspend().unwrap();
    server.stop().unwrap();
    assert!(!is_alive(pid));
}

#[test]
#[ignore = "downloads: the versions that compatibility tests use"]
fn other_versions_are_fetched_and_start() {
    for version in ["2.10.26", "2.11.11", "2.15.1"] {
        let binary = nats::fetch(version).unwrap();
        assert_eq!(binary.version, Version::parse(version).unwrap());
        let server = Server::start(&binary, Options::default()).unwrap();
        assert!(greeting(server.port()).contains(&format!("\"version\":\"{version}\"")));
    }
}
