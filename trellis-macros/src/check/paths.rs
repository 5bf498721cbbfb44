//! Logical names beside each other.
//!
//! Two names of which neither is the beginning of the other differ in a word that both spell out,
//! so their subjects cannot overlap, whatever parameters follow. That leaves the two cases below.
use quote::ToTokens;

use super::names;
use crate::model::{Declared, Event};
use crate::report::Report;

/// Take out of the facade what cannot be a path in it.
pub(super) fn check(events: &mut [Event], report: &mut Report) {
    for index in 0..events.len() {
        let (before, rest) = events.split_at_mut(index);
        let Some(event) = rest.first_mut() else { return };
        let Some(name) = &event.declared.name else {
            event.in_facade = false;
            continue;
        };
        if let Err(message) = fits(&name.value(), &event.declared, before) {
            report.error(name, message);
            event.in_facade = false;
        }
    }
}

fn fits(name: &str, declared: &Declared, before: &[Event]) -> Result<(), String> {
    names::logical(name)?;
    let mut others = before.iter().filter(|other| other.in_facade);
    others.find_map(|other| conflict(name, declared, &other.declared)).map_or(Ok(()), Err)
}

fn conflict(name: &str, declared: &Declared, other: &Declared) -> Option<String> {
    let (other_name, other_ident) = (other.name.as_ref()?.value(), &other.ident);
    if name == other_name {
        let same =
            format!("`{name}` is the name of `{other_ident}` already: each event needs a name of its own");
        return (!either_or(declared, other)).then_some(same);
    }
    let longer_than =
        |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    if longer_than(&other_name, name) {
        return Some(format!(
            "`ctx.event.{name}` is a group of events, because `{other_ident}` is `{other_name}`: \
             an event beside it needs another word, as in `{name}.changed`"
        ));
    }
    longer_than(name, &other_name).then(|| {
        format!(
            "`ctx.event.{other_name}` is the event `{other_ident}`, so no other event can be inside it: \
             rename one of the two, say `{other_name}` to `{other_name}.changed`"
        )
    })
}

/// Whether two declarations are meant to be compiled at different times. That they never are
/// together, only rustc can tell: it reports a field that is declared twice.
pub(super) fn either_or(one: &Declared, other: &Declared) -> bool {
    let text = |declared: &Declared| {
        declared.cfgs.iter().map(|cfg| cfg.to_token_stream().to_string()).collect::<Vec<_>>()
    };
    let (one, other) = (text(one), text(other));
    !one.is_empty() && !other.is_empty() && one != other
}
