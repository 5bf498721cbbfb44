//! One `impl Event` per event.
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::private;
use super::unfinished::stand_ins;
use crate::model::{Contract, Event};

// Spanned at the type, so that what the compiler says of the impl, it says there.
pub(super) fn implement(contract: &Contract, event: &Event) -> TokenStream {
    let private = private(&contract.args.krate);
    let id = contract.args.id();
    let (ident, name, cfgs) = (&event.declared.ident, event.declared.name(), &event.declared.cfgs);
    let payload = event.payload.of(&event.declared);
    let wires: Vec<&str> = event.params.iter().map(|param| param.wire.as_str()).collect();
    let params = (!wires.is_empty()).then(|| quote!(.params(&[#(#wires),*])));
    let order_by = event.order_by.as_ref().map(|field| {
        let wire = &field.wire;
        quote!(.order_by(#wire))
    });
    let stand_ins = stand_ins(&event.declared, &event.payload, &private);
    let implementation = quote_spanned! {ident.span()=>
        #(#cfgs)*
        #[automatically_derived]
        #[allow(deprecated)]
        impl #private::Event for #ident {
            type Payload = #payload;
            const DECLARATION: #private::EventDeclaration =
                #private::EventDeclaration::new(#id, #name) #params #order_by;
        }
    };
    quote!(#stand_ins #implementation)
}
