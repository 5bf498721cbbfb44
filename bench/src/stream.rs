//! The JetStream side: a fresh stream for each round, and how many messages it took.

use std::sync::atomic::{AtomicU32, Ordering};

use async_nats::jetstream::{self, stream::Config};

use crate::Result;
use crate::message::SUBJECT;

/// A stream that takes the messages of one round.
pub(crate) struct Round {
    pub(crate) name: String,
    js: jetstream::Context,
}

/// Keep one stream for good: an account that loses its only stream and gets one at once sometimes
/// answers "error creating store for stream" (nats-server 2.12.8 and 2.15.1).
pub(crate) async fn keep_one(js: &jetstream::Context) -> Result<()> {
    let keep = Config { name: "KEEP".into(), subjects: vec!["keep.>".into()], ..Config::default() };
    js.create_stream(keep).await?;
    Ok(())
}

impl Round {
    /// A fresh stream under a name that was never used.
    pub(crate) async fn begin(js: &jetstream::Context) -> Result<Self> {
        static ROUNDS: AtomicU32 = AtomicU32::new(0);
        let name = format!("ROUND_{}", ROUNDS.fetch_add(1, Ordering::Relaxed));
        let config = Config { name: name.clone(), subjects: vec![SUBJECT.into()], ..Config::default() };
        js.create_stream(config).await?;
        Ok(Self { name, js: js.clone() })
    }

    /// End the round; an error when the stream does not hold `rows` messages or rows are left.
    pub(crate) async fn end(self, who: &str, rows: u32, left: i64) -> Result<()> {
        let stored = self.js.get_stream(&self.name).await?.cached_info().state.messages;
        self.js.delete_stream(&self.name).await?;
        if stored == u64::from(rows) && left == 0 {
            return Ok(());
        }
        Err(format!("{who}: of {rows} rows {stored} are in the stream and {left} are left in the table")
            .into())
    }
}
