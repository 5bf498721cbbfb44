//! Any program as a child: its signals and its end.
#![cfg(unix)]

use std::time::Duration;

use testbed::{Error, Launch, Process, Stopwatch};

use crate::support::is_alive;

const SOON: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(100);

fn shell(directory: &tempfile::TempDir, script: &str) -> Result<Process, Error> {
    Launch::new("sh", directory.path().join("log")).args(["-c", script]).env("WORD", "heard").start()
}

#[test]
fn its_output_is_seen_while_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = shell(&directory, "echo $WORD; exec sleep 60").unwrap();
    process.wait_until_printed("heard", SOON).unwrap();
    assert!(process.wait_timeout(MOMENT).unwrap().is_none());
}

#[test]
fn waiting_for_output_ends_with_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let stopwatch = Stopwatch::start();
    let mut process = shell(&directory, "echo nothing of interest").unwrap();
    let message = process.wait_until_printed("ready", SOON).unwrap_err().to_string();
    assert!(message.contains("nothing of interest"), "{message}");
    assert!(stopwatch.elapsed() < SOON);
}

#[test]
fn an_earlier_run_in_the_same_log_is_not_taken_for_this_one() {
    let directory = tempfile::tempdir().unwrap();
    shell(&directory, "echo first").unwrap().wait_timeout(SOON).unwrap();
    let mut second = shell(&directory, "echo second").unwrap();
    second.wait_timeout(SOON).unwrap();
    assert_eq!(second.printed(), "second\n");
}

#[test]
fn it_can_be_asked_to_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut process =
        shell(&directory, "trap 'exit 7' TERM; echo set; while :; do sleep 0.01; done").unwrap();
    process.wait_until_printed("set", SOON).unwrap();
    process.terminate().unwrap();
    assert_eq!(process.wait_timeout(SOON).unwrap().unwrap().code(), Some(7));
    process.terminate().unwrap();
}

#[test]
fn one_that_does_not_listen_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = shell(&directory, "trap '' TERM; echo set; while :; do sleep 0.01; done").unwrap();
    process.wait_until_printed("set", SOON).unwrap();
    process.stop(MOMENT).unwrap();
    assert!(!is_alive(process.pid()));
}

#[test]
fn it_stands_still_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = shell(&directory, "while :; do echo tick; sleep 0.01; done").unwrap();
    process.wait_until_printed("tick", SOON).unwrap();

    process.suspend().unwrap();
    std::thread::sleep(MOMENT);
    let silent = process.printed();
    std::thread::sleep(MOMENT);
    assert_eq!(process.printed(), silent);

    process.resume().unwrap();
    process.wait_until_printed(&format!("{silent}tick"), SOON).unwrap();
}

#[test]
fn it_does_not_outlive_its_owner() {
    let directory = tempfile::tempdir().unwrap();
    let process = shell(&directory, "exec sleep 60").unwrap();
    let pid = process.pid();
    assert!(is_alive(pid));
    drop(process);
    assert!(!is_alive(pid));
}

#[test]
fn a_missing_program_is_an_error_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let error = Launch::new("no-such-program-here", directory.path().join("log")).start().unwrap_err();
    assert!(error.to_string().contains("no-such-program-here"), "{error}");
}
