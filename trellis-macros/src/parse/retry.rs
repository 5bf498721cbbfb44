//! `retry(tries = 8, first = "1s", longest = "10m", explicit)`, or `retry = "explicit"`
use proc_macro2::TokenStream;
use syn::parse::ParseStream;
use syn::{Ident, Lit, LitInt, LitStr, Token};

use super::{duration, options};
use crate::model::{Given, Retry};
use crate::report::Report;

const OPTIONS: &str = "tries, first, longest, explicit";
const FORM: &str =
    "`retry = \"explicit\"`, or any of `retry(tries = 8, first = \"1s\", longest = \"10m\", explicit)`";

/// What can be read is kept, so that it is checked in the same run.
pub(super) fn read(slot: &mut Option<Retry>, key: &Ident, input: ParseStream) -> syn::Result<()> {
    if slot.is_some() {
        let message = "`retry` is given twice: say it in one list, as in `retry(tries = 8, explicit)`";
        return Err(syn::Error::new(key.span(), message));
    }
    let retry = slot.insert(Retry::default());
    let read = if input.peek(syn::token::Paren) { list(retry, input) } else { word(retry, key, input) };
    retry.incomplete = read.is_err();
    read
}

/// `= "explicit"`
fn word(retry: &mut Retry, key: &Ident, input: ParseStream) -> syn::Result<()> {
    options::value(input, key, FORM)?;
    if input.peek(LitInt) {
        return Err(number_of_tries(input));
    }
    if !input.peek(LitStr) {
        return Err(input.error(format!("write {FORM}")));
    }
    let text: LitStr = input.parse()?;
    if text.value() != "explicit" {
        return Err(syn::Error::new(text.span(), format!("write {FORM}")));
    }
    retry.explicit = true;
    Ok(())
}

fn list(retry: &mut Retry, input: ParseStream) -> syn::Result<()> {
    let content;
    let parentheses = syn::parenthesized!(content in input);
    if content.is_empty() {
        let message = format!("say what differs, {FORM}; or leave `retry` out");
        return Err(syn::Error::new(parentheses.span.join(), message));
    }
    let mut report = Report::default();
    let mut explicit = None;
    options::comma_separated(content.parse::<TokenStream>()?, &mut report, |input| {
        if input.peek(LitInt) {
            return Err(number_of_tries(input));
        }
        let key = options::key(input, OPTIONS)?;
        match key.to_string().as_str() {
            "tries" => options::once(&mut retry.tries, &key, tries(input, &key)?),
            "first" => options::once(&mut retry.first, &key, duration::read(input, &key, "1s")?),
            "longest" => options::once(&mut retry.longest, &key, duration::read(input, &key, "10m")?),
            "explicit" => {
                if input.peek(Token![=]) {
                    return Err(syn::Error::new(key.span(), "`explicit` takes no value: `retry(explicit)`"));
                }
                options::once(&mut explicit, &key, ())
            }
            _ => Err(options::unknown(&key, OPTIONS)),
        }
    });
    retry.explicit = explicit.is_some();
    report.into_result()
}

fn tries(input: ParseStream, key: &Ident) -> syn::Result<Given<u64>> {
    options::value(input, key, "`tries = 8`")?;
    if !input.peek(LitInt) {
        return Err(input.error("`tries` is an integer: `tries = 8`"));
    }
    let number: LitInt = input.parse()?;
    if !number.suffix().is_empty() {
        return Err(syn::Error::new(number.span(), "`tries` is an integer: `tries = 8`"));
    }
    // What is negative or too large is out of range either way.
    let value = number.base10_parse().unwrap_or(u64::MAX);
    Ok(Given { value, literal: Lit::Int(number) })
}

/// `retry = 3` and `retry(3)`.
fn number_of_tries(input: ParseStream) -> syn::Error {
    match input.parse::<LitInt>() {
        Ok(number) => syn::Error::new(number.span(), format!("write `retry(tries = {number})`")),
        Err(error) => error,
    }
}
