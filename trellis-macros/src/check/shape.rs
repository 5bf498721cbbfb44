//! What a type looks like as JSON, as far as the source of the module tells.
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Fields, GenericArgument, Item, ItemStruct, Path, PathArguments, Type};

use super::scope::{self, Named};
use super::serde::Presence;
use super::{case, serde};

/// How a value of a type travels.
pub(super) enum Shape<'a> {
    Object(Object<'a>),
    /// A string or an integer.
    Scalar,
    Nullable,
    Enum,
    /// Something else, and what.
    Other(&'static str),
    /// It cannot be told from the source; the schema is checked in its place, later.
    Unknown,
}

pub(super) struct Object<'a> {
    pub(super) fields: Vec<Field<'a>>,
    /// `#[serde(flatten)]`: there are more fields.
    pub(super) flatten: Option<Span>,
}

pub(super) struct Field<'a> {
    pub(super) wire: String,
    pub(super) rust: String,
    pub(super) presence: Presence,
    /// Why it may be missing.
    pub(super) may_be_missing: Option<&'static str>,
    /// Its type, where that decides what it holds.
    pub(super) ty: Option<&'a Type>,
}

/// Nobody nests newtypes deeper, and a type that contains itself would never end.
const DEPTH: u8 = 8;

pub(super) fn of_type<'a>(ty: &Type, items: &'a [Item]) -> Shape<'a> {
    within(ty, items, DEPTH)
}

fn within<'a>(ty: &Type, items: &'a [Item], depth: u8) -> Shape<'a> {
    let Some(depth) = depth.checked_sub(1) else { return Shape::Unknown };
    match ty {
        Type::Group(group) => within(&group.elem, items, depth),
        Type::Paren(paren) => within(&paren.elem, items, depth),
        Type::Reference(reference) => within(&reference.elem, items, depth),
        Type::Tuple(tuple) if tuple.elems.is_empty() => Shape::Other("null"),
        Type::Array(_) | Type::Slice(_) | Type::Tuple(_) => Shape::Other("an array"),
        Type::Path(path) if path.qself.is_none() => match scope::resolve(&path.path, items) {
            Named::Item(item) => definition(item, items, depth),
            Named::Std(name) => standard(&name, &path.path, items, depth),
            Named::Elsewhere => Shape::Unknown,
        },
        _ => Shape::Unknown,
    }
}

fn standard<'a>(name: &str, path: &Path, items: &'a [Item], depth: u8) -> Shape<'a> {
    match name {
        "String" | "str" | "char" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16"
        | "i32" | "i64" | "i128" | "isize" => Shape::Scalar,
        "bool" => Shape::Other("a boolean"),
        "f32" | "f64" => Shape::Other("a fraction"),
        "Vec" | "VecDeque" | "LinkedList" | "BinaryHeap" | "HashSet" | "BTreeSet" => Shape::Other("an array"),
        "HashMap" | "BTreeMap" => Shape::Other("an object"),
        "Option" => Shape::Nullable,
        "Box" | "Rc" | "Arc" | "Cow" => argument(path).map_or(Shape::Unknown, |ty| within(ty, items, depth)),
        _ => Shape::Unknown,
    }
}

/// The type in the brackets.
fn argument(path: &Path) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

fn definition<'a>(item: &'a Item, items: &'a [Item], depth: u8) -> Shape<'a> {
    match item {
        Item::Struct(item) if serde::derives_serialize(&item.attrs) => structure(item, items, depth),
        Item::Enum(item) if serde::derives_serialize(&item.attrs) => Shape::Enum,
        _ => Shape::Unknown,
    }
}

fn structure<'a>(item: &'a ItemStruct, items: &'a [Item], depth: u8) -> Shape<'a> {
    let container = serde::container(&item.attrs);
    let fields: Vec<(serde::Field, &syn::Field)> =
        item.fields.iter().map(|field| (serde::field(&field.attrs), field)).collect();
    if container.uncertain || fields.iter().any(|(serde, _)| serde.uncertain) {
        return Shape::Unknown;
    }
    if let Some(ty) = &container.into {
        return within(ty, items, depth);
    }
    let mut travelling = fields.iter().filter(|(serde, _)| serde.presence != Presence::Never);
    match (&item.fields, travelling.next(), travelling.next()) {
        (Fields::Unit, ..) => Shape::Other("null"),
        // A newtype travels as what is inside of it.
        (Fields::Unnamed(all), Some((serde, field)), None) if all.unnamed.len() == 1 => {
            inside(serde, field, items, depth)
        }
        (Fields::Named(_), Some((serde, field)), None) if container.transparent => {
            inside(serde, field, items, depth)
        }
        (Fields::Unnamed(_), ..) => Shape::Other("an array"),
        (Fields::Named(_), ..) => object(&container, &fields),
    }
}

fn inside<'a>(serde: &serde::Field, field: &syn::Field, items: &'a [Item], depth: u8) -> Shape<'a> {
    if serde.custom { Shape::Unknown } else { within(&field.ty, items, depth) }
}

fn object<'a>(container: &serde::Container, fields: &[(serde::Field, &'a syn::Field)]) -> Shape<'a> {
    let tag = container.tag.iter().map(|tag| Field {
        wire: tag.clone(),
        rust: tag.clone(),
        presence: Presence::Always,
        may_be_missing: None,
        ty: None,
    });
    let named = fields.iter().map(|(serde, field)| named(serde, field, container.rename_all.as_deref()));
    let flatten = fields.iter().find_map(|(serde, _)| serde.flatten);
    match tag.map(Some).chain(named).collect() {
        Some(fields) => Shape::Object(Object { fields, flatten }),
        None => Shape::Unknown,
    }
}

fn named<'a>(serde: &serde::Field, field: &'a syn::Field, rename_all: Option<&str>) -> Option<Field<'a>> {
    let rust = field.ident.as_ref()?.unraw().to_string();
    let wire = match (&serde.rename, rename_all) {
        (Some(name), _) => name.clone(),
        (None, Some(rule)) => case::apply(rule, &rust)?,
        (None, None) => rust.clone(),
    };
    let under_cfg = field.attrs.iter().any(|attr| attr.path().is_ident("cfg"));
    let may_be_missing = match (serde.presence, under_cfg) {
        (Presence::Sometimes, _) => Some("`skip_serializing_if` may leave it out"),
        (_, true) => Some("`#[cfg]` may leave it out"),
        _ => None,
    };
    let ty = (!serde.custom).then_some(&field.ty);
    Some(Field { wire, rust, presence: serde.presence, may_be_missing, ty })
}
