//! A broker with faults, around a real one.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;

use crate::broker::{Ack, Broker, Destination, First, Outgoing, PublishError};

/// What happens to one publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it goes through.
    None,
    /// It is stored, but its acknowledgement is lost.
    LoseAck,
    /// It never reaches the broker, and the sender does not know.
    Lose,
    /// It never reaches the broker, and the sender knows: there is no connection.
    Unsent,
    /// The broker refuses it for good.
    Refuse(String),
}

/// What happens to one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFault {
    /// Nothing: it goes through.
    None,
    /// There is no answer, for this reason.
    Fail(String),
    /// One who lags answers: nothing is there.
    FindNothing,
}

type Decide = Box<dyn Fn(u64, &Outgoing) -> Fault + Send + Sync>;
type DecideRead = Box<dyn Fn(u64, &str) -> ReadFault + Send + Sync>;
type DecideProbe = Box<dyn Fn(Destination) -> Result<(), String> + Send + Sync>;

/// Wraps a broker: decides a [`Fault`] for each publish, and counts acknowledgements.
pub struct FaultyBroker {
    inner: Arc<dyn Broker>,
    decide: Decide,
    probe: DecideProbe,
    read: DecideRead,
    publishes: AtomicU64,
    reads: AtomicU64,
    acks: AtomicU64,
    duplicates: AtomicU64,
}

impl FaultyBroker {
    /// `decide` is told the number of the publish, from 0, and the message.
    pub fn new(
        inner: Arc<dyn Broker>,
        decide: impl Fn(u64, &Outgoing) -> Fault + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner,
            decide: Box::new(decide),
            probe: Box::new(|_| Ok(())),
            read: Box::new(|_, _| ReadFault::None),
            publishes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            acks: AtomicU64::new(0),
            duplicates: AtomicU64::new(0),
        }
    }

    /// Without faults: only counts.
    pub fn counting(inner: Arc<dyn Broker>) -> Self {
        Self::new(inner, |_, _| Fault::None)
    }

    /// Let probes fail as `probe` says; those it lets pass reach the broker.
    #[must_use]
    pub fn probe_fails(self, probe: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.probe_of_fails(move |_| probe())
    }

    /// The same, told which stream the probe is for.
    #[must_use]
    pub fn probe_of_fails(
        mut self,
        probe: impl Fn(Destination) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.probe = Box::new(probe);
        self
    }

    /// Decide a [`ReadFault`] for each read: `read` is told its number, from 0, and its filter.
    #[must_use]
    pub fn read_fails(mut self, read: impl Fn(u64, &str) -> ReadFault + Send + Sync + 'static) -> Self {
        self.read = Box::new(read);
        self
    }

    /// Reads that were asked for, those with a fault included.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// Messages that were to be published, repetitions included.
    pub fn publishes(&self) -> u64 {
        self.publishes.load(Ordering::SeqCst)
    }

    /// Acknowledgements that came from the broker, the lost ones included.
    pub fn acks(&self) -> u64 {
        self.acks.load(Ordering::SeqCst)
    }

    /// Those of them that were marked as duplicates.
    pub fn duplicates(&self) -> u64 {
        self.duplicates.load(Ordering::SeqCst)
    }

    async fn publish_page(&self, page: Vec<Outgoing>) -> Vec<Result<Ack, PublishError>> {
        let number = |_: &Outgoing| self.publishes.fetch_add(1, Ordering::SeqCst);
        let faults: Vec<Fault> = page.iter().map(|message| (self.decide)(number(message), message)).collect();
        let reaches = |fault: &Fault| matches!(fault, Fault::None | Fault::LoseAck);
        let through =
            page.into_iter().zip(&faults).filter(|(_, fault)| reaches(fault)).map(|(message, _)| message);
        let mut answers = self.inner.publish(through.collect()).await.into_iter();
        let unavailable = |what: &str| Err(PublishError::Unavailable(format!("injected fault: {what}")));
        faults
            .into_iter()
            .map(|fault| {
                let answer = if reaches(&fault) { answers.next() } else { None };
                if let Some(Ok(ack)) = &answer {
                    self.acks.fetch_add(1, Ordering::SeqCst);
                    self.duplicates.fetch_add(u64::from(ack.duplicate), Ordering::SeqCst);
                }
                match fault {
                    Fault::None => answer.unwrap_or_else(|| unavailable("no answer")),
                    Fault::LoseAck => unavailable("the acknowledgement is lost"),
                    Fault::Lose => unavailable("the message is lost"),
                    Fault::Unsent => Err(PublishError::NotSent("injected fault: no connection".to_owned())),
                    Fault::Refuse(reason) => Err(PublishError::Refused(reason)),
                }
            })
            .collect()
    }
}

impl Broker for FaultyBroker {
    fn publish(&self, page: Vec<Outgoing>) -> BoxFuture<'_, Vec<Result<Ack, PublishError>>> {
        Box::pin(self.publish_page(page))
    }

    fn probe(&self, destination: Destination) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            (self.probe)(destination)?;
            self.inner.probe(destination).await
        })
    }

    fn first(&self, filter: String) -> BoxFuture<'_, Result<Option<First>, PublishError>> {
        Box::pin(async move {
            match (self.read)(self.reads.fetch_add(1, Ordering::SeqCst), &filter) {
                ReadFault::None => self.inner.first(filter).await,
                ReadFault::Fail(reason) => {
                    Err(PublishError::Unavailable(format!("injected fault: {reason}")))
                }
                ReadFault::FindNothing => Ok(None),
            }
        })
    }
}

impl std::fmt::Debug for FaultyBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyBroker")
            .field("publishes", &self.publishes)
            .field("acks", &self.acks)
            .finish_non_exhaustive()
    }
}
