//! A payload that is still being typed.
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
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
    let tokens = without_derives(tokens, &mut payload.unfinished);
    // Nothing is changed silently, should rustc accept what did not parse here.
    if !payload.unfinished.is_empty() {
        report.push(error.clone());
    }
    tokens
}

/// Take away the derives that a payload needs, with their attributes: on half an item they would
/// only repeat what rustc says of it, and leave it without the traits.
fn without_derives(tokens: TokenStream, taken: &mut Vec<(Derive, Path)>) -> TokenStream {
    let mut kept = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(tree) = tokens.next() {
        match (tree, tokens.peek()) {
            (TokenTree::Punct(hash), Some(TokenTree::Group(group))) if hash.as_char() == '#' => {
                let attr = [TokenTree::Punct(hash), TokenTree::Group(group.clone())].into_iter().collect();
                tokens.next();
                kept.extend(attribute(attr, taken));
            }
            (TokenTree::Group(group), _) => {
                let mut inner = Group::new(group.delimiter(), without_derives(group.stream(), taken));
                inner.set_span(group.span());
                kept.extend([TokenTree::Group(inner)]);
            }
            (tree, _) => kept.extend([tree]),
        }
    }
    kept
}

fn attribute(tokens: TokenStream, taken: &mut Vec<(Derive, Path)>) -> TokenStream {
    let Some(attr) = Attribute::parse_outer.parse2(tokens.clone()).ok().and_then(|mut attrs| attrs.pop())
    else {
        return tokens;
    };
    if attr.path().is_ident("serde") || attr.path().is_ident("schemars") {
        return TokenStream::new();
    }
    let derives = attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated);
    match derives {
        Ok(paths) if attr.path().is_ident("derive") => {
            let others = paths.into_iter().filter(|path| match Derive::of(path) {
                Some(derive) => {
                    taken.push((derive, path.clone()));
                    false
                }
                None => true,
            });
            let others: Vec<Path> = others.collect();
            quote!(#[derive(#(#others),*)])
        }
        _ => attr.into_token_stream(),
    }
}
