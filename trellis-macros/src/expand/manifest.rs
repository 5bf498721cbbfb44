//! `Contract`: the contract as a type, with its manifest.
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

use super::docs::description;
use super::facade::facade_module;
use super::private;
use crate::model::Contract;

pub(super) fn marker(contract: &Contract) -> TokenStream {
    if contract.taken.marker {
        return TokenStream::new();
    }
    let private = private(&contract.args.krate);
    let id = contract.args.id();
    let facade = facade_module(contract);
    let doc = description(contract.module.attrs.iter().chain(&contract.module.inner_attrs), &private);
    let manifest = Ident::new("manifest", Span::mixed_site());
    let declarations = contract.events.iter().map(|event| {
        let (ident, cfgs) = (&event.declared.ident, &event.declared.cfgs);
        quote!(#(#cfgs)* <#ident as #private::Event>::DECLARATION)
    });
    let events = contract.events.iter().map(|event| (quote!(event), &event.declared));
    let groups = contract.groups.iter().map(|group| (quote!(group), &group.declared));
    let entries = events.chain(groups).map(|(method, declared)| {
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
            type Events = #facade::Root;
            fn events() -> #private::std::vec::Vec<#private::EventDeclaration> {
                #private::core::convert::From::from([#(#declarations),*])
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
