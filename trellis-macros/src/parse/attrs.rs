//! Attributes on items: ours are taken away, `#[cfg]` and docs are read.
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Path, Token};

use crate::kind::Kind;
use crate::report::Report;

/// Our attributes on one item, and the item's other tokens.
pub(super) struct Split {
    pub(super) helpers: Vec<(Kind, Attribute)>,
    pub(super) rest: TokenStream,
}

pub(super) fn split(tokens: TokenStream, krate: &Path, report: &mut Report) -> Split {
    let mut split = Split { helpers: Vec::new(), rest: TokenStream::new() };
    let mut tokens = tokens.into_iter().peekable();
    while let Some(tree) = tokens.next() {
        match (tree, tokens.peek()) {
            (TokenTree::Punct(hash), Some(TokenTree::Group(group))) if hash.as_char() == '#' => {
                let attr: TokenStream =
                    [TokenTree::Punct(hash), TokenTree::Group(group.clone())].into_iter().collect();
                tokens.next();
                match parse_outer(attr.clone()) {
                    Some(attr) => split.attribute(attr, krate, report),
                    None => split.rest.extend(attr),
                }
            }
            // What a `macro_rules!` fragment stood for.
            (TokenTree::Group(group), _) if group.delimiter() == Delimiter::None => {
                let inner = self::split(group.stream(), krate, report);
                split.helpers.extend(inner.helpers);
                split.rest.extend([TokenTree::Group(Group::new(Delimiter::None, inner.rest))]);
            }
            (tree, _) => split.rest.extend([tree]),
        }
    }
    split
}

impl Split {
    fn attribute(&mut self, attr: Attribute, krate: &Path, report: &mut Report) {
        if let Some(kind) = Kind::of(attr.path(), krate) {
            self.helpers.push((kind, attr));
            return;
        }
        match conditional(&attr) {
            Some((condition, metas)) => {
                let (ours, others): (Vec<_>, Vec<_>) =
                    metas.into_iter().partition(|meta| Kind::of(meta.path(), krate).is_some());
                for meta in &ours {
                    report.error(
                        meta,
                        "a declaration cannot stand in `#[cfg_attr]`: put `#[cfg(..)]` beside it, on the item",
                    );
                }
                if ours.is_empty() {
                    self.rest.extend(quote!(#attr));
                } else {
                    self.rest.extend(quote!(#[cfg_attr(#condition, #(#others),*)]));
                }
            }
            None => self.rest.extend(quote!(#attr)),
        }
    }
}

/// Report and take away our attributes inside of nested modules, where no contract sees them.
pub(super) fn without_nested(tokens: TokenStream, krate: &Path, report: &mut Report) -> TokenStream {
    let mut previous_is_mod = [false, false];
    let map = |tree: TokenTree| {
        let [second, first] = previous_is_mod;
        previous_is_mod = [first, matches!(&tree, TokenTree::Ident(word) if word == "mod")];
        match tree {
            TokenTree::Group(group) if second && group.delimiter() == Delimiter::Brace => {
                let Split { helpers, rest } = split(group.stream(), krate, report);
                for (kind, attr) in helpers {
                    let kind = kind.attribute();
                    let message = "belongs directly in the contract module; what it carries can be elsewhere, `payload = path::to::Type`";
                    report.error(attr, format!("`#[{kind}]` {message}"));
                }
                let mut inner = Group::new(Delimiter::Brace, without_nested(rest, krate, report));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            tree => tree,
        }
    };
    tokens.into_iter().map(map).collect()
}

fn parse_outer(tokens: TokenStream) -> Option<Attribute> {
    Attribute::parse_outer.parse2(tokens).ok()?.pop()
}

/// Condition and attributes of a `#[cfg_attr(..)]`.
fn conditional(attr: &Attribute) -> Option<(Meta, Punctuated<Meta, Token![,]>)> {
    if !attr.path().is_ident("cfg_attr") {
        return None;
    }
    let parser = |input: ParseStream| {
        let condition = input.parse()?;
        input.parse::<Token![,]>()?;
        Ok((condition, Punctuated::parse_terminated(input)?))
    };
    attr.parse_args_with(parser).ok()
}

/// The attributes that decide whether an item is there.
pub(super) fn cfgs(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs.iter().filter_map(cfg).collect()
}

fn cfg(attr: &Attribute) -> Option<Attribute> {
    if attr.path().is_ident("cfg") {
        return Some(attr.clone());
    }
    let (condition, metas) = conditional(attr)?;
    let cfgs: Vec<Meta> = metas.into_iter().filter(|meta| meta.path().is_ident("cfg")).collect();
    (!cfgs.is_empty()).then(|| syn::parse_quote!(#[cfg_attr(#condition, #(#cfgs),*)]))
}

/// The attributes that a facade field has in common with the type: its docs, and its end of life.
pub(super) fn for_the_facade(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident("doc") || attr.path().is_ident("deprecated"))
        .cloned()
        .collect()
}
