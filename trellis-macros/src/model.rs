//! What was declared, with the spans it was declared at.
use std::collections::BTreeSet;
use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Ident, Item, Lit, LitStr, Path, Token, Type, Visibility};

/// One contract module.
pub(crate) struct Contract {
    pub(crate) args: Args,
    pub(crate) module: Module,
    /// The items of the module as they will be emitted, in order.
    pub(crate) body: Vec<TokenStream>,
    /// The same as far as they could be parsed, for the checks.
    pub(crate) items: Vec<Item>,
    pub(crate) events: Vec<Event>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) groups: Vec<Group>,
    /// Items of the caller that hold a name which the expansion would use.
    pub(crate) taken: Taken,
}

/// The arguments of `#[trellis::contract(..)]`.
pub(crate) struct Args {
    /// The identity, if it is there.
    pub(crate) id: Option<LitStr>,
    /// That it is not there has not been reported yet.
    pub(crate) id_is_missing: bool,
    /// Path of the `trellis` crate.
    pub(crate) krate: Path,
}

/// The module around the items.
pub(crate) struct Module {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) inner_attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) mod_token: Token![mod],
    pub(crate) ident: Ident,
}

/// Which generated names an item of the caller holds.
#[derive(Default)]
pub(crate) struct Taken(pub(crate) BTreeSet<String>);

/// What every declaration has.
pub(crate) struct Declared {
    /// The type under the attribute.
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    /// The name in the attribute, if it is there.
    pub(crate) name: Option<LitStr>,
    /// Docs and `#[deprecated]`, to be repeated on the facade.
    pub(crate) facade_attrs: Vec<Attribute>,
    /// `#[cfg(..)]`s, to be repeated on everything that is generated.
    pub(crate) cfgs: Vec<Attribute>,
    /// Cleared where the name cannot be a path of its facade.
    pub(crate) in_facade: bool,
}

/// What a declaration carries.
pub(crate) struct Payload {
    /// Its type, where it is not the type under the attribute.
    pub(crate) ty: Option<Type>,
    /// Derives that were taken from a type that does not parse.
    pub(crate) unfinished: Vec<(Derive, Path)>,
}

/// `#[event(..)]`
pub(crate) struct Event {
    pub(crate) declared: Declared,
    pub(crate) payload: Payload,
    pub(crate) params: Vec<FieldName>,
    pub(crate) order_by: Option<FieldName>,
}

/// `#[job(..)]`
pub(crate) struct Job {
    pub(crate) declared: Declared,
    pub(crate) payload: Payload,
    pub(crate) result: Option<Type>,
    pub(crate) update: Option<Type>,
    pub(crate) retry: Retry,
    pub(crate) deadline: Option<Given<Duration>>,
}

/// What a job says of its tries, where it differs from the default.
#[derive(Default)]
pub(crate) struct Retry {
    pub(crate) tries: Option<Given<u64>>,
    pub(crate) first: Option<Given<Duration>>,
    pub(crate) longest: Option<Given<Duration>>,
    pub(crate) explicit: bool,
    /// Something in it could not be read, so that what is missing here may have been given.
    pub(crate) incomplete: bool,
}

/// The value of an option, and the literal that says it.
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) literal: Lit,
}

/// What a payload derives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Derive {
    Serialize,
    Deserialize,
    JsonSchema,
}

impl Derive {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.segments.last()?.ident.to_string().as_str() {
            "Serialize" => Some(Self::Serialize),
            "Deserialize" => Some(Self::Deserialize),
            "JsonSchema" => Some(Self::JsonSchema),
            _ => None,
        }
    }
}

/// A payload field as a declaration names it: by its name on the wire.
pub(crate) struct FieldName {
    pub(crate) wire: String,
    pub(crate) span: Span,
}

/// `#[group(..)]`
pub(crate) struct Group {
    pub(crate) declared: Declared,
    pub(crate) replay_all: bool,
    pub(crate) members: Vec<Type>,
}

impl Args {
    /// The identity as text.
    pub(crate) fn id(&self) -> String {
        self.id.as_ref().map(LitStr::value).unwrap_or_default()
    }
}

impl Taken {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl Payload {
    /// The type of what `declared` carries.
    pub(crate) fn of(&self, declared: &Declared) -> Type {
        let ident = &declared.ident;
        self.ty.clone().unwrap_or_else(|| syn::parse_quote!(#ident))
    }
}

impl Declared {
    /// The name as text.
    pub(crate) fn name(&self) -> String {
        self.name.as_ref().map(LitStr::value).unwrap_or_default()
    }
}
