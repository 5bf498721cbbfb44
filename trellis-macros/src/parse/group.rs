//! `#[group("stock", replay = "all")]`
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Fields, Ident, Item, LitStr, Token, Type};

use super::piece::Head;
use super::{declared, options};
use crate::kind::Kind;
use crate::model::Group;
use crate::report::Report;

/// The group, and the type that stands in for the caller's struct.
pub(super) fn read(
    attr: &Attribute,
    head: &Head,
    item: Option<&Item>,
    report: &mut Report,
) -> Option<(Group, TokenStream)> {
    let mut replay_all = None;
    let name = options::read(Kind::Group, attr, report, |input| {
        let key = input.call(Ident::parse_any)?;
        if key != "replay" {
            return Err(syn::Error::new(
                key.span(),
                format!("unknown option `{key}`; the options are: replay"),
            ));
        }
        input.parse::<Token![=]>()?;
        let value: LitStr = input.parse()?;
        match value.value().as_str() {
            "new" => options::once(&mut replay_all, &key, false),
            "all" => options::once(&mut replay_all, &key, true),
            _ => Err(syn::Error::new(value.span(), "`replay` is \"new\" (the default) or \"all\"")),
        }
    });
    let declared = declared(Kind::Group, name, head, report)?;
    let group = Group { declared, replay_all: replay_all.unwrap_or(false), members: members(item) };
    Some((group, unit(head)))
}

fn members(item: Option<&Item>) -> Vec<Type> {
    match item {
        Some(Item::Struct(item)) => match &item.fields {
            Fields::Unnamed(fields) => fields.unnamed.iter().map(|field| field.ty.clone()).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// A member list is no data: nobody builds a `Stock`, so it loses its fields.
fn unit(head: &Head) -> TokenStream {
    let Head { attrs, vis, ident, .. } = head;
    quote! { #(#attrs)* #vis struct #ident; }
}
