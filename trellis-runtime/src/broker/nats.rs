//! The JetStream adapter.
use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{ContextBuilder, PublishAckFuture, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{DiscardPolicy, Info, RawMessageErrorKind};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{Client, jetstream::Context};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::broker::{Ack, Broker, Destination, First, Outgoing, PublishError};
use crate::causes::{causes, chain};
use crate::wire::{APPEND_ID, Environment};

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
    event_stream: String,
    job_stream: String,
    ack_timeout: Duration,
}

impl NatsBroker {
    /// Publish through `client`; `event_stream` is what a probe for events asks for, `ack_timeout` how
    /// long a publish waits for its acknowledgement and a read for its answer.
    ///
    /// The stream of jobs is the one without an environment; see [`jobs`](Self::jobs).
    pub fn new(client: Client, event_stream: impl Into<String>, ack_timeout: Duration) -> Self {
        // The window is ours: the client's own would deadlock with acknowledgements awaited after a page.
        let context =
            ContextBuilder::new().timeout(ack_timeout).max_ack_inflight(WINDOW * 8).build(client.clone());
        let (window, event_stream) = (Semaphore::new(WINDOW), event_stream.into());
        Self {
            client,
            context,
            window,
            event_stream,
            job_stream: Environment::NONE.job_stream(),
            ack_timeout,
        }
    }

    /// Let `stream` be the stream of jobs that a probe asks for and [`Broker::first`] reads.
    #[must_use]
    pub fn jobs(mut self, stream: impl Into<String>) -> Self {
        self.job_stream = stream.into();
        self
    }

    fn connected(&self) -> Result<(), String> {
        match self.client.connection_state() {
            State::Connected => Ok(()),
            _ => Err("no connection to the server".to_owned()),
        }
    }

    async fn read(&self, filter: &str) -> Result<Option<First>, String> {
        self.connected()?;
        let stream = self.context.get_stream_no_info(&self.job_stream).await;
        let stream = stream.map_err(|error| chain(&error))?;
        // Answered by the stream's leader, unlike a direct get.
        match stream.get_first_raw_message_by_subject(filter, 1).await {
            Ok(message) => Ok(Some(First {
                subject: message.subject.to_string(),
                append_id: message.headers.get(APPEND_ID).map(|id| id.as_str().to_owned()),
                body: message.payload,
            })),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(chain(&error)),
        }
    }

    async fn publish_chunk(&self, chunk: Vec<Outgoing>, outcomes: &mut Vec<Result<Ack, PublishError>>) {
        let wanted = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let Ok(_permits) = self.window.acquire_many(wanted).await else { return };
        let mut pending = Vec::with_capacity(chunk.len());
        let mut unavailable = None;
        for message in chunk {
            // A client that cannot send one message now would make each further one wait as long.
            let sent = match &unavailable {
                Some(reason) => Err(PublishError::NotSent(String::clone(reason))),
                None => self.send(message).await,
            };
            if let Err(PublishError::NotSent(reason)) = &sent {
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
        self.connected().map_err(PublishError::NotSent)?;
        let publish = PublishMessage::build().payload(message.body).headers(message.headers);
        // What fails here was never handed to the connection.
        self.context.send_publish(message.subject, publish).await.map_err(|error| match judge(error) {
            PublishError::Unavailable(reason) => PublishError::NotSent(reason),
            error => error,
        })
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

    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>> {
        let name = match destination {
            Destination::Events => &self.event_stream,
            Destination::Jobs => &self.job_stream,
        };
        Box::pin(async move {
            self.connected()?;
            let asked = tokio::time::timeout(PROBE_TIMEOUT, self.context.get_stream(name)).await;
            let stream = asked
                .map_err(|_| format!("the server does not answer for stream {name}"))?
                .map_err(|error| format!("stream {name} is not available: {}", chain(&error)))?;
            full(stream.cached_info()).map_or(Ok(()), Err)
        })
    }

    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        Box::pin(async move {
            let asked = tokio::time::timeout(self.ack_timeout, self.read(&filter)).await;
            let read = asked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            read.map_err(|reason| {
                let stream = &self.job_stream;
                PublishError::Unavailable(format!("stream {stream} cannot be read: {reason}"))
            })
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
        PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe | PublishErrorKind::MaxAckPending => {
            PublishError::Unavailable(reason)
        }
        PublishErrorKind::StreamNotFound => PublishError::NotSent(reason),
        PublishErrorKind::WrongLastSequence => PublishError::Occupied(reason),
        PublishErrorKind::MaxPayloadExceeded | PublishErrorKind::WrongLastMessageId => {
            PublishError::Refused(reason)
        }
        PublishErrorKind::Other => match server_error(&error) {
            Some(server) if is_undecided(server.error_code()) => PublishError::Unavailable(reason),
            Some(server) if is_passing(server.error_code(), server.code()) => {
                PublishError::Unavailable(reason)
            }
            Some(_) => PublishError::Refused(reason),
            None if is_about_the_message(&error) => PublishError::Refused(reason),
            None => PublishError::Unavailable(reason),
        },
    }
}

/// Another append on the same subjects is on its way through the replicas: sent again, this one is
/// decided.
fn is_undecided(code: ErrorCode) -> bool {
    code == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT
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
