//! One `impl Group` and one `impl Mount` per consumer group.
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

use super::{private, shown_at};
use crate::model::{Contract, Group};

// The bounds of `Mount` are the member list: a forgotten handler does not compile.
pub(super) fn implement(contract: &Contract, group: &Group) -> TokenStream {
    let private = private(&contract.args.krate);
    let id = contract.args.id();
    let (ident, name, cfgs) = (&group.declared.ident, group.declared.name(), &group.declared.cfgs);
    let members = &group.members;
    // A forgotten handler is shown at the member that asks for it.
    let bounds = members.iter().map(|member| {
        let on = shown_at(member.span(), quote!(+ #private::On<));
        let end = shown_at(member.span(), quote!(>));
        quote!(#on #member #end)
    });
    let replay = group.replay_all.then(|| quote!(.replay(#private::Replay::All)));
    // No user type is called that, so that a member named `S` is not mistaken for it.
    let service = Ident::new("__Service", Span::call_site());
    let registrar = Ident::new("registrar", Span::mixed_site());
    quote_spanned! {ident.span()=>
        #(#cfgs)*
        #[automatically_derived]
        #[allow(deprecated)]
        impl #private::Group for #ident {
            const DECLARATION: #private::GroupDeclaration = #private::GroupDeclaration::new(#id, #name) #replay;
            const MEMBERS: &'static [#private::EventDeclaration] =
                &[#(<#members as #private::Event>::DECLARATION),*];
        }

        #(#cfgs)*
        #[automatically_derived]
        impl<#service: #private::Service #(#bounds)*> #private::Mount<#service> for #ident {
            fn mount(#registrar: &mut impl #private::Registrar<#service>) {
                #(#private::Registrar::on::<#members>(#registrar);)*
            }
        }
    }
}
