//! `"name", option = …, option(…)`: what stands in the parentheses of our attributes.
use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Ident, LitStr, Meta, Token, Type};

use crate::kind::Kind;
use crate::report::Report;

/// Read the name and hand each option to `option`; an option that is wrong costs only itself.
pub(super) fn read(
    kind: Kind,
    attr: &Attribute,
    report: &mut Report,
    mut option: impl FnMut(ParseStream) -> syn::Result<()>,
) -> Option<LitStr> {
    let usage = format!("expected the name, as a string: {}", kind.usage());
    let Meta::List(list) = &attr.meta else {
        report.error(attr, usage);
        return None;
    };
    let mut name = None;
    let mut first = true;
    let wrong = report.len();
    comma_separated(list.tokens.clone(), report, |input| {
        if std::mem::take(&mut first) {
            if input.peek(LitStr) {
                name = Some(input.parse()?);
                return Ok(());
            }
            if input.peek(Ident) && input.peek2(Token![=]) && input.fork().parse::<Ident>()? == "name" {
                let key: Ident = input.parse()?;
                value(input, &key, kind.usage())?;
                name = Some(input.parse()?);
                return Err(syn::Error::new(
                    key.span(),
                    format!("the name stands by itself: {}", kind.usage()),
                ));
            }
            // An option in the place of the name is an option all the same.
            let is_option = input.peek2(Token![=]) || input.peek2(syn::token::Paren);
            return Err(if is_option {
                both(input.error(&usage), option(input))
            } else {
                input.error(&usage)
            });
        }
        option(input)
    });
    if first && report.len() == wrong {
        report.error(attr, usage);
    }
    name
}

fn both(mut error: syn::Error, read: syn::Result<()>) -> syn::Error {
    if let Err(other) = read {
        error.combine(other);
    }
    error
}

/// The word an option begins with.
pub(super) fn key(input: ParseStream, options: &str) -> syn::Result<Ident> {
    if input.peek(Ident::peek_any) {
        return input.call(Ident::parse_any);
    }
    Err(input.error(format!("expected an option; the options are: {options}")))
}

pub(super) fn unknown(key: &Ident, options: &str) -> syn::Error {
    syn::Error::new(key.span(), format!("unknown option `{key}`; the options are: {options}"))
}

/// Keep the first value of an option.
pub(super) fn once<T>(slot: &mut Option<T>, key: &Ident, value: T) -> syn::Result<()> {
    if slot.is_some() {
        return Err(syn::Error::new(key.span(), format!("`{key}` is given twice")));
    }
    *slot = Some(value);
    Ok(())
}

/// Past the `=` of an option, to its value. `form` is how both look.
pub(super) fn value(input: ParseStream, key: &Ident, form: &str) -> syn::Result<()> {
    let equals: Option<Token![=]> = input.parse()?;
    if equals.is_some() && !input.is_empty() && !input.peek(Token![,]) {
        return Ok(());
    }
    Err(syn::Error::new(key.span(), format!("write {form}")))
}

pub(super) fn ty(input: ParseStream, key: &Ident) -> syn::Result<Type> {
    value(input, key, &format!("`{key} = path::to::Type`"))?;
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        let message = format!("write the type itself: `{key} = {}`", text.value());
        return Err(syn::Error::new(text.span(), message));
    }
    input.parse()
}

/// Hand each element of a comma-separated list to `element`, and go on with the next after an error.
pub(super) fn comma_separated(
    tokens: TokenStream,
    report: &mut Report,
    mut element: impl FnMut(ParseStream) -> syn::Result<()>,
) {
    let before = report.len();
    let parser = |input: ParseStream| {
        while !input.is_empty() {
            let mut read = element(input);
            if read.is_ok() && !input.is_empty() && !input.peek(Token![,]) {
                read = Err(input.error("expected `,`"));
            }
            report.ok(read);
            skip_past_comma(input)?;
        }
        Ok(())
    };
    let read = parser.parse2(tokens);
    // What an element left over of its own parentheses was reported with that element.
    if report.len() == before {
        report.ok(read);
    }
}

fn skip_past_comma(input: ParseStream) -> syn::Result<()> {
    while !input.is_empty() {
        let tree: TokenTree = input.parse()?;
        if matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == ',') {
            break;
        }
    }
    Ok(())
}
