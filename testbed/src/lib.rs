//! Real servers for tests, demos and benchmarks.
