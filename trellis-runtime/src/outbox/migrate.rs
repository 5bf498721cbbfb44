//! Migrations: versioned artifacts per dialect, and one call that applies them.
use std::borrow::Cow;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, Pool, SqlSafeStr};

use crate::database::Database;
use crate::outbox::config::Tables;

/// One migration as text, for services that run migrations with a tool of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationArtifact {
    /// Increases by one.
    pub version: i64,
    /// What it does.
    pub description: &'static str,
    /// Applies it.
    pub up: String,
    /// Undoes it. Rows are lost.
    pub down: String,
    /// Unpadded hexadecimal SHA-384 of `up`, as [`migrate`] records it.
    pub checksum: String,
}

/// Create or upgrade the default tables. Safe to call at each start and from several processes.
///
/// Applied migrations and their checksums are recorded in a table of their own, beside your
/// application's `_sqlx_migrations`.
///
/// # Errors
/// The database refused, or an applied migration differs from the one in this version.
pub async fn migrate<D: Database>(pool: &Pool<D>) -> Result<(), MigrateError>
where
    D::Connection: Migrate,
{
    migrate_tables(pool, &Tables::default()).await
}

/// The same for other table names.
///
/// # Errors
/// As [`migrate`].
pub async fn migrate_tables<D: Database>(pool: &Pool<D>, tables: &Tables) -> Result<(), MigrateError>
where
    D::Connection: Migrate,
{
    const TRIES: usize = 5;
    let mut migrator =
        Migrator::with_migrations(migrations::<D>(tables).into_iter().map(into_sqlx).collect());
    migrator.dangerous_set_table_name(format!("{}_migrations", tables.outbox()));
    let mut last = None;
    // SQLite has no lock for migrations: of two processes that start at once, one fails and finds
    // everything done when it looks again.
    for attempt in 0..TRIES {
        match migrator.run(pool).await {
            Ok(()) => return Ok(()),
            Err(error @ (MigrateError::VersionMismatch(_) | MigrateError::VersionMissing(_))) => {
                return Err(error);
            }
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(std::time::Duration::from_millis(50 << attempt)).await;
    }
    last.map_or(Ok(()), Err)
}

/// All migrations of the dialect `D` for these tables, oldest first.
pub fn migrations<D: Database>(tables: &Tables) -> Vec<MigrationArtifact> {
    let texts: [(&str, &str); 2] = match D::NAME {
        "PostgreSQL" => [
            (
                include_str!("../../migrations/postgres_v1.up.sql"),
                include_str!("../../migrations/postgres_v1.down.sql"),
            ),
            (
                include_str!("../../migrations/postgres_v2.up.sql"),
                include_str!("../../migrations/postgres_v2.down.sql"),
            ),
        ],
        _ => [
            (
                include_str!("../../migrations/sqlite_v1.up.sql"),
                include_str!("../../migrations/sqlite_v1.down.sql"),
            ),
            (
                include_str!("../../migrations/sqlite_v2.up.sql"),
                include_str!("../../migrations/sqlite_v2.down.sql"),
            ),
        ],
    };
    let descriptions = ["trellis outbox and inbox", "outcomes of jobs"];
    let named = |sql: &str| sql.replace("{outbox}", tables.outbox()).replace("{inbox}", tables.inbox());
    (1..)
        .zip(descriptions.into_iter().zip(texts))
        .map(|(version, (description, (up, down)))| artifact(version, description, named(up), named(down)))
        .collect()
}

fn artifact(version: i64, description: &'static str, up: String, down: String) -> MigrationArtifact {
    let mut artifact = MigrationArtifact { version, description, up, down, checksum: String::new() };
    let checksum = into_sqlx(artifact.clone()).checksum;
    artifact.checksum = checksum.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect();
    artifact
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0')
}

fn into_sqlx(artifact: MigrationArtifact) -> Migration {
    let sql = AssertSqlSafe(artifact.up).into_sql_str();
    Migration::new(artifact.version, Cow::Borrowed(artifact.description), MigrationType::Simple, sql, false)
}
