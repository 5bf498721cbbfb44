//! The kinds of declarations there are. A new kind begins here.
use syn::Path;

/// A kind of declaration, made by the inner attribute of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Event,
    Group,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Event, Self::Group];

    /// The name of the inner attribute.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Group => "group",
        }
    }

    /// How a declaration of this kind looks, for error messages.
    pub(crate) fn usage(self) -> &'static str {
        match self {
            Self::Event => "`#[event(\"orders.created\")] pub struct OrderCreated { … }`",
            Self::Group => {
                "`#[group(\"stock\")] pub struct Stock(orders::OrderCreated, orders::OrderCancelled);`"
            }
        }
    }

    /// What to say of one on another kind of item.
    pub(crate) fn wrong_item(self) -> String {
        let item = match self {
            Self::Event => "a struct or an enum",
            Self::Group => "a tuple struct",
        };
        format!("`#[{}]` belongs on {item}: {}", self.attribute(), self.usage())
    }

    /// The kind that an attribute's path names: `event`, `trellis::event`, or through the path
    /// that `crate = ..` gives.
    pub(crate) fn of(attribute: &Path, krate: &Path) -> Option<Self> {
        let mut path: Vec<String> = names(attribute);
        let last = path.pop()?;
        let ours = path.is_empty() || path == ["trellis"] || path == names(krate);
        Self::ALL.into_iter().find(|kind| ours && last == kind.attribute())
    }
}

fn names(path: &Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}
