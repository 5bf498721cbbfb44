//! Consumer groups: their names, and who is in them.
use quote::ToTokens;
use syn::Type;

use super::{names, paths};
use crate::model::Group;
use crate::report::Report;

pub(super) fn check(groups: &[Group], report: &mut Report) {
    for (index, group) in groups.iter().enumerate() {
        let before = groups.get(..index).unwrap_or_default();
        name(group, before, report);
        members(group, report);
    }
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

fn members(group: &Group, report: &mut Report) {
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
