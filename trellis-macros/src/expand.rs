//! Declarations → tokens. Thin: one impl and one field per declaration; behaviour is in `trellis`.
mod docs;
mod event;
mod facade;
mod group;
mod job;
mod manifest;
mod unfinished;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::Path;

use crate::kind::Facade;
use crate::model::{Contract, Module};

pub(crate) fn expand(contract: &Contract) -> TokenStream {
    let Contract { module, body, events, jobs, groups, .. } = contract;
    let Module { attrs, inner_attrs, vis, mod_token, ident } = module;
    let event_facade = facade::expand(contract, &Facade::EVENT, events.iter().map(|one| &one.declared));
    let job_facade = facade::expand(contract, &Facade::JOB, jobs.iter().map(|one| &one.declared));
    let events = events.iter().map(|one| event::implement(contract, one));
    let jobs = jobs.iter().map(|one| job::implement(contract, one));
    let groups = groups.iter().map(|one| group::implement(contract, one));
    let marker = manifest::marker(contract);
    quote! {
        #(#attrs)*
        #vis #mod_token #ident {
            #(#inner_attrs)*
            #(#body)*
            #(#events)*
            #(#jobs)*
            #(#groups)*
            #event_facade
            #job_facade
            #marker
        }
    }
}

/// Where generated code finds what it names, seen from the contract module.
fn private(krate: &Path) -> TokenStream {
    quote!(#krate::__private)
}

/// The same, seen from a module inside the contract module.
fn private_from_inside(krate: &Path) -> TokenStream {
    let mut path = krate.clone();
    let relative = path.leading_colon.is_none().then(|| path.segments.first_mut()).flatten();
    match relative {
        Some(first) if first.ident == "self" => {
            first.ident = syn::Ident::new("super", first.ident.span());
            private(&path)
        }
        Some(first) if first.ident == "super" => {
            let private = private(&path);
            quote!(super::#private)
        }
        _ => private(&path),
    }
}

/// The same tokens, shown elsewhere in an error. What they resolve to does not change, and lints
/// still know that nobody wrote them.
fn shown_at(span: Span, tokens: TokenStream) -> TokenStream {
    let shown = |mut tree: TokenTree| {
        tree.set_span(tree.span().located_at(span));
        tree
    };
    tokens.into_iter().map(shown).collect()
}
