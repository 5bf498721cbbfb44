//! Read a few named top-level fields off an encoded payload, in one pass and without a tree.
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// A field that a declaration names cannot be read.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldError {
    /// No such field, or null.
    #[error("field `{0}` is missing or null: it must hold a string or an integer")]
    Missing(String),
    /// Neither a string nor an integer.
    #[error("field `{field}` holds {found}: it must hold a string or an integer")]
    NotScalar {
        /// Wire name.
        field: String,
        /// What it holds.
        found: &'static str,
    },
    /// The payload is no JSON object.
    #[error("the payload is no JSON object, so it has no field `{0}`")]
    NoObject(String),
}

/// The values of `wanted`, in that order. A name may be wanted twice.
pub(crate) fn read(body: &[u8], wanted: &[&str]) -> Result<Vec<String>, FieldError> {
    let Some(first) = wanted.first() else { return Ok(Vec::new()) };
    let mut found: Vec<Scalar> = vec![Scalar::Missing; wanted.len()];
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = json.deserialize_map(Fields { wanted, found: &mut found });
    read.map_err(|_| FieldError::NoObject((*first).to_owned()))?;
    wanted
        .iter()
        .zip(found)
        .map(|(field, scalar)| match scalar {
            Scalar::Text(text) => Ok(text),
            Scalar::Missing => Err(FieldError::Missing((*field).to_owned())),
            Scalar::Other(found) => Err(FieldError::NotScalar { field: (*field).to_owned(), found }),
        })
        .collect()
}

#[derive(Clone)]
enum Scalar {
    Missing,
    Text(String),
    Other(&'static str),
}

struct Fields<'a> {
    wanted: &'a [&'a str],
    found: &'a mut [Scalar],
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if !self.wanted.contains(&name.as_ref()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: Scalar = map.next_value()?;
            for (wanted, slot) in self.wanted.iter().zip(self.found.iter_mut()) {
                if *wanted == name {
                    *slot = value.clone();
                }
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Text(number.to_string()))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Text(number.to_string()))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Scalar, E> {
        Ok(Scalar::Other("a fraction"))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other("a boolean"))
    }
    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Missing)
    }
    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("an array"))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldError, read};

    #[test]
    fn strings_and_integers_are_read_in_the_wanted_order() {
        let body = br#"{"b":"x","n":{"a":1},"a":-7,"c":18446744073709551615}"#;
        assert_eq!(read(body, &["a", "b", "c", "a"]).unwrap(), ["-7", "x", "18446744073709551615", "-7"]);
    }

    #[test]
    fn everything_else_is_named() {
        let body = br#"{"t":true,"f":1.5,"z":null,"l":[1,[2]],"o":{"a":[1]}}"#;
        let not_scalar = |field: &str, found| FieldError::NotScalar { field: field.into(), found };
        assert_eq!(read(body, &["t"]).unwrap_err(), not_scalar("t", "a boolean"));
        assert_eq!(read(body, &["f"]).unwrap_err(), not_scalar("f", "a fraction"));
        assert_eq!(read(body, &["l"]).unwrap_err(), not_scalar("l", "an array"));
        assert_eq!(read(body, &["o"]).unwrap_err(), not_scalar("o", "an object"));
        assert_eq!(read(body, &["z"]).unwrap_err(), FieldError::Missing("z".into()));
        assert_eq!(read(body, &["q"]).unwrap_err(), FieldError::Missing("q".into()));
        assert_eq!(read(b"[1]", &["q"]).unwrap_err(), FieldError::NoObject("q".into()));
    }

    #[test]
    fn nothing_wanted_reads_nothing() {
        assert!(read(b"not even json", &[]).unwrap().is_empty());
    }

    #[test]
    fn escaped_names_and_values_are_understood() {
        assert_eq!(read(br#"{"\u0061":"\u00e9"}"#, &["a"]).unwrap(), ["é"]);
    }
}
