//! Macro support for the `trellis` crate. Documentation lives on the re-exports there.
use proc_macro::TokenStream;
#[proc_macro_attribute]
pub fn contract(_args: TokenStream, item: TokenStream) -> TokenStream { item }
#[proc_macro_attribute]
pub fn event(_args: TokenStream, item: TokenStream) -> TokenStream { item }
#[proc_macro_attribute]
pub fn group(_args: TokenStream, item: TokenStream) -> TokenStream { item }
