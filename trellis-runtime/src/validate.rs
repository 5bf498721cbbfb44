//! Schema constraints that serde cannot enforce, checked before anything is sent and after it is received.
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jsonschema::Validator;
use schemars::Schema;
use serde_json::Value;
type Key = (&'static str, &'static str, usize);

/// A payload that violates its schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("payload of `{name}` is invalid at `{path}`: {problem}")]
#[non_exhaustive]
pub struct Invalid {
    /// Logical name of the declaration.
    pub name: &'static str,
    /// JSON pointer to the fault.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

/// Compiled validators, one per declaration and direction that has constraints. Bounded by the number of
/// declarations.
#[derive(Clone, Default)]
pub(crate) struct Validators(Arc<RwLock<HashMap<Key, Option<Arc<Validator>>>>>);

impl std::fmt::Debug for Validators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validators").finish_non_exhaustive()
    }
}

impl Validators {
    /// # Errors
    /// The body violates its schema; the first fault with its place.
    pub(crate) fn check(
        &self,
        (contract, name): (&'static str, &'static str),
        schema: fn() -> Schema,
        body: &[u8],
    ) -> Result<(), Invalid> {
        let Some(validator) = self.of((contract, name, schema as usize), schema) else { return Ok(()) };
        let invalid = |path: String, problem: String| Invalid { name, path, problem };
        let body: Value =
            serde_json::from_slice(body).map_err(|error| invalid("/".to_owned(), error.to_string()))?;
        let Err(fault) = validator.validate(&body) else { return Ok(()) };
        let path = fault.instance_path().to_string();
        Err(invalid(if path.is_empty() { "/".to_owned() } else { path }, fault.to_string()))
    }

    // One map serves what is sent and what is received: the schemas may differ by direction.
    fn of(&self, key: Key, schema: fn() -> Schema) -> Option<Arc<Validator>> {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let validator = compile(&schema().to_value());
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, validator.clone());
        validator
    }
}

fn compile(schema: &Value) -> Option<Arc<Validator>> {
    if !has_constraints(schema) {
        return None;
    }
    match jsonschema::validator_for(schema) {
        Ok(validator) => Some(Arc::new(validator)),
        Err(error) => {
            tracing::error!(%error, "a payload's schema cannot be compiled, its constraints are not checked");
            None
        }
    }
}

/// Whether the schema says more than serde enforces by itself.
pub(crate) fn has_constraints(schema: &Value) -> bool {
    const CONSTRAINTS: [&str; 18] = [
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "patternProperties",
        "dependentRequired",
        "dependentSchemas",
        "not",
        "if",
    ];
    const BOUNDS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| match key.as_str() {
            // What stands below these is data, not schema.
            "const" | "enum" | "default" | "examples" | "required" | "description" | "title" => false,
            // Names of properties are no keywords.
            "properties" | "$defs" => {
                value.as_object().is_some_and(|named| named.values().any(has_constraints))
            }
            key if CONSTRAINTS.contains(&key) => true,
            key if BOUNDS.contains(&key) => !is_bound_of_type(map, key, value),
            _ => has_constraints(value),
        }),
        Value::Array(parts) => parts.iter().any(has_constraints),
        _ => false,
    }
}

/// Whether a bound only repeats what the Rust integer type says.
fn is_bound_of_type(schema: &serde_json::Map<String, Value>, key: &str, value: &Value) -> bool {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let bits: Option<u32> = format.trim_start_matches("uint").trim_start_matches("int").parse().ok();
    match (key, format.starts_with("uint")) {
        ("minimum", true) => value.as_u64() == Some(0),
        ("maximum", unsigned) => bits.filter(|bits| *bits < 64).is_some_and(|bits| {
            let signed_bits = if unsigned { bits } else { bits.saturating_sub(1) };
            value.as_u64() == Some((1 << signed_bits) - 1)
        }),
        ("minimum", false) => bits
            .filter(|bits| (1..=32).contains(bits))
            .is_some_and(|bits| value.as_i64() == Some(-(1 << (bits - 1)))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::has_constraints;
    use schemars::{JsonSchema, schema_for};
    use serde_json::json;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Plain {
        a: u8,
        b: i16,
        c: u64,
        d: Option<String>,
        e: Vec<Nested>,
        minimum: bool,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Nested {
        #[schemars(length(min = 1))]
        pattern: String,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Numbers {
        a: u8,
        b: i16,
        c: i64,
        d: usize,
        minimum: bool,
    }

    #[test]
    fn what_serde_enforces_is_no_constraint() {
        assert!(!has_constraints(schema_for!(Numbers).as_value()), "{:?}", schema_for!(Numbers));
    }

    #[test]
    fn a_constraint_is_found_at_any_depth() {
        assert!(has_constraints(schema_for!(Plain).as_value()));
        assert!(has_constraints(&json!({"type": "integer", "format": "uint8", "minimum": 1})));
        assert!(has_constraints(&json!({"anyOf": [{"type": "null"}, {"pattern": "^a"}]})));
        assert!(!has_constraints(&json!({"properties": {"pattern": {"type": "string"}}})));
    }
}
