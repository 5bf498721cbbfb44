//! Items of the caller that hold a name which the expansion needs.
use syn::ext::IdentExt;
use syn::{Ident, Item, UseTree};

use crate::kind::Facade;
use crate::model::Taken;
use crate::report::Report;

pub(super) fn taken(items: &[Item], report: &mut Report) -> Taken {
    let mut taken = Taken::default();
    for item in items {
        match item {
            Item::Use(item) => imports(&item.tree, &mut taken, report),
            _ => {
                if let Some(ident) =
                    type_name(item).or_else(|| value_name(item).filter(|ident| !is_module(ident)))
                {
                    take(ident, &mut taken, report);
                }
            }
        }
    }
    taken
}

/// What is imported as `Contract` or `EVENT` can only be a type or a constant; what is imported as
/// `event` or `job` is most likely a macro, which does not collide.
fn imports(tree: &UseTree, taken: &mut Taken, report: &mut Report) {
    match tree {
        UseTree::Path(path) => imports(&path.tree, taken, report),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imports(tree, taken, report)),
        UseTree::Name(name) if !is_module(&name.ident) => take(&name.ident, taken, report),
        UseTree::Rename(name) if !is_module(&name.rename) => take(&name.rename, taken, report),
        UseTree::Name(_) | UseTree::Rename(_) | UseTree::Glob(_) => {}
    }
}

/// Whether the module of a facade is called so.
fn is_module(ident: &Ident) -> bool {
    Facade::ALL.iter().any(|facade| ident.unraw() == facade.noun)
}

fn take(ident: &Ident, taken: &mut Taken, report: &mut Report) {
    let name = ident.unraw().to_string();
    let facade = |Facade { noun, plural, constant, .. }: &Facade| {
        let value = (name == *constant).then(|| format!("the facade of its {plural}, as a value"));
        value.or_else(|| (name == *noun).then(|| format!("the facade of its {plural}")))
    };
    let what = if name == "Contract" {
        "the type that stands for the contract".to_owned()
    } else {
        let Some(what) = Facade::ALL.iter().find_map(facade) else { return };
        what
    };
    taken.0.insert(name);
    let message =
        format!("`{ident}` is what `#[trellis::contract]` calls {what}: choose another name for this");
    report.error(ident, message);
}

pub(super) fn type_name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Struct(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::TraitAlias(item) => Some(&item.ident),
        Item::Mod(item) => Some(&item.ident),
        Item::ExternCrate(item) => Some(item.rename.as_ref().map_or(&item.ident, |(_, rename)| rename)),
        _ => None,
    }
}

fn value_name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Static(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        _ => None,
    }
}
