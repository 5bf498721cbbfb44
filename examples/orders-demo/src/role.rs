//! The processes of the example.

/// One of the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The mail server, which is no service: it is never killed, because its memory is one of the books.
    MailServer,
    /// Places orders.
    Placing,
    /// Handles their events.
    Handling,
    /// Works on the jobs of their receipts.
    Mailing,
}

impl Role {
    /// All, in the order in which they are started.
    pub const ALL: [Self; 4] = [Self::MailServer, Self::Placing, Self::Handling, Self::Mailing];
    /// Those that may be killed at any time.
    pub const SERVICES: [Self; 3] = [Self::Placing, Self::Handling, Self::Mailing];

    /// In a sentence: the … process.
    pub fn name(self) -> &'static str {
        match self {
            Self::MailServer => "mail server",
            Self::Placing => "placing",
            Self::Handling => "handling",
            Self::Mailing => "mailing",
        }
    }
}
