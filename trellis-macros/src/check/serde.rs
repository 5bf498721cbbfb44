//! What serde's attributes say about how a struct travels.
use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, LitStr, Meta, Path, Token, Type};

/// On a struct.
#[derive(Default)]
pub(super) struct Container {
    /// `rename_all`, in the direction of serializing.
    pub(super) rename_all: Option<String>,
    pub(super) transparent: bool,
    /// The type it is turned into before it travels.
    pub(super) into: Option<Type>,
    /// The field that an internal tag adds.
    pub(super) tag: Option<String>,
    /// Some of this is said under `#[cfg_attr]`, or not in serde's language.
    pub(super) uncertain: bool,
}

/// On a field.
#[derive(Default)]
pub(super) struct Field {
    /// `rename`, in the direction of serializing.
    pub(super) rename: Option<String>,
    pub(super) presence: Presence,
    pub(super) flatten: Option<Span>,
    /// Another function writes it, so that its type says nothing.
    pub(super) custom: bool,
    pub(super) uncertain: bool,
}

/// Whether a field is on the wire.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Presence {
    #[default]
    Always,
    /// `skip_serializing_if`
    Sometimes,
    /// `skip`, `skip_serializing`
    Never,
}

pub(super) fn container(attrs: &[Attribute]) -> Container {
    let mut read = Container { uncertain: under_cfg_attr(attrs), ..Container::default() };
    let complete = each(attrs, |meta| {
        match name(&meta).as_str() {
            "rename_all" => read.rename_all = for_serialize(&meta)?.or(read.rename_all.take()),
            "transparent" => read.transparent = true,
            "into" => read.into = Some(value(&meta)?.parse()?),
            "tag" => read.tag = Some(value(&meta)?.value()),
            _ => skip(&meta)?,
        }
        Ok(())
    });
    read.uncertain |= !complete;
    read
}

pub(super) fn field(attrs: &[Attribute]) -> Field {
    let mut read = Field { uncertain: under_cfg_attr(attrs), ..Field::default() };
    read.custom = attrs.iter().any(|attr| attr.path().is_ident("serde_as"));
    let complete = each(attrs, |meta| {
        match name(&meta).as_str() {
            "rename" => read.rename = for_serialize(&meta)?.or(read.rename.take()),
            "skip" | "skip_serializing" => read.presence = Presence::Never,
            "flatten" => read.flatten = Some(meta.path.span()),
            "skip_serializing_if" => {
                read.presence = read.presence.max(Presence::Sometimes);
                skip(&meta)?;
            }
            "with" | "serialize_with" | "getter" => {
                read.custom = true;
                skip(&meta)?;
            }
            _ => skip(&meta)?,
        }
        Ok(())
    });
    read.uncertain |= !complete;
    read
}

/// Whether `#[derive(Serialize)]` writes this type; otherwise its attributes say nothing certain.
pub(super) fn derives_serialize(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| derives(&attr.meta))
}

fn derives(meta: &Meta) -> bool {
    let Meta::List(list) = meta else { return false };
    let tokens = list.tokens.clone();
    if list.path.is_ident("derive") {
        let paths = Punctuated::<Path, Token![,]>::parse_terminated.parse2(tokens).unwrap_or_default();
        return paths.iter().any(|path| path.segments.last().is_some_and(|last| last.ident == "Serialize"));
    }
    conditional(meta).iter().any(derives)
}

fn under_cfg_attr(attrs: &[Attribute]) -> bool {
    attrs.iter().flat_map(|attr| conditional(&attr.meta)).any(|meta| meta.path().is_ident("serde"))
}

/// The attributes in a `#[cfg_attr(..)]`.
fn conditional(meta: &Meta) -> Vec<Meta> {
    match meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => {
            let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone());
            metas.map(|metas| metas.into_iter().skip(1).collect()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// False where an attribute does not parse: serde will say so.
fn each(attrs: &[Attribute], mut logic: impl FnMut(ParseNestedMeta) -> syn::Result<()>) -> bool {
    let mut complete = true;
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        complete &= attr.parse_nested_meta(&mut logic).is_ok();
    }
    complete
}

fn name(meta: &ParseNestedMeta) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

fn value(meta: &ParseNestedMeta) -> syn::Result<LitStr> {
    meta.value()?.parse()
}

/// `= "x"` or `(serialize = "x", deserialize = "y")`
fn for_serialize(meta: &ParseNestedMeta) -> syn::Result<Option<String>> {
    if meta.input.peek(Token![=]) {
        return value(meta).map(|text| Some(text.value()));
    }
    let mut found = None;
    meta.parse_nested_meta(|direction| {
        let text = value(&direction)?.value();
        if direction.path.is_ident("serialize") {
            found = Some(text);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Past the value of an option that does not matter here.
fn skip(meta: &ParseNestedMeta) -> syn::Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in meta.input);
        drop_all(&content)?;
    }
    Ok(())
}

fn drop_all(content: ParseStream) -> syn::Result<()> {
    content.parse::<proc_macro2::TokenStream>().map(drop)
}

#[cfg(test)]
mod tests {
    use super::{Presence, container, derives_serialize, field};
    use syn::parse_quote;

    #[test]
    fn names_are_those_of_the_serializing_direction() {
        assert_eq!(field(&[parse_quote!(#[serde(rename = "a")])]).rename.as_deref(), Some("a"));
        let both = parse_quote!(#[serde(rename(serialize = "out", deserialize = "in"), default)]);
        assert_eq!(field(&[both]).rename.as_deref(), Some("out"));
        assert_eq!(field(&[parse_quote!(#[serde(rename(deserialize = "in"))])]).rename, None);
        let split = parse_quote!(#[serde(rename_all(deserialize = "camelCase", serialize = "kebab-case"))]);
        assert_eq!(container(&[split]).rename_all.as_deref(), Some("kebab-case"));
    }

    #[test]
    fn options_that_do_not_matter_are_passed_over() {
        let attr = parse_quote!(#[serde(bound(serialize = "T: X"), default = "f", skip_deserializing, rename = "z")]);
        let read = field(&[attr]);
        assert_eq!(read.rename.as_deref(), Some("z"));
        assert!(read.presence == Presence::Always && !read.custom && !read.uncertain);
    }

    #[test]
    fn what_a_cfg_attr_says_is_uncertain() {
        assert!(container(&[parse_quote!(#[cfg_attr(x, serde(rename_all = "camelCase"))])]).uncertain);
        assert!(!container(&[parse_quote!(#[cfg_attr(x, derive(Debug))])]).uncertain);
        assert!(field(&[parse_quote!(#[serde(rename = 7)])]).uncertain);
    }

    #[test]
    fn the_derive_is_found_wherever_it_stands() {
        assert!(derives_serialize(&[parse_quote!(#[derive(Debug, serde::Serialize)])]));
        assert!(derives_serialize(&[parse_quote!(#[cfg_attr(x, derive(Serialize))])]));
        assert!(!derives_serialize(&[parse_quote!(#[derive(Deserialize)])]));
    }
}
