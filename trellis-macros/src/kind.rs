//! The kinds of declarations there are. A new kind begins here.
use syn::Path;

/// A kind of declaration, made by the inner attribute of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Event,
    Job,
    Group,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Event, Self::Job, Self::Group];

    /// The name of the inner attribute.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Job => "job",
            Self::Group => "group",
        }
    }

    /// How a declaration of this kind looks, for error messages.
    pub(crate) fn usage(self) -> &'static str {
        match self {
            Self::Event => "`#[event(\"orders.created\")] pub struct OrderCreated { … }`",
            Self::Job => "`#[job(\"orders.send_receipt\")] pub struct SendReceipt { … }`",
            Self::Group => {
                "`#[group(\"stock\")] pub struct Stock(orders::OrderCreated, orders::OrderCancelled);`"
            }
        }
    }

    /// What to say of one on another kind of item.
    pub(crate) fn wrong_item(self) -> String {
        let item = match self {
            Self::Event | Self::Job => "a struct or an enum",
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

/// The way from a context, or a contract module, to the handles of one kind of declarations.
pub(crate) struct Facade {
    /// What one of its declarations is, and so the field of the context, and the module of its types.
    pub(crate) noun: &'static str,
    pub(crate) with_article: &'static str,
    pub(crate) plural: &'static str,
    /// The facade as a value, in the contract module.
    pub(crate) constant: &'static str,
    /// The type of its handles.
    pub(crate) handle: &'static str,
    /// A name, for error messages.
    pub(crate) example: &'static str,
    /// A word that can end a name.
    pub(crate) last_word: &'static str,
}

impl Facade {
    pub(crate) const EVENT: Self = Self {
        noun: "event",
        with_article: "an event",
        plural: "events",
        constant: "EVENT",
        handle: "EventHandle",
        example: "orders.created",
        last_word: "changed",
    };
    pub(crate) const JOB: Self = Self {
        noun: "job",
        with_article: "a job",
        plural: "jobs",
        constant: "JOB",
        handle: "JobHandle",
        example: "orders.send_receipt",
        last_word: "process",
    };
    pub(crate) const ALL: [Self; 2] = [Self::EVENT, Self::JOB];
}

fn names(path: &Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}
