//! The facade: `orders.created` → `ctx.event.orders.created`, one struct per group of
//! the path; and the same for every other kind that has handles.
use std::collections::BTreeMap;

use heck::ToUpperCamelCase;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, LitStr, Visibility};

use super::{docs, private_from_inside, shown_at};
use crate::kind::Facade;
use crate::model::{Contract, Declared};

/// `declarations` are all of the kind that `facade` leads to.
pub(super) fn expand<'a>(
    contract: &Contract,
    facade: &Facade,
    declarations: impl Iterator<Item = &'a Declared>,
) -> TokenStream {
    let mut tree = Tree::new();
    declarations.filter(|declared| declared.in_facade).for_each(|declared| tree.add(declared));
    let Facade { noun, plural, constant, .. } = facade;
    let module = module(contract, facade);
    let structs = tree.structs.iter().map(|one| tree.expand(one, contract, facade));
    let doc = format!(" The facade at `ctx.{noun}`: the {plural} of `{}`.", contract.args.id());
    let value = (!contract.taken.has(constant)).then(|| {
        let doc = format!(" The facade at `ctx.{noun}`, for use where there is no context.");
        let constant = Ident::new(constant, Span::call_site());
        quote! {
            #[doc = #doc]
            #[allow(dead_code)]
            pub const #constant: #module::Root = #module::Root::ALL;
        }
    });
    quote! {
        #[doc = #doc]
        #[allow(dead_code, deprecated)]
        pub mod #module { #(#structs)* }
        #value
    }
}

/// The module that holds the facade; hidden where the caller has taken its name.
pub(super) fn module(contract: &Contract, Facade { noun, .. }: &Facade) -> Ident {
    let name = if contract.taken.has(noun) { format!("__{noun}") } else { (*noun).to_owned() };
    Ident::new(&name, Span::call_site())
}

/// The structs of a facade, and what they are called.
struct Tree<'a> {
    structs: Vec<Struct<'a>>,
    type_names: BTreeMap<Vec<String>, String>,
}

/// One group of the path, with its fields in declared order.
#[derive(Default)]
struct Struct<'a> {
    path: Vec<String>,
    groups: Vec<String>,
    leaves: Vec<(String, &'a Declared)>,
}

impl<'a> Tree<'a> {
    fn new() -> Self {
        Self {
            structs: vec![Struct::default()],
            type_names: BTreeMap::from([(Vec::new(), "Root".to_owned())]),
        }
    }

    fn add(&mut self, declared: &'a Declared) {
        let name = declared.name();
        let mut path: Vec<String> = name.split('.').map(str::to_owned).collect();
        let Some(leaf) = path.pop() else { return };
        for depth in 0..path.len() {
            let (parent, rest) = path.split_at(depth);
            let Some(token) = rest.first() else { continue };
            let group = self.group(parent);
            if !group.groups.contains(token) {
                group.groups.push(token.clone());
            }
        }
        self.group(&path).leaves.push((leaf, declared));
    }

    fn group(&mut self, path: &[String]) -> &mut Struct<'a> {
        let at = self.structs.iter().position(|one| one.path == path).unwrap_or_else(|| {
            self.name_type(path);
            self.structs.push(Struct { path: path.to_vec(), ..Struct::default() });
            self.structs.len() - 1
        });
        #[allow(clippy::indexing_slicing, reason = "found or pushed above")]
        &mut self.structs[at]
    }

    /// `["orders", "lines"]` → `OrdersLines`, unless another path has that name already.
    fn name_type(&mut self, path: &[String]) {
        let wanted = path.join("_").to_upper_camel_case();
        let mut name = wanted.clone();
        let mut next = 2;
        while name == "Self" || self.type_names.values().any(|taken| *taken == name) {
            name = format!("{wanted}{next}");
            next += 1;
        }
        self.type_names.insert(path.to_vec(), name);
    }

    fn type_name(&self, path: &[String]) -> Ident {
        let name = self.type_names.get(path).map_or("Root", String::as_str);
        Ident::new(name, Span::call_site())
    }

    fn expand(&self, one: &Struct, contract: &Contract, facade: &Facade) -> TokenStream {
        let private = private_from_inside(&contract.args.krate);
        let handle = Ident::new(facade.handle, Span::call_site());
        let handle = quote!(#private::#handle);
        let name = self.type_name(&one.path);
        let (mut fields, mut values) = (Vec::new(), Vec::new());
        for token in &one.groups {
            let mut path = one.path.clone();
            path.push(token.clone());
            let (field, ty) = (Ident::new(token, Span::call_site()), self.type_name(&path));
            let doc = format!(" `{}.*`", path.join("."));
            fields.push(quote!(#[doc = #doc] pub #field: #ty));
            values.push(quote!(#field: #ty::ALL));
        }
        for (token, declared) in &one.leaves {
            fields.push(leaf(token, declared, &handle));
            let (field, cfgs) = (leaf_ident(token, declared), &declared.cfgs);
            values.push(quote!(#(#cfgs)* #field: #handle::new()));
        }
        let doc = match one.path.as_slice() {
            [] => format!(" All {}.", facade.plural),
            path => format!(" The {} `{}.*`.", facade.plural, path.join(".")),
        };
        quote! {
            #[doc = #doc]
            #[#private::core::prelude::v1::derive(
                #private::core::clone::Clone,
                #private::core::marker::Copy,
                #private::core::fmt::Debug,
            )]
            pub struct #name { #(#fields,)* }
            impl #name {
                #[doc(hidden)]
                pub const ALL: Self = Self { #(#values,)* };
            }
            #[automatically_derived]
            impl #private::core::default::Default for #name {
                fn default() -> Self {
                    Self::ALL
                }
            }
        }
    }
}

/// Named at the literal, so that "go to definition" lands on the declaration.
fn leaf_ident(token: &str, declared: &Declared) -> Ident {
    Ident::new(token, declared.name.as_ref().map_or_else(Span::call_site, LitStr::span))
}

fn leaf(token: &str, declared: &Declared, handle: &TokenStream) -> TokenStream {
    let (marker, cfgs, attrs) = (&declared.ident, &declared.cfgs, &declared.facade_attrs);
    let field = leaf_ident(token, declared);
    let span = field.span();
    let vis = shown_at(span, from_inside(&declared.vis));
    let ty = shown_at(span, quote!(#handle<super::#marker>));
    let fallback = attrs.iter().all(|attr| docs::value(attr).is_none()).then(|| {
        let doc = format!(" `{}`", declared.name());
        quote!(#[doc = #doc])
    });
    quote!(#(#cfgs)* #(#attrs)* #fallback #vis #field: #ty)
}

/// A visibility of the contract module, as it is written one module further in.
fn from_inside(vis: &Visibility) -> TokenStream {
    match vis {
        Visibility::Inherited => quote!(pub(super)),
        Visibility::Public(_) => quote!(#vis),
        Visibility::Restricted(restricted) => {
            let path = &restricted.path;
            match path.segments.first() {
                Some(first) if first.ident == "self" => quote!(pub(super)),
                Some(first) if first.ident == "super" => quote!(pub(in super::#path)),
                _ => quote!(#vis),
            }
        }
    }
}
