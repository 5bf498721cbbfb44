//! `#[group("stock", replay = "all")]`
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Field, Fields, Item, LitStr, Type};

use super::piece::Head;
use super::{declared, options};
use crate::kind::Kind;
use crate::model::Group;
use crate::report::Report;

/// The group, and the type that stands in for the caller's struct.
pub(super) fn read(
    attr: &Attribute,
    head: &Head,
    item: &syn::Result<Item>,
    report: &mut Report,
) -> Option<(Group, TokenStream)> {
    let mut replay_all = None;
    let name = options::read(Kind::Group, attr, report, |input| {
        let key = options::key(input, "replay")?;
        if key != "replay" {
            return Err(options::unknown(&key, "replay"));
        }
        options::value(input, &key, "`replay = \"all\"`")?;
        if !input.peek(LitStr) {
            return Err(input.error(REPLAY));
        }
        let value: LitStr = input.parse()?;
        match value.value().as_str() {
            "new" => options::once(&mut replay_all, &key, false),
            "all" => options::once(&mut replay_all, &key, true),
            _ => Err(syn::Error::new(value.span(), REPLAY)),
        }
    });
    let declared = declared(Kind::Group, name, head, report)?;
    let members = members(item, attr, head, report);
    let emitted = match item {
        Ok(Item::Enum(item)) => quote!(#item),
        _ => unit(head),
    };
    Some((Group { declared, replay_all: replay_all.unwrap_or(false), members }, emitted))
}

const REPLAY: &str = "`replay` is \"new\" (events published after the first start, the default) or \"all\"";

fn members(item: &syn::Result<Item>, attr: &Attribute, head: &Head, report: &mut Report) -> Vec<Type> {
    let ident = &head.ident;
    match item {
        Ok(Item::Struct(item)) => match &item.fields {
            Fields::Unnamed(fields) if !fields.unnamed.is_empty() => {
                return fields.unnamed.iter().map(|field| member(field, report)).collect();
            }
            Fields::Named(fields) if !fields.named.is_empty() => {
                let types =
                    fields.named.iter().map(|field| spelled(&field.ty)).collect::<Vec<_>>().join(", ");
                let message =
                    format!("a group is a list of events, without field names: `struct {ident}({types});`");
                report.error(fields, message);
            }
            _ => report.error(
                ident,
                format!("a group without events consumes nothing: `struct {ident}(orders::OrderCreated);`"),
            ),
        },
        Ok(_) => report.error(attr, Kind::Group.wrong_item()),
        // rustc does not see the fields, so it would not miss the ones that are lost here.
        Err(error) => report.push(error.clone()),
    }
    Vec::new()
}

fn member(field: &Field, report: &mut Report) -> Type {
    for attr in field.attrs.iter().filter(|attr| !attr.path().is_ident("doc")) {
        let message = if attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr") {
            "put `#[cfg]` on the group, not on a member: declare the group once with this event and once without"
        } else {
            "the members of a group take no attributes"
        };
        report.error(attr, message);
    }
    field.ty.clone()
}

fn spelled(ty: &Type) -> String {
    ty.to_token_stream().to_string().split_whitespace().collect()
}

/// A member list is no data: nobody builds a `Stock`, so it loses its fields.
fn unit(head: &Head) -> TokenStream {
    let Head { attrs, vis, ident, .. } = head;
    quote! { #(#attrs)* #vis struct #ident; }
}
