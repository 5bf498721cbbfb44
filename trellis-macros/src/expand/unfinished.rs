//! Stand-ins for the derives of a payload that is still being typed. They never run: the item has an
//! error of its own. The traits are found by the paths of the derives, which as a rule name both.
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, Path};

use crate::model::{Declared, Derive, Payload};

pub(super) fn stand_ins(declared: &Declared, payload: &Payload, private: &TokenStream) -> TokenStream {
    let Declared { ident, cfgs, .. } = declared;
    let stand_ins = payload.unfinished.iter().map(|derive| {
        let stand_in = stand_in(derive, ident, private);
        quote!(#(#cfgs)* #stand_in)
    });
    quote!(#(#stand_ins)*)
}

fn stand_in((derive, path): &(Derive, Path), ident: &Ident, private: &TokenStream) -> TokenStream {
    let result = quote!(#private::core::result::Result);
    match derive {
        Derive::Serialize => quote! {
            impl #path for #ident {
                fn serialize<S: #private::Serializer>(&self, serializer: S) -> #result<S::Ok, S::Error> {
                    #private::Serializer::serialize_unit(serializer)
                }
            }
        },
        Derive::Deserialize => quote! {
            impl<'de> #path<'de> for #ident {
                fn deserialize<D: #private::Deserializer<'de>>(_: D) -> #result<Self, D::Error> {
                    #result::Err(#private::DeserializeError::custom("unfinished"))
                }
            }
        },
        Derive::JsonSchema => quote! {
            impl #path for #ident {
                fn schema_name() -> #private::std::borrow::Cow<'static, #private::core::primitive::str> {
                    #private::std::borrow::Cow::Borrowed("unfinished")
                }
                fn json_schema(_: &mut #private::SchemaGenerator) -> #private::Schema {
                    #private::core::default::Default::default()
                }
            }
        },
    }
}
