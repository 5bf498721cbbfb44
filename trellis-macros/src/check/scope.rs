//! What a type's name stands for inside the contract module.
use syn::ext::IdentExt;
use syn::{Ident, Item, Path, UseTree};

use super::reserved;

/// What a path leads to.
pub(super) enum Named<'a> {
    /// The one item of that name in the module.
    Item(&'a Item),
    /// The type of that name in the prelude or the standard library.
    Std(String),
    /// Out of sight, or not certain.
    Elsewhere,
}

pub(super) fn resolve<'a>(path: &Path, items: &'a [Item]) -> Named<'a> {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect();
    match names.as_slice() {
        [first, .., last] if matches!(first.as_str(), "std" | "core" | "alloc") => Named::Std(last.clone()),
        [name] if path.leading_colon.is_none() => local(name, items),
        [module, name] if module == "self" => local(name, items),
        _ => Named::Elsewhere,
    }
}

fn local<'a>(name: &str, items: &'a [Item]) -> Named<'a> {
    let mut found =
        items.iter().filter(|item| reserved::type_name(item).is_some_and(|ident| ident.unraw() == name));
    match (found.next(), found.next()) {
        (Some(item), None) => return Named::Item(item),
        // Two definitions under different `#[cfg]`s.
        (Some(_), Some(_)) => return Named::Elsewhere,
        (None, _) => {}
    }
    let mut imports = items.iter().filter_map(|item| match item {
        Item::Use(item) => import(&item.tree, name, None),
        _ => None,
    });
    match imports.next() {
        Some(root) if root != "std" && root != "core" && root != "alloc" => Named::Elsewhere,
        _ => Named::Std(name.to_owned()),
    }
}

/// The crate, or whatever the path begins with, that `name` is imported from.
fn import(tree: &UseTree, name: &str, root: Option<&Ident>) -> Option<Ident> {
    match tree {
        UseTree::Path(path) => import(&path.tree, name, root.or(Some(&path.ident))),
        UseTree::Group(group) => group.items.iter().find_map(|tree| import(tree, name, root)),
        UseTree::Name(leaf) if leaf.ident.unraw() == name => Some(root.unwrap_or(&leaf.ident).clone()),
        // `use std::fmt::Result as Option;` is a name of its own.
        UseTree::Rename(leaf) if leaf.rename.unraw() == name => Some(leaf.rename.clone()),
        _ => None,
    }
}
