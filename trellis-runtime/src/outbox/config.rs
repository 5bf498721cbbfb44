//! What can be set on an outbox.
use std::time::Duration;

/// Limits and times of an outbox and its dispatchers.
///
/// Fields may be added: write `OutboxConfig { .., ..Default::default() }`.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxConfig {
    /// Most bytes of one message, body and headers together. Default 1 MiB, the server's own default.
    pub max_message_bytes: usize,
    /// Most rows of one claim. Default 500, at most 1000.
    pub page: u16,
    /// How often a dispatcher looks without being woken. Default 1 s.
    pub poll: Duration,
    /// How long a claim holds its rows. Default 30 s; at least four times `ack_timeout`, at most 1 h.
    pub lease: Duration,
    /// How long a publish waits for its acknowledgement. Default 5 s.
    pub ack_timeout: Duration,
    /// Back-off after the first failure of a row. Default 1 s; it doubles with each further one.
    pub backoff_first: Duration,
    /// The longest back-off. Default 5 min, at most 1 h.
    pub backoff_longest: Duration,
    /// Failures after which a row is dead. Default 20.
    pub max_attempts: u32,
    /// What a dead row means for the rows of its ordering key. Set alike in all processes that
    /// share the table.
    pub dead_key: DeadKey,
    /// How long after its first send a job whose outcome is unknown may be sent again. Default 24 h; at
    /// least four times `lease`. Later it is dead with "outcome unknown" in its reason, unless its log
    /// still tells.
    ///
    /// Never longer than the job retention's floor, `JobRetention::at_least`: an earlier send may have
    /// made the job, which ran, and whose log is gone, so that a later one would make it run twice.
    pub job_horizon: Duration,
    /// How long the outcome of a job's submission is kept after it was decided; as long, the same id
    /// with the same payload yields the row that is there. Default 24 h.
    pub job_outcome_retention: Duration,
}

/// A due time further ahead than this was made by a clock that has been set back since. The same for
/// all processes, whatever their settings: none takes what another one still holds.
pub(crate) const HORIZON: Duration = Duration::from_secs(3600);
/// The most rows of a page.
const MAX_PAGE: u16 = 1000;

/// What a dead row means for the later rows of its ordering key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeadKey {
    /// They wait until it is redriven or removed: order is kept.
    #[default]
    Block,
    /// They go on without it.
    Skip,
}

/// A configuration that cannot work.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("outbox configuration: {0}")]
pub struct InvalidOutboxConfig(pub String);

impl Default for OutboxConfig {
    fn default() -> Self {
        Self {
            max_message_bytes: 1024 * 1024,
            page: 500,
            poll: Duration::from_secs(1),
            lease: Duration::from_secs(30),
            ack_timeout: Duration::from_secs(5),
            backoff_first: Duration::from_secs(1),
            backoff_longest: Duration::from_secs(300),
            max_attempts: 20,
            dead_key: DeadKey::Block,
            job_horizon: Duration::from_secs(24 * 3600),
            job_outcome_retention: Duration::from_secs(24 * 3600),
        }
    }
}

impl OutboxConfig {
    /// # Errors
    /// A limit is zero, or times do not fit together.
    pub(crate) fn check(&self) -> Result<(), InvalidOutboxConfig> {
        let problem = if self.page == 0 {
            "`page` must be at least 1"
        } else if self.max_attempts == 0 {
            "`max_attempts` must be at least 1"
        } else if self.poll.is_zero() || self.ack_timeout.is_zero() {
            "`poll` and `ack_timeout` must be longer than zero"
        } else if self.lease < self.ack_timeout * 4 {
            "`lease` must be at least four times `ack_timeout`, so that a page is settled within its lease"
        } else if self.backoff_first > self.backoff_longest {
            "`backoff_first` must not exceed `backoff_longest`"
        } else if self.lease > HORIZON || self.backoff_longest > HORIZON {
            "`lease` and `backoff_longest` must not exceed one hour"
        } else if self.job_horizon < self.lease * 4 {
            "`job_horizon` must be at least four times `lease`, so that a job can be sent again"
        } else if self.job_outcome_retention.is_zero() {
            "`job_outcome_retention` must be longer than zero"
        } else if self.page > MAX_PAGE {
            "`page` must not exceed 1000, so that a page is settled within its lease"
        } else {
            return Ok(());
        };
        Err(InvalidOutboxConfig(problem.to_owned()))
    }
}

/// Where the rows are. The default names suit one outbox per database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    outbox: String,
    inbox: String,
}

/// A text that cannot be a table's name here.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("table name {0:?} must be a letter or `_`, then letters, digits and `_`, at most 40 in all")]
pub struct InvalidTableName(pub String);

impl Default for Tables {
    fn default() -> Self {
        Self { outbox: "trellis_outbox".to_owned(), inbox: "trellis_inbox".to_owned() }
    }
}

impl Tables {
    /// Other names.
    ///
    /// # Errors
    /// A name is no plain identifier, or both are the same.
    pub fn new(outbox: impl Into<String>, inbox: impl Into<String>) -> Result<Self, InvalidTableName> {
        let (outbox, inbox) = (outbox.into(), inbox.into());
        for name in [&outbox, &inbox] {
            let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !first || !rest || name.len() > 40 {
                return Err(InvalidTableName(name.clone()));
            }
        }
        if outbox.eq_ignore_ascii_case(&inbox) {
            Err(InvalidTableName(inbox))
        } else {
            Ok(Self { outbox, inbox })
        }
    }

    /// The table of messages to be sent.
    pub fn outbox(&self) -> &str {
        &self.outbox
    }

    /// The table of deliveries that were handled.
    pub fn inbox(&self) -> &str {
        &self.inbox
    }

    /// A stable 64-bit id for a PostgreSQL advisory lock of this outbox.
    pub(crate) fn lock_id(&self, purpose: &str, of: &str) -> i64 {
        // FNV-1a, 64 bit: <http://www.isthe.com/chongo/tech/comp/fnv/>
        let bytes = [self.outbox.as_str(), "\0", purpose, "\0", of];
        let hash =
            bytes.iter().flat_map(|part| part.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        hash.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::{OutboxConfig, Tables};
    use std::time::Duration;

    #[test]
    fn table_names_are_plain_identifiers() {
        assert!(Tables::new("a_1", "_b").is_ok());
        for bad in ["", "1a", "a b", "a;drop", "a\"", "a.b", &"x".repeat(41)] {
            assert!(Tables::new(bad, "ok").is_err(), "{bad:?}");
        }
        assert!(Tables::new("same", "SAME").is_err());
    }

    #[test]
    fn lock_ids_differ_by_table_purpose_and_key() {
        let (a, b) = (Tables::default(), Tables::new("other", "inbox").unwrap());
        let ids =
            [a.lock_id("key", "x"), a.lock_id("key", "y"), a.lock_id("heads", "x"), b.lock_id("key", "x")];
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(ids.iter().position(|other| other == id), Some(at));
        }
    }

    #[test]
    fn a_lease_that_a_page_could_outlast_is_refused() {
        let config = OutboxConfig { lease: Duration::from_secs(19), ..OutboxConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("four times"));
        assert_eq!(OutboxConfig::default().check(), Ok(()));
    }
}
