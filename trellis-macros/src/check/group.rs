//! Consumer groups: their names, and who is in them.
use quote::ToTokens;
use syn::{Item, ItemEnum, ItemStruct, Type, TypePath};

use super::scope::{self, Named};
use super::{names, paths};
use crate::model::{Contract, Group};
use crate::report::Report;

pub(super) fn check(contract: &mut Contract, report: &mut Report) {
    let events: Vec<String> = contract.events.iter().map(|event| event.declared.ident.to_string()).collect();
    let jobs: Vec<String> = contract.jobs.iter().map(|job| job.declared.ident.to_string()).collect();
    for index in 0..contract.groups.len() {
        let (before, rest) = contract.groups.split_at_mut(index);
        let Some(group) = rest.first_mut() else { return };
        name(group, before, report);
        named_twice(group, report);
        group.members.retain(|member| is_event(member, &contract.items, &events, &jobs, report));
    }
}

/// What is not in sight, rustc decides.
fn is_event(member: &Type, items: &[Item], events: &[String], jobs: &[String], report: &mut Report) -> bool {
    let Type::Path(TypePath { qself: None, path, .. }) = member else { return true };
    let Named::Item(
        Item::Struct(ItemStruct { ident, generics, .. }) | Item::Enum(ItemEnum { ident, generics, .. }),
    ) = scope::resolve(path, items)
    else {
        return true;
    };
    // A generic one may be an event whose parameters were refused.
    if !generics.params.is_empty() || events.contains(&ident.to_string()) {
        return true;
    }
    let message = if jobs.contains(&ident.to_string()) {
        format!("`{ident}` is a job, and a group consumes events: work on it with `impl Work<{ident}> for …`")
    } else {
        format!("`{ident}` is no event: declare it, `#[event(\"…\")]`, or name the event that carries it")
    };
    report.error(member, message);
    false
}

fn name(group: &Group, before: &[Group], report: &mut Report) {
    let Some(literal) = &group.declared.name else { return };
    if let Err(message) = names::group(&literal.value()) {
        return report.error(literal, message);
    }
    let same = |other: &&Group| {
        other.declared.name.as_ref().is_some_and(|name| name.value() == literal.value())
            && !paths::either_or(&group.declared, &other.declared)
    };
    if let Some(other) = before.iter().find(same) {
        let (name, other) = (literal.value(), &other.declared.ident);
        report.error(
            literal,
            format!("`{name}` is the name of `{other}` already: each group needs a name of its own"),
        );
    }
}

fn named_twice(group: &Group, report: &mut Report) {
    let mut seen: Vec<String> = Vec::new();
    for member in &group.members {
        let text = spelled(member);
        if seen.contains(&text) {
            report.error(member, format!("`{text}` is in this group already: name each event once"));
        }
        seen.push(text);
    }
}

/// `self::OrderCreated` is `OrderCreated`.
fn spelled(member: &Type) -> String {
    let text: String = member.to_token_stream().to_string().split_whitespace().collect();
    text.strip_prefix("self::").map_or_else(|| text.clone(), str::to_owned)
}
