//! Reads a stream from its first message to the one that is the last now.
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use futures_util::StreamExt;

use crate::Error;

/// How long the stream may take to deliver its next message.
const NEXT_MESSAGE: Duration = Duration::from_secs(10);

/// Subjects and bodies.
pub(super) async fn read(
    context: &jetstream::Context,
    stream: &str,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut stream = context.get_stream(stream).await?;
    let count = stream.info().await?.state.messages;
    let all = OrderedConfig { deliver_policy: DeliverPolicy::All, ..OrderedConfig::default() };
    let mut messages = stream.create_consumer(all).await?.messages().await?;

    let mut read = Vec::new();
    for _ in 0..count {
        let next = tokio::time::timeout(NEXT_MESSAGE, messages.next()).await;
        let message =
            next.map_err(|_| "the stream stopped half-way")?.ok_or("the stream ended half-way")??;
        read.push((message.subject.to_string(), message.payload.to_vec()));
    }
    Ok(read)
}
