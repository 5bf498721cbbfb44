//! The body of the module, item by item, so that a half-typed item costs only itself.
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Generics, Ident, Item, Path, Token, Visibility};

use super::attrs;
use crate::kind::Kind;
use crate::report::Report;

/// One item of the module.
pub(super) struct Piece {
    /// Our attributes on it.
    pub(super) helpers: Vec<(Kind, Attribute)>,
    /// The caller's tokens without them.
    pub(super) tokens: TokenStream,
    /// How it begins, if it is a struct or an enum.
    pub(super) head: Option<Head>,
    /// All of it, if it parses.
    pub(super) item: syn::Result<Item>,
}

/// The beginning of a struct or an enum. It can be read while the rest is still being typed.
pub(super) struct Head {
    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) ident: Ident,
    pub(super) generics: Generics,
}

pub(super) fn pieces(body: ParseStream, krate: &Path, report: &mut Report) -> syn::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    while !body.is_empty() {
        let ahead = body.fork();
        let tokens = match ahead.parse::<Item>() {
            Ok(_) => tokens_up_to(&ahead, body)?,
            Err(_) => skip_item(body)?,
        };
        pieces.push(piece(tokens, krate, report));
    }
    Ok(pieces)
}

fn piece(tokens: TokenStream, krate: &Path, report: &mut Report) -> Piece {
    let attrs::Split { helpers, rest: mut tokens } = attrs::split(tokens, krate, report);
    let head = head.parse2(tokens.clone()).ok().map(|(head, _)| head);
    let mut item = syn::parse2(tokens.clone());
    if let Ok(Item::Mod(module)) = &item
        && module.content.is_some()
    {
        tokens = attrs::without_nested(tokens, krate, report);
        item = syn::parse2(tokens.clone());
    }
    if let (None, Some((kind, attr))) = (&head, helpers.first()) {
        match &item {
            Ok(_) => report
                .error(attr, format!("`#[{}]` does not belong here: {}", kind.attribute(), kind.usage())),
            // Not passed on: one error for it is enough.
            Err(error) => {
                report.push(error.clone());
                tokens = TokenStream::new();
            }
        }
    }
    Piece { helpers, tokens, head, item }
}

fn head(input: ParseStream) -> syn::Result<(Head, TokenStream)> {
    let (attrs, vis) = (input.call(Attribute::parse_outer)?, input.parse()?);
    if input.parse::<Option<Token![struct]>>()?.is_none() {
        input.parse::<Token![enum]>()?;
    }
    let ident = input.parse()?;
    let ahead = input.fork();
    let generics = ahead.parse().unwrap_or_default();
    Ok((Head { attrs, vis, ident, generics }, input.parse()?))
}

fn tokens_up_to(ahead: ParseStream, body: ParseStream) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while body.cursor() < ahead.cursor() {
        tokens.extend([body.parse::<TokenTree>()?]);
    }
    body.advance_to(ahead);
    Ok(tokens)
}

/// The tokens up to the end of an item: a `;`, a brace group, or the beginning of the next item.
fn skip_item(body: ParseStream) -> syn::Result<TokenStream> {
    let mut skipped = TokenStream::new();
    let mut in_item = false;
    while !body.is_empty() {
        if in_item && begins_item(body) {
            break;
        }
        let tree: TokenTree = body.parse()?;
        in_item |= matches!(&tree, TokenTree::Ident(word) if word != "pub");
        let last = match &tree {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(punct) => punct.as_char() == ';',
            _ => false,
        };
        skipped.extend([tree]);
        if last {
            break;
        }
    }
    Ok(skipped)
}

fn begins_item(body: ParseStream) -> bool {
    body.peek(Token![#])
        || body.peek(Token![pub])
        || body.peek(Token![struct])
        || body.peek(Token![enum])
        || body.peek(Token![mod])
        || body.peek(Token![trait])
}
