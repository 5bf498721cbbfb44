//! `#[event("orders.created", params(..), order_by = .., payload = ..)]`
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, LitStr, Token};

use super::piece::Head;
use super::{declared, options};
use crate::kind::Kind;
use crate::model::{Event, FieldName, Payload};
use crate::report::Report;

const OPTIONS: &str = "params, order_by, payload";

pub(super) fn read(attr: &Attribute, head: &Head, report: &mut Report) -> Option<Event> {
    let (mut params, mut order_by, mut payload) = (None, None, None);
    let name = options::read(Kind::Event, attr, report, |input| {
        let key = options::key(input, OPTIONS)?;
        match key.to_string().as_str() {
            "params" => options::once(&mut params, &key, read_params(input)?),
            "order_by" => options::once(&mut order_by, &key, read_order_by(input, &key)?),
            "payload" => options::once(&mut payload, &key, options::ty(input, &key)?),
            _ => Err(options::unknown(&key, OPTIONS)),
        }
    });
    let declared = declared(Kind::Event, name, head, report)?;
    let payload = Payload { ty: payload, unfinished: Vec::new() };
    Some(Event { declared, payload, params: params.unwrap_or_default(), order_by })
}

fn read_params(input: ParseStream) -> syn::Result<Vec<FieldName>> {
    if !input.peek(syn::token::Paren) {
        return Err(input.error("expected fields of the payload: `params(order_id, region)`"));
    }
    let names;
    let parentheses = syn::parenthesized!(names in input);
    if names.is_empty() {
        return Err(syn::Error::new(
            parentheses.span.join(),
            "name at least one field, or leave `params` out",
        ));
    }
    let names = Punctuated::<FieldName, Token![,]>::parse_terminated_with(&names, read_field)?;
    Ok(names.into_iter().collect())
}

fn read_order_by(input: ParseStream, key: &Ident) -> syn::Result<FieldName> {
    options::value(input, key, "`order_by = customer_id`")?;
    read_field(input)
}

fn read_field(input: ParseStream) -> syn::Result<FieldName> {
    if input.peek(LitStr) {
        let name: LitStr = input.parse()?;
        return Ok(FieldName { wire: name.value(), span: name.span() });
    }
    if !input.peek(Ident::peek_any) {
        return Err(input.error(
            "expected a field of the payload, by its name on the wire: `order_id` or `\"order-id\"`",
        ));
    }
    let name = input.call(Ident::parse_any)?;
    Ok(FieldName { wire: name.unraw().to_string(), span: name.span() })
}
