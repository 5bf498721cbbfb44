//! Items of the caller that hold a name which the expansion needs.
use syn::{Ident, Item, UseTree};

use crate::model::Taken;
use crate::report::Report;

pub(super) fn taken(items: &[Item], report: &mut Report) -> Taken {
    let mut taken = Taken::default();
    for item in items {
        match item {
            Item::Use(item) => imports(&item.tree, &mut taken, report),
            _ => {
                if let Some(ident) =
                    type_name(item).or_else(|| value_name(item).filter(|ident| *ident == "EVENT"))
                {
                    take(ident, &mut taken, report);
                }
            }
        }
    }
    taken
}

/// What is imported as `Contract` or `EVENT` can only be a type or a constant; what is imported as
/// `event` is most likely a macro, which does not collide.
fn imports(tree: &UseTree, taken: &mut Taken, report: &mut Report) {
    match tree {
        UseTree::Path(path) => imports(&path.tree, taken, report),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imports(tree, taken, report)),
        UseTree::Name(name) if name.ident != "event" => take(&name.ident, taken, report),
        UseTree::Rename(name) if name.rename != "event" => take(&name.rename, taken, report),
        UseTree::Name(_) | UseTree::Rename(_) | UseTree::Glob(_) => {}
    }
}

fn take(ident: &Ident, taken: &mut Taken, report: &mut Report) {
    let (slot, what) = match ident.to_string().trim_start_matches("r#") {
        "Contract" => (&mut taken.marker, "the type that stands for the contract"),
        "event" => (&mut taken.facade, "the facade of its events"),
        "EVENT" => (&mut taken.constant, "the facade of its events, as a value"),
        _ => return,
    };
    *slot = true;
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
