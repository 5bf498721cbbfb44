//! Macro support for the `trellis` crate. Documentation lives on the re-exports there.
//!
//! parse (tokens → declarations) → check (rules over declarations) → expand (declarations → tokens),
//! with every error of one expansion collected in one `report::Report`.

mod check;
mod expand;
#[cfg(test)]
mod golden;
mod kind;
mod model;
mod parse;
mod report;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;

use kind::Kind;

#[allow(missing_docs, reason = "documented where `trellis` re-exports it")]
#[proc_macro_attribute]
pub fn contract(args: TokenStream, item: TokenStream) -> TokenStream {
    expand_contract(args.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented where `trellis` re-exports it")]
#[proc_macro_attribute]
pub fn event(_args: TokenStream, item: TokenStream) -> TokenStream {
    outside_of_a_contract(Kind::Event, item.into()).into()
}

#[allow(missing_docs, reason = "documented where `trellis` re-exports it")]
#[proc_macro_attribute]
pub fn job(_args: TokenStream, item: TokenStream) -> TokenStream {
    outside_of_a_contract(Kind::Job, item.into()).into()
}

#[allow(missing_docs, reason = "documented where `trellis` re-exports it")]
#[proc_macro_attribute]
pub fn group(_args: TokenStream, item: TokenStream) -> TokenStream {
    outside_of_a_contract(Kind::Group, item.into()).into()
}

/// Whatever goes wrong, the caller's own items are emitted, so that one mistake is one error.
fn expand_contract(args: TokenStream2, item: TokenStream2) -> TokenStream2 {
    let mut report = report::Report::default();
    let mut tokens = match parse::contract(args, item.clone(), &mut report) {
        Some(mut contract) => {
            check::check(&mut contract, &mut report);
            expand::expand(&contract)
        }
        None => item,
    };
    tokens.extend(report.into_compile_errors());
    tokens
}

/// `#[contract]` takes its inner attributes away before rustc resolves them: what reaches this one
/// was written elsewhere.
fn outside_of_a_contract(kind: Kind, item: TokenStream2) -> TokenStream2 {
    let name = kind.attribute();
    let message = format!("`#[{name}]` belongs on an item directly inside a `#[trellis::contract]` module");
    let mut tokens = item;
    tokens.extend(syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error());
    tokens
}
