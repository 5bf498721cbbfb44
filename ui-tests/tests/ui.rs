//! Compiles every case; a failing one must fail with exactly the messages beside it.
//!
//! `TRYBUILD=overwrite cargo test -p ui-tests` blesses them; review the difference as code.

#[test]
fn pass() {
    trybuild::TestCases::new().pass("tests/pass/*.rs");
}

#[test]
fn fail() {
    trybuild::TestCases::new().compile_fail("tests/fail/*/*.rs");
}
