//! Tokens → declarations.
mod args;
mod attrs;
mod duration;
mod event;
mod group;
mod job;
mod options;
mod piece;
mod retry;
mod unfinished;

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Item, LitStr};

use crate::kind::Kind;
use crate::model::{Args, Contract, Declared, Module, Taken};
use crate::report::Report;
use piece::{Head, Piece};

/// `None` where there is no inline module to expand.
pub(crate) fn contract(args: TokenStream, item: TokenStream, report: &mut Report) -> Option<Contract> {
    let args = args::read(args, report);
    let Ok((module, pieces)) =
        (|input: ParseStream| inline_module(input, &args, report)).parse2(item.clone())
    else {
        not_an_inline_module(item, report);
        return None;
    };
    let mut contract = Contract {
        args,
        module,
        body: Vec::new(),
        items: Vec::new(),
        events: Vec::new(),
        jobs: Vec::new(),
        groups: Vec::new(),
        taken: Taken::default(),
    };
    for piece in pieces {
        declare(piece, &mut contract, report);
    }
    Some(contract)
}

fn inline_module(input: ParseStream, args: &Args, report: &mut Report) -> syn::Result<(Module, Vec<Piece>)> {
    let attrs = input.call(Attribute::parse_outer)?;
    let (vis, mod_token, ident) = (input.parse()?, input.parse()?, input.parse()?);
    let body;
    syn::braced!(body in input);
    let inner_attrs = body.call(Attribute::parse_inner)?;
    let pieces = piece::pieces(&body, &args.krate, report)?;
    Ok((Module { attrs, inner_attrs, vis, mod_token, ident }, pieces))
}

fn not_an_inline_module(item: TokenStream, report: &mut Report) {
    let file_module = matches!(syn::parse2(item.clone()), Ok(Item::Mod(module)) if module.content.is_none());
    let message = if file_module {
        "`#[trellis::contract]` must see the contract, and rustc does not show it the file of a module: \
         write `mod orders { … }` in the file itself, under the attribute"
    } else {
        "`#[trellis::contract]` belongs on an inline module: `pub mod orders { … }`"
    };
    report.error(item, message);
}

/// Read what our attribute says of an item, and keep the item.
fn declare(piece: Piece, contract: &mut Contract, report: &mut Report) {
    let Piece { helpers, tokens, head, item } = piece;
    let mut emitted = tokens;
    let mut helpers = helpers.into_iter();
    if let (Some((kind, attr)), Some(head)) = (helpers.next(), head) {
        for (other, second) in helpers {
            report.error(second, one_declaration(&head, kind, other));
        }
        match kind {
            Kind::Event => {
                if let Some(mut event) = event::read(&attr, &head, report) {
                    emitted = unfinished::payload(emitted, &item, &mut event.payload, report);
                    contract.events.push(event);
                }
            }
            Kind::Job => {
                if let Some(mut job) = job::read(&attr, &head, report) {
                    emitted = unfinished::payload(emitted, &item, &mut job.payload, report);
                    contract.jobs.push(job);
                }
            }
            Kind::Group => {
                if let Some((group, unit)) = group::read(&attr, &head, &item, report) {
                    contract.groups.push(group);
                    emitted = unit;
                }
            }
        }
    }
    contract.body.push(emitted);
    contract.items.extend(item);
}

/// What every declaration has.
fn declared(kind: Kind, name: Option<LitStr>, head: &Head, report: &mut Report) -> Option<Declared> {
    if !head.generics.params.is_empty() {
        let kind = kind.attribute();
        report.error(
            &head.generics,
            format!("`#[{kind}]` declares one thing, so its type takes no generic parameters"),
        );
        return None;
    }
    Some(Declared {
        ident: head.ident.clone(),
        vis: head.vis.clone(),
        name,
        facade_attrs: attrs::for_the_facade(&head.attrs),
        cfgs: attrs::cfgs(&head.attrs),
        in_facade: true,
    })
}

fn one_declaration(head: &Head, first: Kind, second: Kind) -> String {
    let (ident, first, second) = (&head.ident, first.attribute(), second.attribute());
    format!("`{ident}` is under `#[{first}]` already: `#[{second}]` needs a type of its own")
}
