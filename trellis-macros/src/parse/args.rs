//! The arguments of `#[trellis::contract(..)]`.
use proc_macro2::TokenStream;
use syn::parse::ParseStream;
use syn::{LitStr, Path, Token};

use super::options;
use crate::model::Args;
use crate::report::Report;

pub(super) fn read(tokens: TokenStream, report: &mut Report) -> Args {
    let (mut id, mut krate) = (None, None);
    let mut id_is_wrong = false;
    options::comma_separated(tokens, report, |input| {
        if input.peek(LitStr) {
            id_is_wrong = true;
            return Err(input.error("write `id = \"acme.orders@v1\"`"));
        }
        let key = options::key(input, "id, crate")?;
        id_is_wrong |= key == "id";
        match key.to_string().as_str() {
            "id" => options::once(&mut id, &key, string(input)?),
            "crate" => options::once(&mut krate, &key, path(input)?),
            _ => Err(syn::Error::new(
                key.span(),
                format!("unknown option `{key}`; the options are: id, crate"),
            )),
        }
    });
    Args {
        id_is_missing: id.is_none() && !id_is_wrong,
        id,
        krate: krate.unwrap_or_else(|| syn::parse_quote!(::trellis)),
    }
}

fn string(input: ParseStream) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

fn path(input: ParseStream) -> syn::Result<Path> {
    input.parse::<Token![=]>()?;
    if input.peek(LitStr) {
        return Err(input.error("write the path itself: `crate = ::path::to::trellis`"));
    }
    input.call(Path::parse_mod_style)
}
