//! What the demo and the proofs share: the orders example on real servers, and its books.
//!
//! [`Stage`] runs the services as processes that can be killed. [`Expected`] says, from the input alone
//! and with no code of the services, what must be in the books; [`Seen`] is what the databases, the
//! streams and the mail server say; [`Books`] compares the two.

mod binaries;
mod books;
mod database;
mod expect;
mod role;
mod seen;
mod stage;
mod watch;

pub use binaries::Binaries;
pub use books::Books;
pub use database::{Database, Kind};
pub use expect::{Expected, Order};
pub use role::Role;
pub use seen::{Event, Job, Mail, Mails, Receipt, Reservation, Seen, Shelf};
pub use stage::{Settings, Stage};
pub use watch::{Counts, Watch};

/// Why something could not be done: to be printed.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
