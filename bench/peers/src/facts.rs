//! What a reader of the figures has to know: versions, settings, durability.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::{Connection, PgConnection};

use crate::Result;
use crate::contest::Figures;
use crate::peer::Peer;

const LOCK: &str = include_str!("../Cargo.lock");

/// All that is printed.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    settings: String,
    versions: BTreeMap<&'static str, &'static str>,
    durability: BTreeMap<&'static str, String>,
    #[serde(flatten)]
    figures: Figures,
}

impl Report {
    pub(crate) async fn new<P: Peer>(settings: P::Settings, figures: Figures, url: &str) -> Result<Self> {
        let versions = P::CRATES.iter().map(|name| Ok((*name, locked(LOCK, name)?)));
        let mut connection = PgConnection::connect(url).await?;
        let mut durability = BTreeMap::new();
        for (name, sql) in [("fsync", "SHOW fsync"), ("synchronous_commit", "SHOW synchronous_commit")] {
            durability.insert(name, sqlx::query_scalar(sql).fetch_one(&mut connection).await?);
        }
        let versions = versions.collect::<Result<_>>()?;
        Ok(Self { settings: settings.to_string(), versions, durability, figures })
    }
}

/// The version of the crate in the lock file that this was built with.
fn locked<'a>(lock: &'a str, name: &str) -> Result<&'a str> {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let rest = lock.split_once(&entry).map(|(_, rest)| rest);
    let version = rest.and_then(|rest| rest.split('"').next());
    version.ok_or_else(|| format!("{name} is not in the lock file").into())
}

#[cfg(test)]
mod tests {
    use super::{LOCK, locked};

    #[test]
    fn versions_are_read_from_the_lock_file() {
        let lock = "[[package]]\nname = \"apalis-core\"\nversion = \"1.2.0\"\n[[package]]\nname = \"apalis\"\nversion = \"1.0.0\"\n";
        assert_eq!(locked(lock, "apalis").unwrap(), "1.0.0");
        assert!(locked(lock, "other").is_err());
        assert!(locked(LOCK, "graphile_worker").unwrap().starts_with("0.14"));
    }
}
