//! A job's updates as they are sent: live, and only those of the latest try.
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use async_nats::Subscriber;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use trellis::Job;

use crate::causes::chain;
use crate::jobs::event::EventType;
use crate::jobs::job_ref::wait::ends;
use crate::jobs::job_ref::{JobRef, JobRefError};

/// How often the log is read after an end was heard.
const READS_OF_AN_END: u32 = 5;
/// How long nothing may be heard before the log is read.
const READ_EVERY: Duration = Duration::from_secs(5);

/// How long the server may take to begin.
const ANSWER: Duration = Duration::from_secs(5);

/// One update.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Update<U> {
    /// The try that sent it: 1 for the first.
    pub attempt: u32,
    /// Its place among those of the try: 1 for the first. A gap is an update that was lost.
    pub sequence: u64,
    /// What was told.
    pub update: U,
}

/// The updates of one job, from the moment of asking until the job ends.
pub struct Updates<J> {
    reference: JobRef<J>,
    heard: Subscriber,
    entries: Subscriber,
    latest: (u32, u64),
    ended: bool,
    job: PhantomData<fn() -> J>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    v: u32,
    #[serde(borrow)]
    job_id: std::borrow::Cow<'a, str>,
    attempt: u32,
    sequence: u64,
    #[serde(borrow)]
    update: &'a RawValue,
}

impl<J: Job> JobRef<J> {
    /// Listen to the job's updates. They are not stored: what was sent before is not heard, and what
    /// is sent while there is no connection neither.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub async fn updates(&self) -> Result<Updates<J>, JobRefError> {
        let failed = |error: &(dyn std::error::Error + 'static)| self.unavailable(chain(error));
        let client = &self.log.client;
        let heard = client.subscribe(self.updates.clone()).await.map_err(|error| failed(&error))?;
        let entries = client.subscribe(format!("{}.*", self.tree)).await.map_err(|error| failed(&error))?;
        let flushed = tokio::time::timeout(ANSWER, client.flush()).await;
        let flushed = flushed.map_err(|_| self.unavailable("it does not answer".to_owned()))?;
        flushed.map_err(|error| failed(&error))?;
        let state = self.record().await?.map(|record| record.state);
        Ok(Updates {
            reference: self.clone(),
            heard,
            entries,
            latest: (0, 0),
            ended: state.is_some_and(crate::jobs::JobState::is_terminal),
            job: PhantomData,
        })
    }
}

impl<J: Job> Updates<J> {
    /// The next update; `None` when the job has ended and nothing more was under way.
    ///
    /// What cannot be read as this version's update, is older than one that came before, or belongs
    /// to an earlier try is left out.
    ///
    /// Cancel safety: nothing is lost.
    pub async fn next(&mut self) -> Option<Update<J::Update>> {
        loop {
            let message = if self.ended {
                // What is buffered was sent before the end.
                futures_util::FutureExt::now_or_never(self.heard.next())??
            } else {
                tokio::select! {
                    biased;
                    message = self.heard.next() => message?,
                    entry = self.entries.next() => {
                        self.hear(entry.as_ref().map(|entry| entry.subject.as_str())).await;
                        continue;
                    }
                    () = tokio::time::sleep(READ_EVERY) => {
                        self.hear(None).await;
                        continue;
                    }
                }
            };
            if let Some(update) = self.read(&message.payload) {
                return Some(update);
            }
        }
    }

    /// An entry of the job's log, or that none came for a while: its end may have been missed.
    async fn hear(&mut self, subject: Option<&str>) {
        let token = subject.and_then(|subject| subject.rsplit('.').next());
        if token.and_then(EventType::of_token) == Some(EventType::Progress) {
            return;
        }
        // An end is heard before it is stored.
        let reads = if token.is_some_and(ends) { READS_OF_AN_END } else { 1 };
        for read in 0..reads {
            tokio::time::sleep(Duration::from_millis(10) * read).await;
            let Ok(Some(record)) = self.reference.record().await else { continue };
            if record.tries > self.latest.0 {
                self.latest = (record.tries, 0);
            }
            self.ended = record.state.is_terminal();
            if self.ended {
                return;
            }
        }
    }

    fn read(&mut self, body: &[u8]) -> Option<Update<J::Update>> {
        let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
        let Envelope { v, job_id, attempt, sequence, update } = envelope;
        let fits = v == crate::jobs::event::VERSION && job_id == self.reference.id.as_str();
        if !fits || attempt == 0 || sequence == 0 || (attempt, sequence) <= self.latest {
            return None;
        }
        let (declared, schema) = (J::DECLARATION, trellis::schema::input::<J::Update>);
        let declared = (declared.contract, declared.name);
        self.reference.validators.check(declared, schema, update.get().as_bytes()).ok()?;
        let update = serde_json::from_str(update.get()).ok()?;
        self.latest = (attempt, sequence);
        Some(Update { attempt, sequence, update })
    }
}

impl<J: Job> fmt::Debug for Updates<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").field("job", &self.reference).finish_non_exhaustive()
    }
}
