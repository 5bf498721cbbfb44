//! The manifest: what a contract says, as data.
use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::event::{Event, EventDeclaration};
use crate::group::{Group, Replay};

/// A contract module, as a type: the `Contract` that `#[trellis::contract]` puts into it.
pub trait Contract: Copy + Default + Send + Sync + 'static {
    /// Identity, e.g. `acme.orders@v1`.
    const ID: &'static str;
    /// The facade at `ctx.event`.
    type Events: Copy + Default + Send + Sync + 'static;
    /// The events it owns.
    fn events() -> Vec<EventDeclaration>;
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
