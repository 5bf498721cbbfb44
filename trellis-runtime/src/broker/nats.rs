//! The JetStream adapter.
use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{ContextBuilder, PublishAckFuture, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{DiscardPolicy, Info};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{Client, jetstream::Context};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::broker::{Ack, Broker, Outgoing, PublishError};
use crate::causes::{causes, chain};

/// Most publishes that wait for their acknowledgement.
const WINDOW: usize = 1000;
/// How long a probe waits.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Publishes to JetStream through one client.
#[derive(Debug)]
pub struct NatsBroker {
    client: Client,
    context: Context,
    window: Semaphore,
    stream: String,
    ack_timeout: Duration,
}

impl NatsBroker {
    /// Publish through `client`; `stream` is what a probe asks for, `ack_timeout` how long a publish
    /// waits for its acknowledgement.
    pub fn new(client: Client, stream: impl Into<String>, ack_timeout: Duration) -> Self {
        // The window is ours: the client's own would deadlock with acknowledgements awaited after a page.
        let context =
            ContextBuilder::new().timeout(ack_timeout).max_ack_inflight(WINDOW * 8).build(client.clone());
        Self { client, context, window: Semaphore::new(WINDOW), stream: stream.into(), ack_timeout }
    }

    async fn publish_chunk(&self, chunk: Vec<Outgoing>, outcomes: &mut Vec<Result<Ack, PublishError>>) {
        let wanted = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let Ok(_permits) = self.window.acquire_many(wanted).await else { return };
        let mut pending = Vec::with_capacity(chunk.len());
        let mut unavailable = None;
        for message in chunk {
            // A client that cannot send one message now would make each further one wait as long.
            let sent = match &unavailable {
                Some(reason) => Err(PublishError::Unavailable(String::clone(reason))),
                None => self.send(message).await,
            };
            if let Err(PublishError::Unavailable(reason)) = &sent {
                unavailable.get_or_insert_with(|| reason.clone());
            }
            pending.push(sent);
        }
        // One deadline for all: the client's own begins anew with each acknowledgement awaited.
        let mut deadline = pin!(tokio::time::sleep(self.ack_timeout));
        let mut expired = false;
        for sent in pending {
            outcomes.push(match sent {
                Ok(ack) => {
                    let mut ack = pin!(acknowledged(ack));
                    let answer = tokio::select! {
                        biased;
                        answer = &mut ack => Some(answer),
                        () = &mut deadline, if !expired => None,
                        () = std::future::ready(()), if expired => None,
                    };
                    expired |= answer.is_none();
                    answer.unwrap_or_else(|| {
                        Err(PublishError::Unavailable("no acknowledgement in time".to_owned()))
                    })
                }
                Err(error) => Err(error),
            });
        }
    }

    async fn send(&self, message: Outgoing) -> Result<PublishAckFuture, PublishError> {
        // A disconnected client queues publishes and sends them much later.
        if self.client.connection_state() != State::Connected {
            return Err(PublishError::Unavailable("no connection to the server".to_owned()));
        }
        let publish = PublishMessage::build().payload(message.body).headers(message.headers);
        self.context.send_publish(message.subject, publish).await.map_err(judge)
    }
}

impl Broker for NatsBroker {
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        Box::pin(async move {
            let mut outcomes = Vec::with_capacity(page.len());
            let mut page = page.into_iter();
            loop {
                let chunk: Vec<Outgoing> = page.by_ref().take(WINDOW).collect();
                if chunk.is_empty() {
                    return outcomes;
                }
                self.publish_chunk(chunk, &mut outcomes).await;
            }
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            if self.client.connection_state() != State::Connected {
                return Err("no connection to the server".to_owned());
            }
            let asked = tokio::time::timeout(PROBE_TIMEOUT, self.context.get_stream(&self.stream)).await;
            let stream = asked
                .map_err(|_| format!("the server does not answer for stream {}", self.stream))?
                .map_err(|error| format!("stream {} is not available: {}", self.stream, chain(&error)))?;
            full(stream.cached_info()).map_or(Ok(()), Err)
        })
    }
}

async fn acknowledged(ack: PublishAckFuture) -> Result<Ack, PublishError> {
    let ack = ack.await.map_err(judge)?;
    if ack.sequence == 0 {
        return Err(PublishError::Unavailable("the server acknowledged without storing".to_owned()));
    }
    Ok(Ack { stream: ack.stream, sequence: ack.sequence, duplicate: ack.duplicate })
}

/// Why a stream takes no message of any kind.
fn full(info: &Info) -> Option<String> {
    let (config, state) = (&info.config, &info.state);
    if info.cluster.as_ref().is_some_and(|cluster| cluster.leader.is_none()) {
        return Some(format!("stream {} has no leader", config.name));
    }
    if config.discard != DiscardPolicy::New {
        return None;
    }
    // A message of average size would not fit either.
    let average = state.bytes.checked_div(state.messages).unwrap_or_default();
    let reached = |limit: i64, used: u64| u64::try_from(limit).is_ok_and(|limit| limit > 0 && used >= limit);
    let is_full =
        reached(config.max_messages, state.messages) || reached(config.max_bytes, state.bytes + average);
    is_full.then(|| format!("stream {} is full and discards new messages", config.name))
}

fn judge(error: async_nats::jetstream::context::PublishError) -> PublishError {
    let reason = chain(&error);
    match error.kind() {
        PublishErrorKind::TimedOut
        | PublishErrorKind::BrokenPipe
        | PublishErrorKind::StreamNotFound
        | PublishErrorKind::MaxAckPending => PublishError::Unavailable(reason),
        PublishErrorKind::MaxPayloadExceeded
        | PublishErrorKind::WrongLastMessageId
        | PublishErrorKind::WrongLastSequence => PublishError::Refused(reason),
        PublishErrorKind::Other => match server_error(&error) {
            Some(server) if is_passing(server.error_code(), server.code()) => {
                PublishError::Unavailable(reason)
            }
            Some(_) => PublishError::Refused(reason),
            None if is_about_the_message(&error) => PublishError::Refused(reason),
            None => PublishError::Unavailable(reason),
        },
    }
}

/// Errors of the server that another time may not see, by its `errors.json`.
pub(crate) fn is_passing(code: ErrorCode, status: usize) -> bool {
    const PASSING: [ErrorCode; 12] = [
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
        ErrorCode::CLUSTER_NOT_AVAILABLE,
        ErrorCode::CLUSTER_NOT_LEADER,
        ErrorCode::CLUSTER_NO_PEERS,
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::MEMORY_RESOURCES_EXCEEDED,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::JETSTREAM_NOT_ENABLED,
        ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT,
        ErrorCode::STREAM_NOT_FOUND,
        ErrorCode::STREAM_OFFLINE,
        ErrorCode::STREAM_STORE_FAILED,
    ];
    PASSING.contains(&code) || status == 503
}

fn server_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a jetstream::Error> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

fn is_about_the_message(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(<dyn Error>::is::<async_nats::SubjectError>)
}
