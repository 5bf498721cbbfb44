//! Logical names beside each other.
//!
//! Two names of which neither is the beginning of the other differ in a word that both spell out,
//! so their subjects cannot overlap, whatever parameters follow. That leaves the two cases below.
use quote::ToTokens;

use super::names;
use crate::kind::Facade;
use crate::model::Declared;
use crate::report::Report;

/// Take out of the facade what cannot be a path in it.
pub(super) fn check(facade: &Facade, declarations: Vec<&mut Declared>, report: &mut Report) {
    let mut before: Vec<&Declared> = Vec::new();
    for declared in declarations {
        let fits = declared.name.as_ref().map(|name| fits(&name.value(), facade, declared, &before));
        if let (Some(Err(message)), Some(name)) = (&fits, &declared.name) {
            report.error(name, message);
        }
        declared.in_facade = matches!(fits, Some(Ok(())));
        if declared.in_facade {
            before.push(declared);
        }
    }
}

fn fits(name: &str, facade: &Facade, declared: &Declared, before: &[&Declared]) -> Result<(), String> {
    names::logical(name, facade)?;
    before.iter().find_map(|other| conflict(name, facade, declared, other)).map_or(Ok(()), Err)
}

fn conflict(name: &str, facade: &Facade, declared: &Declared, other: &Declared) -> Option<String> {
    let Facade { noun, with_article, plural, last_word, .. } = facade;
    let (other_name, other_ident) = (other.name.as_ref()?.value(), &other.ident);
    if name == other_name {
        let same =
            format!("`{name}` is the name of `{other_ident}` already: each {noun} needs a name of its own");
        return (!either_or(declared, other)).then_some(same);
    }
    let longer_than =
        |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    if longer_than(&other_name, name) {
        return Some(format!(
            "`ctx.{noun}.{name}` is a group of {plural}, because `{other_ident}` is `{other_name}`: \
             {with_article} beside it needs another word, as in `{name}.{last_word}`"
        ));
    }
    longer_than(name, &other_name).then(|| {
        format!(
            "`ctx.{noun}.{other_name}` is the {noun} `{other_ident}`, so no other {noun} can be inside it: \
             rename one of the two, say `{other_name}` to `{other_name}.{last_word}`"
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
