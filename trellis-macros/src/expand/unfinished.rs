//! Stand-ins for the derives of a payload that is still being typed. They never run: the item has an
//! error of its own.
use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use crate::model::Derive;

pub(super) fn stand_in(derive: Derive, ident: &Ident, private: &TokenStream) -> TokenStream {
    let result = quote!(#private::core::result::Result);
    match derive {
        Derive::Serialize => quote! {
            impl #private::serde::Serialize for #ident {
                fn serialize<S: #private::serde::Serializer>(&self, serializer: S) -> #result<S::Ok, S::Error> {
                    #private::serde::Serializer::serialize_unit(serializer)
                }
            }
        },
        Derive::Deserialize => quote! {
            impl<'de> #private::serde::Deserialize<'de> for #ident {
                fn deserialize<D: #private::serde::Deserializer<'de>>(_: D) -> #result<Self, D::Error> {
                    #result::Err(#private::serde::de::Error::custom("unfinished"))
                }
            }
        },
        Derive::JsonSchema => quote! {
            impl #private::schemars::JsonSchema for #ident {
                fn schema_name() -> #private::std::borrow::Cow<'static, #private::core::primitive::str> {
                    #private::std::borrow::Cow::Borrowed("unfinished")
                }
                fn json_schema(_: &mut #private::schemars::SchemaGenerator) -> #private::schemars::Schema {
                    #private::core::default::Default::default()
                }
            }
        },
    }
}
