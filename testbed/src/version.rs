//! Versions as servers print them.

use std::fmt;

/// A version of a server; missing parts are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// The version `major.minor.patch`.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// The first word of `text` that looks like a version (`nats-server: v2.12.8`, `postgres (PostgreSQL) 18devel`).
    pub fn parse(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(Self::from_word)
    }

    fn from_word(word: &str) -> Option<Self> {
        let mut parts = word.strip_prefix('v').unwrap_or(word).split('.').map(leading_number);
        let major = parts.next()??;
        let mut next = || parts.next().flatten().unwrap_or(0);
        Some(Self { major, minor: next(), patch: next() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

fn leading_number(part: &str) -> Option<u32> {
    let digits = part.find(|character: char| !character.is_ascii_digit()).unwrap_or(part.len());
    part.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_print_them() {
        let printed = [
            ("nats-server: v2.12.8\n", Version::new(2, 12, 8)),
            ("nats-server: v2.15.0-preview.2", Version::new(2, 15, 0)),
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Version::new(15, 18, 0)),
            ("postgres (PostgreSQL) 18devel", Version::new(18, 0, 0)),
            ("2.10.26", Version::new(2, 10, 26)),
        ];
        for (text, version) in printed {
            assert_eq!(Version::parse(text), Some(version), "{text}");
        }
    }

    #[test]
    fn text_without_a_version_has_none() {
        assert_eq!(Version::parse("nats-server: version unknown"), None);
        assert_eq!(Version::parse(""), None);
    }

    #[test]
    fn versions_are_ordered_by_number_not_by_text() {
        assert!(Version::new(2, 9, 10) < Version::new(2, 11, 0));
        assert!(Version::new(15, 18, 0) < Version::new(18, 0, 0));
    }
}
