//! The manifest: what a contract says, as data.
use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::event::{Event, EventDeclaration};
use crate::group::{Group, Replay};
use crate::job::{Job, JobDeclaration};

/// A contract module, as a type: the `Contract` that `#[trellis::contract]` puts into it.
pub trait Contract: Copy + Default + Send + Sync + 'static {
    /// Identity, e.g. `acme.orders@v1`.
    const ID: &'static str;
    /// The facade at `ctx.event`.
    type Events: Copy + Default + Send + Sync + 'static;
    /// The facade at `ctx.job`.
    type Jobs: Copy + Default + Send + Sync + 'static;
    /// The events it owns.
    fn events() -> Vec<EventDeclaration>;
    /// The jobs it owns.
    fn jobs() -> Vec<JobDeclaration>;
    /// Everything it says.
    fn manifest() -> Manifest;
}

/// What a contract says.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[non_exhaustive]
pub struct Manifest {
    /// Format of this document: `trellis.contract.v1`.
    pub format: &'static str,
    /// Identity.
    pub id: &'static str,
    /// Doc comment of the module.
    pub description: &'static str,
    /// Events it owns, by logical name.
    pub events: BTreeMap<&'static str, EventSpec>,
    /// Jobs it owns, by logical name.
    pub jobs: BTreeMap<&'static str, JobSpec>,
    /// Consumer groups it declares, by name.
    pub groups: BTreeMap<&'static str, GroupSpec>,
    /// Shared schema definitions.
    #[serde(rename = "$defs")]
    pub defs: serde_json::Map<String, Value>,
}

/// One event.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[non_exhaustive]
pub struct EventSpec {
    /// Doc comment of the marker type.
    pub description: &'static str,
    /// Payload fields that are subject tokens.
    pub params: Vec<&'static str>,
    /// Payload field that is the ordering key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_by: Option<&'static str>,
    /// JSON Schema of the payload; references point into the manifest's `$defs`.
    pub payload: Value,
}

/// One job.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[non_exhaustive]
pub struct JobSpec {
    /// Doc comment of the marker type.
    pub description: &'static str,
    /// Most tries of a run.
    pub tries: u32,
    /// The longest delay before the second try, in milliseconds.
    pub first_delay_ms: u64,
    /// The longest delay of all, in milliseconds.
    pub longest_delay_ms: u64,
    /// Whether only an explicit retry retries.
    pub explicit_retry: bool,
    /// How long after its submission the job must have ended, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// JSON Schema of the payload; references point into the manifest's `$defs`.
    pub payload: Value,
    /// JSON Schema of the result.
    pub result: Value,
    /// JSON Schema of the updates; `false` where there are none.
    pub update: Value,
}

/// One consumer group.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[non_exhaustive]
pub struct GroupSpec {
    /// Doc comment of the group type.
    pub description: &'static str,
    /// Where it begins.
    pub replay: Replay,
    /// What it consumes.
    pub members: Vec<MemberSpec>,
}

/// One event that a consumer group consumes.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[non_exhaustive]
pub struct MemberSpec {
    /// Contract that owns the event.
    pub contract: &'static str,
    /// Logical name of the event.
    pub event: &'static str,
}

/// Collects a manifest. Generated code calls it once per declaration.
#[derive(Debug)]
pub struct ManifestBuilder {
    schemas: SchemaGenerator,
    manifest: Manifest,
}

impl ManifestBuilder {
    /// Start.
    pub fn new(id: &'static str, description: &'static str) -> Self {
        Self {
            schemas: SchemaSettings::draft2020_12()
                .for_serialize()
                .with(|settings| settings.definitions_path = "/$defs".into())
                .into_generator(),
            manifest: Manifest {
                format: "trellis.contract.v1",
                id,
                description,
                events: BTreeMap::new(),
                jobs: BTreeMap::new(),
                groups: BTreeMap::new(),
                defs: serde_json::Map::new(),
            },
        }
    }

    /// Add an event.
    pub fn event<E: Event>(&mut self, description: &'static str) {
        let payload = self.schemas.subschema_for::<E::Payload>().into();
        let EventDeclaration { params, order_by, .. } = E::DECLARATION;
        let spec = EventSpec { description, params: params.to_vec(), order_by, payload };
        self.manifest.events.insert(E::DECLARATION.name, spec);
    }

    /// Add a job.
    pub fn job<J: Job>(&mut self, description: &'static str) {
        let JobDeclaration { name, retry, deadline, .. } = J::DECLARATION;
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let spec = JobSpec {
            description,
            tries: retry.tries,
            first_delay_ms: ms(retry.first),
            longest_delay_ms: ms(retry.longest),
            explicit_retry: retry.explicit,
            deadline_ms: deadline.map(ms),
            payload: self.schemas.subschema_for::<J::Payload>().into(),
            result: self.schemas.subschema_for::<J::Result>().into(),
            update: self.schemas.subschema_for::<J::Update>().into(),
        };
        self.manifest.jobs.insert(name, spec);
    }

    /// Add a consumer group.
    pub fn group<G: Group>(&mut self, description: &'static str) {
        let members = G::MEMBERS
            .iter()
            .map(|event| MemberSpec { contract: event.contract, event: event.name })
            .collect();
        let spec = GroupSpec { description, replay: G::DECLARATION.replay, members };
        self.manifest.groups.insert(G::DECLARATION.name, spec);
    }

    /// Finish.
    pub fn build(mut self) -> Manifest {
        self.manifest.defs = self.schemas.take_definitions(true);
        self.manifest
    }
}
