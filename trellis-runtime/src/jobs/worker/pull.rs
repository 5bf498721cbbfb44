//! Pulls: asks the broker for as many deliveries as there are free slots, and never for more.
//!
//! An issued pull is never cancelled: what the server gave away in the meantime would be stuck until
//! its ack wait. So a stop waits for it, and it is short.
use std::collections::VecDeque;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::{Message, Request, StatusCode, Subscriber};
use futures_util::StreamExt;

use crate::causes::chain;

/// How long an issued pull waits for deliveries.
pub(crate) const EXPIRES: Duration = Duration::from_secs(1);
/// How long beyond that the server may be silent.
const GRACE: Duration = Duration::from_secs(3);

/// The pulls of one queue: one inbox, several requests.
pub(crate) struct Pulls {
    context: Context,
    /// `CONSUMER.MSG.NEXT.<stream>.<consumer>`
    next: String,
    inbox: String,
    subscription: Subscriber,
    expires: Duration,
    /// When each pull was issued, by the monotonic clock, and how many deliveries it still waits for.
    issued: VecDeque<(Duration, usize)>,
    /// When something was heard or asked last.
    heard_at: Duration,
}

/// What came on the inbox.
pub(crate) enum Heard {
    /// A delivery that was given away after this moment.
    Delivery(Message, Duration),
    /// A pull has ended.
    Ended,
    /// Pulls are of no use any more.
    Broken(String),
}

impl Pulls {
    pub(crate) async fn open(
        context: &Context,
        (stream, consumer): (&str, &str),
        expires: Duration,
    ) -> Result<Self, String> {
        let client = context.client();
        let inbox = client.new_inbox();
        let subscription = client.subscribe(inbox.clone()).await.map_err(|error| chain(&error))?;
        Ok(Self {
            context: context.clone(),
            next: format!("CONSUMER.MSG.NEXT.{stream}.{consumer}"),
            inbox,
            subscription,
            expires,
            issued: VecDeque::new(),
            heard_at: Duration::ZERO,
        })
    }

    /// Ask for `batch` more, at `now`.
    pub(crate) async fn ask(&mut self, batch: usize, now: Duration) -> Result<(), String> {
        let body = format!(r#"{{"batch":{batch},"expires":{}}}"#, self.expires.as_nanos());
        let request = Request::new().payload(body.into()).inbox(self.inbox.clone());
        let sent = tokio::time::timeout(GRACE, self.context.send_request(self.next.clone(), request)).await;
        sent.map_err(|_| "a pull could not be sent".to_owned())?.map_err(|error| chain(&error))?;
        self.issued.push_back((now, batch));
        self.heard_at = now;
        Ok(())
    }

    /// Deliveries that were asked for and have neither come nor been refused.
    pub(crate) fn outstanding(&self) -> usize {
        self.issued.iter().map(|(_, left)| left).sum()
    }

    /// So many of the outstanding ones are settled, those of the oldest pulls first. When the last of
    /// them was issued: what is settled by its delivery was given away after that, for the pulls
    /// before it could not have brought so many.
    fn settle(&mut self, mut count: usize) -> Option<Duration> {
        let mut issued_at = None;
        while let Some((at, left)) = self.issued.front_mut() {
            issued_at = Some(*at);
            let taken = count.min(*left);
            *left -= taken;
            count -= taken;
            if *left > 0 {
                break;
            }
            self.issued.pop_front();
            if count == 0 {
                break;
            }
        }
        issued_at
    }

    /// What comes next. Waits without an end: see [`is_silent`](Pulls::is_silent).
    ///
    /// Cancel safety: nothing is lost.
    pub(crate) async fn hear(&mut self) -> Option<Message> {
        self.subscription.next().await
    }

    /// What a message means.
    pub(crate) fn read(&mut self, message: Message, now: Duration) -> Heard {
        self.heard_at = now;
        let Some(status) = message.status else {
            // One that nobody asked for may have been on its way for long.
            let given_after = self.settle(1).unwrap_or_default();
            return Heard::Delivery(message, given_after);
        };
        let said = message.description.as_deref().unwrap_or_default().to_owned();
        let unfilled = message.headers.as_ref().and_then(|headers| {
            headers.get("Nats-Pending-Messages").and_then(|left| left.as_str().parse::<usize>().ok())
        });
        match (status, unfilled) {
            (StatusCode::IDLE_HEARTBEAT, _) => Heard::Ended,
            (StatusCode::NO_RESPONDERS, _) => Heard::Broken("the server has no such consumer".to_owned()),
            // Too many pulls wait: this one was not taken, the others are as they were.
            (StatusCode::REQUEST_TERMINATED, None) if said.to_ascii_lowercase().contains("maxwaiting") => {
                self.refused();
                Heard::Ended
            }
            (_, Some(unfilled)) => {
                self.settle(unfilled);
                if is_the_end(&said) { Heard::Broken(said) } else { Heard::Ended }
            }
            (_, None) => Heard::Broken(format!("{status} {said}")),
        }
    }

    /// The last pull was not taken.
    fn refused(&mut self) {
        self.issued.pop_back();
    }

    /// Whether the server owes an answer.
    pub(crate) fn is_silent(&self, now: Duration) -> bool {
        self.outstanding() > 0 && now.saturating_sub(self.heard_at) > self.expires + GRACE
    }
}

/// Whether a pull ended because there is nothing to pull from.
fn is_the_end(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    ["consumer deleted", "consumer is push", "stream deleted"].iter().any(|end| said.contains(end))
}
