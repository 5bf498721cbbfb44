//! A payload that is still being typed.
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Path, Token};

use crate::model::{Derive, Payload};
use crate::report::Report;

/// The tokens of a declaration's type, without derives if it does not parse.
pub(super) fn payload(
    tokens: TokenStream,
    item: &syn::Result<Item>,
    payload: &mut Payload,
    report: &mut Report,
) -> TokenStream {
    let Err(error) = item else { return tokens };
    let tokens = without_derives(tokens.clone(), &mut payload.unfinished).unwrap_or(tokens);
    // Nothing is changed silently, should rustc accept what did not parse here.
    if !payload.unfinished.is_empty() {
        report.push(error.clone());
    }
    tokens
}

/// Take away the derives that a payload needs, with their attributes: on half an item they would
/// only repeat what rustc says of it, and leave it without the traits. `None` where there are none.
fn without_derives(tokens: TokenStream, taken: &mut Vec<(Derive, Path)>) -> Option<TokenStream> {
    let mut kept = TokenStream::new();
    let mut changed = false;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(tree) = tokens.next() {
        let (original, stripped) = match (tree, tokens.peek()) {
            (TokenTree::Punct(hash), Some(TokenTree::Group(group))) if hash.as_char() == '#' => {
                let attr: TokenStream =
                    [TokenTree::Punct(hash), TokenTree::Group(group.clone())].into_iter().collect();
                tokens.next();
                (attr.clone(), attribute(attr, taken))
            }
            (TokenTree::Group(group), _) => {
                let stripped = without_derives(group.stream(), taken).map(|kept| {
                    let mut stripped = Group::new(group.delimiter(), kept);
                    stripped.set_span(group.span());
                    TokenTree::Group(stripped).into()
                });
                // A group that is made anew loses the place of its end, where rustc may miss something.
                (TokenTree::Group(group).into(), stripped)
            }
            (tree, _) => (tree.into(), None),
        };
        changed |= stripped.is_some();
        kept.extend(stripped.unwrap_or(original));
    }
    changed.then_some(kept)
}

/// What is left of an attribute, if not all of it.
fn attribute(tokens: TokenStream, taken: &mut Vec<(Derive, Path)>) -> Option<TokenStream> {
    let attr = Attribute::parse_outer.parse2(tokens).ok()?.pop()?;
    if attr.path().is_ident("serde") || attr.path().is_ident("schemars") {
        return Some(TokenStream::new());
    }
    if !attr.path().is_ident("derive") {
        return None;
    }
    let paths = attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated).ok()?;
    let others = paths.into_iter().filter(|path| match Derive::of(path) {
        Some(derive) => {
            taken.push((derive, path.clone()));
            false
        }
        None => true,
    });
    let others: Vec<Path> = others.collect();
    Some(quote!(#[derive(#(#others),*)]))
}
