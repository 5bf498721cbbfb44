//! The services as programs: built by the cargo that runs this, found by what it says.
use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Error;

/// Variables that cargo sets for what it runs begin so.
const OF_A_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// The programs of the services, and of the mail server.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// Places orders.
    pub orders: PathBuf,
    /// Reserves stock.
    pub stock: PathBuf,
    /// Sends receipts.
    pub receipts: PathBuf,
    /// Takes their mails.
    pub mail_server: PathBuf,
}

impl Binaries {
    /// Build them, in the profile that this program was built in.
    ///
    /// # Errors
    /// They do not build.
    pub fn build() -> Result<Self, Error> {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // This package is named as well because the features of shared dependencies follow from all
        // packages that are named: so nothing is built a second time.
        let packages = ["orders-demo", "orders-service", "stock-service", "receipts-worker", "mail-server"];
        cargo.arg("build").args(packages.map(|package| format!("--package={package}")));
        cargo.arg("--message-format=json-render-diagnostics");
        cargo.args((!cfg!(debug_assertions)).then_some("--release"));
        // What the cargo that runs this package says of it: build scripts that read such variables
        // (ring's does) would run again, and all that depends on them would be built again.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| OF_A_PACKAGE.iter().any(|prefix| name.starts_with(prefix))) {
                cargo.env_remove(name);
            }
        }
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
        let built = cargo.current_dir(workspace).stderr(Stdio::inherit()).output()?;
        if !built.status.success() {
            return Err("the services do not build".into());
        }
        let mut programs = executables(&String::from_utf8_lossy(&built.stdout));
        let mut take = |name: &str| programs.remove(name).ok_or(format!("cargo built no {name}"));
        Ok(Self {
            orders: take("orders-service")?,
            stock: take("stock-service")?,
            receipts: take("receipts-worker")?,
            mail_server: take("mail-server")?,
        })
    }
}

/// The programs that cargo names in its messages, one JSON object per line.
fn executables(messages: &str) -> HashMap<String, PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let name = message.pointer("/target/name")?.as_str()?;
        Some((name.to_owned(), message.get("executable")?.as_str()?.into()))
    };
    messages.filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::executables;

    #[test]
    fn programs_are_found_among_other_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}
no JSON
{"reason":"compiler-artifact","target":{"name":"orders-service"},"executable":"/t/orders-service"}
{"reason":"build-finished","success":true}"#;
        let found = executables(messages);
        assert_eq!(found.len(), 1);
        assert_eq!(found["orders-service"].to_str(), Some("/t/orders-service"));
    }
}
