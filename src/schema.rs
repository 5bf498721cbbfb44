//! JSON Schemas of payloads, one per direction.
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The schema of what `Serialize` writes.
pub fn output<P: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<P>()
}

/// The schema of what `Deserialize` reads.
pub fn input<P: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<P>()
}
