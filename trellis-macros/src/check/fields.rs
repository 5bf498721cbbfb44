//! `params` and `order_by` against the fields of the payload.
use std::collections::BTreeSet;

use quote::ToTokens;
use syn::{Item, Type};

use super::serde::Presence;
use super::shape::{self, Field, Object, Shape};
use crate::model::{Event, FieldName};
use crate::report::Report;

pub(super) fn check(event: &Event, items: &[Item], report: &mut Report) {
    named_twice(&event.params, report);
    let params = event.params.iter().map(|name| (name, "a parameter of the subject"));
    let named: Vec<(&FieldName, &str)> =
        params.chain(event.order_by.iter().map(|name| (name, "an ordering key"))).collect();
    let Some((first, _)) = named.first() else { return };
    let payload = event.payload.of(&event.declared);
    let refusal = match shape::of_type(&payload, items) {
        Shape::Object(object) => {
            if let Some(span) = object.flatten {
                let message = "`#[serde(flatten)]` hides which fields there are, so `params` and `order_by` cannot be \
                               checked: write the fields out, or do without `params` and `order_by`";
                return report.error_at(span, message);
            }
            for (name, role) in named {
                if let Some(message) = fault(name, role, &object, &spelled(&payload), items) {
                    report.error_at(name.span, message);
                }
            }
            return;
        }
        Shape::Unknown => return,
        Shape::Enum => {
            "an enum has no fields that all of its values share: `params` and `order_by` need a struct"
                .to_owned()
        }
        Shape::Other("null") if event.payload.ty.is_none() => {
            format!(
                "`{}` has no fields: give it some, or say what travels, `payload = path::to::Type`",
                event.declared.ident
            )
        }
        Shape::Scalar => no_object(&payload, "a string or an integer"),
        Shape::Nullable => no_object(&payload, "an object or null"),
        Shape::Other(what) => no_object(&payload, what),
    };
    report.error_at(first.span, refusal);
}

fn no_object(payload: &Type, what: &str) -> String {
    format!(
        "`{}` travels as {what}, which has no fields: `params` and `order_by` need an object",
        spelled(payload)
    )
}

fn named_twice(params: &[FieldName], report: &mut Report) {
    let mut seen = BTreeSet::new();
    for name in params {
        if !seen.insert(&name.wire) {
            report
                .error_at(name.span, format!("`{}` is a parameter already: name each field once", name.wire));
        }
    }
}

/// What is wrong with naming this field, if anything.
fn fault(name: &FieldName, role: &str, object: &Object, payload: &str, items: &[Item]) -> Option<String> {
    let wire = &name.wire;
    let Some(field) =
        object.fields.iter().find(|field| field.presence != Presence::Never && field.wire == *wire)
    else {
        return Some(unknown(wire, object, payload));
    };
    if let Some(why) = field.may_be_missing {
        return Some(format!("`{wire}` may be missing, because {why}: {role} is always there"));
    }
    let holds = match shape::of_type(field.ty?, items) {
        Shape::Nullable => {
            return Some(format!(
                "`{wire}` may be null, because it is an `Option`: {role} always has a value"
            ));
        }
        Shape::Object(_) => "an object",
        Shape::Other(what) => what,
        Shape::Scalar | Shape::Enum | Shape::Unknown => return None,
    };
    Some(format!("`{wire}` holds {holds}: {role} is a string or an integer"))
}

fn unknown(wire: &str, object: &Object, payload: &str) -> String {
    if let Some(field) = object.fields.iter().find(|field| field.rust == wire) {
        return if field.presence == Presence::Never {
            format!("`{wire}` does not travel, because serde skips it: name a field that does")
        } else {
            format!("`{wire}` travels as `{0}`: fields are named as on the wire, `{0}`", field.wire)
        };
    }
    let there: Vec<&Field> = object.fields.iter().filter(|field| field.presence != Presence::Never).collect();
    let list = there.iter().map(|field| format!("`{}`", field.wire)).collect::<Vec<_>>().join(", ");
    match (nearest(wire, &there), there.is_empty()) {
        (_, true) => format!("`{payload}` has no field `{wire}`; it has none at all"),
        (Some(near), _) => {
            format!("`{payload}` has no field `{wire}`; did you mean `{near}`? There are: {list}")
        }
        (None, _) => format!("`{payload}` has no field `{wire}`; there are: {list}"),
    }
}

/// The field whose name, on the wire or in Rust, differs least, if by no more than a slip.
fn nearest<'a>(name: &str, there: &[&'a Field]) -> Option<&'a str> {
    let distances = there
        .iter()
        .map(|field| (distance(name, &field.wire).min(distance(name, &field.rust)), field.wire.as_str()));
    distances.filter(|(distance, _)| *distance <= 1 + name.len() / 4).min().map(|(_, wire)| wire)
}

/// How many characters to insert, remove or replace (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, c) in one.chars().enumerate() {
        let mut left = index + 1;
        let mut next = vec![left];
        for ((replaced, above), o) in row.iter().zip(row.iter().skip(1)).zip(&other) {
            left = (replaced + usize::from(c != *o)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

fn spelled(payload: &Type) -> String {
    payload.to_token_stream().to_string().split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_count_the_edits() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("order_id", "oder_id"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
