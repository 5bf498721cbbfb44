//! For tests: an outbox in memory, a clock that is set by hand, a broker with faults.
