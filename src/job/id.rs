//! The identity of a job.
use std::fmt;

/// Identity of one job among those of its declaration: 1 to 64 ASCII letters, digits, `_` and `-`.
///
/// It is one token of the job's subjects. The engine makes a ULID where none was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(String);

/// A text that cannot be a [`JobId`].
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("job id {0:?} must be 1 to 64 ASCII letters, digits, `_` and `-`")]
pub struct InvalidJobId(pub String);

impl JobId {
    /// The longest id, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Check `text`.
    ///
    /// # Errors
    /// The text is empty, too long, or has another character.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidJobId> {
        let text = text.into();
        let fits = (1..=Self::MAX_LEN).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            Ok(Self(text))
        } else {
            Err(InvalidJobId(text))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for JobId {
    type Err = InvalidJobId;
    fn from_str(text: &str) -> Result<Self, InvalidJobId> {
        Self::new(text)
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::JobId;

    #[test]
    fn an_id_is_one_plain_token() {
        for good in ["a", "01J8ZQ-x_7", &"a".repeat(64)] {
            assert_eq!(JobId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a.b", "a b", "*", ">", "ü", "a:b", &"a".repeat(65)] {
            assert!(JobId::new(bad).is_err(), "{bad:?}");
        }
    }
}
