//! One compare-and-append: sent again until it is decided.
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::ErrorCode;
use async_nats::{HeaderMap, Request, RequestErrorKind};
use bytes::Bytes;
use serde::Deserialize;

use crate::causes::chain;
use crate::jobs::log::{JobLog, Tree};
use crate::wire;

/// How long one send waits for its acknowledgement.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait before an append is sent again: it doubles from the first to the longest.
const AGAIN_FIRST: Duration = Duration::from_millis(10);
const AGAIN_LONGEST: Duration = Duration::from_secs(1);

/// An entry about to be appended.
#[derive(Debug, Clone)]
pub(crate) struct Append {
    /// All subjects of the job, before the last token.
    pub(crate) tree: String,
    /// The last token.
    pub(crate) token: &'static str,
    /// Sequence number of the last entry of the tree, 0 for none.
    pub(crate) expected: u64,
    /// Names this append, however often it is sent.
    pub(crate) id: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why an entry was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// The tree has moved on, and this append is not in it: what it holds now.
    Moved(Box<Tree>),
    /// The broker will never take it.
    Refused(String),
    /// Not decided in time: it may be in the log. Sent again it is decided.
    Undecided(String),
    /// Not in the log: it was never sent, or there is no stream.
    NotSent(String),
}

/// What one send came to.
enum Sent {
    At(u64),
    /// The expectation does not hold.
    Mismatch,
    /// Nothing is known: send it again.
    Again {
        reason: String,
        sent: bool,
    },
    Never(String),
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    seq: u64,
    error: Option<async_nats::jetstream::Error>,
}

impl JobLog {
    /// Append; yields the entry's sequence number. Gives up after `patience`.
    ///
    /// Cancel safety: dropped, it is not known whether the entry is in the log.
    pub(crate) async fn append(&self, append: &Append, patience: Duration) -> Result<u64, AppendError> {
        let began = self.ports.clock.monotonic();
        let (mut maybe_sent, mut again) = (false, AGAIN_FIRST);
        loop {
            let reason = match self.send(append).await {
                Sent::At(sequence) => return Ok(sequence),
                Sent::Never(reason) => return Err(AppendError::Refused(reason)),
                Sent::Mismatch => match self.tree(&append.tree).await {
                    Ok(Some(tree)) => match tree.own(&append.id) {
                        Some(sequence) => return Ok(sequence),
                        None => return Err(AppendError::Moved(Box::new(tree))),
                    },
                    // It cannot be empty: only one who lags can say so. Or somebody purged it.
                    Ok(None) => "the log of the job cannot be found, though something is in it".to_owned(),
                    Err(error) => error.to_string(),
                },
                Sent::Again { reason, sent } => {
                    maybe_sent |= sent;
                    reason
                }
            };
            let spent = self.ports.clock.monotonic().saturating_sub(began);
            if spent >= patience {
                let error = if maybe_sent { AppendError::Undecided } else { AppendError::NotSent };
                return Err(error(reason));
            }
            tracing::debug!(tree = append.tree, token = append.token, reason, "an append is sent again");
            let pause = again / 2 + self.ports.jitter.full(again / 2);
            tokio::time::sleep(pause.min(patience.saturating_sub(spent))).await;
            again = again.saturating_mul(2).min(AGAIN_LONGEST);
        }
    }

    async fn send(&self, append: &Append) -> Sent {
        // A disconnected client would queue it, and send it much later.
        if self.client.connection_state() != State::Connected {
            return Sent::Again { reason: "no connection to the server".to_owned(), sent: false };
        }
        let Append { tree, token, expected, id, headers, body } = append;
        let mut headers = headers.clone();
        headers.insert(wire::EXPECTED_SEQUENCE, expected.to_string());
        headers.insert(wire::EXPECTED_SUBJECT, format!("{tree}.>"));
        headers.insert(wire::APPEND_ID, id.as_str());
        let request = Request::new().headers(headers).payload(body.clone()).timeout(Some(ACK_TIMEOUT));
        // The client's own time begins when the request is on its way.
        let sent = self.client.send_request(format!("{tree}.{token}"), request);
        match tokio::time::timeout(ACK_TIMEOUT + ACK_TIMEOUT / 2, sent).await {
            Err(_) => Sent::Again { reason: "it could not be sent in time".to_owned(), sent: true },
            Ok(Ok(answer)) => judge(&answer.payload),
            Ok(Err(error)) => match error.kind() {
                RequestErrorKind::NoResponders => Sent::Again {
                    reason: format!("no stream takes it: is `{}` there?", self.stream),
                    sent: false,
                },
                RequestErrorKind::MaxPayloadExceeded | RequestErrorKind::InvalidSubject => {
                    Sent::Never(chain(&error))
                }
                _ => Sent::Again { reason: chain(&error), sent: true },
            },
        }
    }
}

fn judge(answer: &[u8]) -> Sent {
    let unclear = |reason: String| Sent::Again { reason, sent: true };
    match serde_json::from_slice::<Answer>(answer) {
        Ok(Answer { error: None, seq }) if seq > 0 => Sent::At(seq),
        Ok(Answer { error: Some(error), .. }) => match error.error_code() {
            ErrorCode::STREAM_WRONG_LAST_SEQUENCE => Sent::Mismatch,
            // Another append of the tree is on its way through the replicas.
            ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT => unclear(error.to_string()),
            code if crate::broker::is_passing(code, error.code()) => unclear(error.to_string()),
            _ => Sent::Never(error.to_string()),
        },
        Ok(Answer { error: None, .. }) => unclear("the server acknowledged without storing".to_owned()),
        Err(error) => unclear(format!("the server's answer cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Sent, judge};

    #[test]
    fn answers_are_told_apart() {
        let error = |code: u64, err_code: u64| {
            format!(r#"{{"error":{{"code":{code},"err_code":{err_code},"description":"d"}},"stream":"S"}}"#)
        };
        assert!(matches!(judge(br#"{"stream":"S","seq":7}"#), Sent::At(7)));
        assert!(matches!(judge(error(400, 10071).as_bytes()), Sent::Mismatch));
        for undecided in [error(400, 10164), error(503, 10008), error(503, 10077)] {
            assert!(matches!(judge(undecided.as_bytes()), Sent::Again { sent: true, .. }), "{undecided}");
        }
        assert!(matches!(judge(error(400, 10054).as_bytes()), Sent::Never(_)), "too large");
        for unclear in [&b"{}"[..], b"", b"\xff", br#"{"seq":0}"#] {
            assert!(matches!(judge(unclear), Sent::Again { sent: true, .. }));
        }
    }
}
