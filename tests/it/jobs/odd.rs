//! Jobs whose payloads and results are unusual.
use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::Sqlite;
use trellis::{ActiveJob, JobError, Service, Work};
use trellis_runtime::{Ctx, Host};

use crate::support::Bed;
use crate::support::hand::quick;
use crate::support::nats::Nats;

#[trellis::contract(id = "test.odd@v1")]
pub mod odd {
    use super::{Deserialize, HashMap, JsonSchema, Serialize};

    /// Needs no words, and has none for its result.
    #[job("odd.bare")]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Bare;

    /// Writes so many letters.
    #[job("odd.write", result = Text)]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Write {
        pub letters: usize,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Text {
        #[schemars(length(min = 1))]
        pub text: String,
    }

    /// Has no order of its own.
    #[job("odd.tag", result = usize)]
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Tag {
        pub tags: HashMap<String, u64>,
    }
}

#[derive(Clone)]
pub struct Odd;

pub type OddCtx = Ctx<odd::Contract, Sqlite>;

impl Service for Odd {
    type Ctx = OddCtx;
}

impl Work<odd::Bare> for Odd {
    async fn work(&self, _: &OddCtx, _: ActiveJob<odd::Bare>) -> Result<(), JobError> {
        Ok(())
    }
}

impl Work<odd::Write> for Odd {
    async fn work(&self, _: &OddCtx, job: ActiveJob<odd::Write>) -> Result<odd::Text, JobError> {
        Ok(odd::Text { text: "a".repeat(job.payload.letters) })
    }
}

impl Work<odd::Tag> for Odd {
    async fn work(&self, _: &OddCtx, job: ActiveJob<odd::Tag>) -> Result<usize, JobError> {
        Ok(job.payload.tags.len())
    }
}

/// A host that works on all of them.
pub async fn host(bed: &Bed<Sqlite>, nats: &Nats) -> Host<odd::Contract, Sqlite> {
    let host =
        Host::builder(Odd, bed.outbox()).client(crate::support::nats::connect(nats.server.url()).await);
    let host = host.work_with::<odd::Bare>(quick()).work_with::<odd::Write>(quick());
    host.work_with::<odd::Tag>(quick()).start().await.unwrap()
}
