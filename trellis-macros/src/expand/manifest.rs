//! `Contract`: the contract as a type, with its manifest.
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

use super::docs::description;
use super::facade;
use super::private;
use crate::kind::Facade;
use crate::model::{Contract, Declared};

pub(super) fn marker(contract: &Contract) -> TokenStream {
    if contract.taken.has("Contract") {
        return TokenStream::new();
    }
    let private = private(&contract.args.krate);
    let id = contract.args.id();
    let (events_facade, jobs_facade) =
        (facade::module(contract, &Facade::EVENT), facade::module(contract, &Facade::JOB));
    let doc = description(contract.module.attrs.iter().chain(&contract.module.inner_attrs), &private);
    let manifest = Ident::new("manifest", Span::mixed_site());
    let declaration = |kind: TokenStream, Declared { ident, cfgs, .. }: &Declared| quote!(#(#cfgs)* <#ident as #private::#kind>::DECLARATION);
    let events = contract.events.iter().map(|event| declaration(quote!(Event), &event.declared));
    let jobs = contract.jobs.iter().map(|job| declaration(quote!(Job), &job.declared));
    let declared = contract.events.iter().map(|event| (quote!(event), &event.declared));
    let declared = declared.chain(contract.jobs.iter().map(|job| (quote!(job), &job.declared)));
    let declared = declared.chain(contract.groups.iter().map(|group| (quote!(group), &group.declared)));
    let entries = declared.map(|(method, declared)| {
        let (ident, cfgs) = (&declared.ident, &declared.cfgs);
        let doc = description(&declared.facade_attrs, &private);
        quote!(#(#cfgs)* #manifest.#method::<#ident>(#doc);)
    });
    quote! {
        /// This contract, as a type.
        #[#private::core::prelude::v1::derive(
            #private::core::clone::Clone,
            #private::core::marker::Copy,
            #private::core::default::Default,
            #private::core::fmt::Debug,
        )]
        #[allow(dead_code)]
        pub struct Contract;

        #[automatically_derived]
        #[allow(deprecated)]
        impl #private::Contract for Contract {
            const ID: &'static str = #id;
            type Events = #events_facade::Root;
            type Jobs = #jobs_facade::Root;
            fn events() -> #private::std::vec::Vec<#private::EventDeclaration> {
                #private::core::convert::From::from([#(#events),*])
            }
            fn jobs() -> #private::std::vec::Vec<#private::JobDeclaration> {
                #private::core::convert::From::from([#(#jobs),*])
            }
            fn manifest() -> #private::Manifest {
                #[allow(unused_mut)]
                let mut #manifest = #private::ManifestBuilder::new(#id, #doc);
                #(#entries)*
                #manifest.build()
            }
        }
    }
}
