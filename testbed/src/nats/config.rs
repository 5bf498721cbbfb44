//! What a nats-server is told: the options of tests, written as its configuration file.

use std::path::{Path, PathBuf};

/// How a server is run. The default is a JetStream server on a free port with a store of its own.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port; `None` takes a free one.
    pub port: Option<u16>,
    /// Where JetStream keeps its files; `None` is a temporary directory that goes with the server.
    pub store_dir: Option<PathBuf>,
    /// The largest message in bytes; `None` leaves the server's own limit (1 MiB).
    pub max_payload: Option<u32>,
    /// Writes each message to the disk before it is acknowledged, instead of every two minutes.
    pub sync_always: bool,
    /// Whether JetStream is on.
    pub jetstream: bool,
    /// More text for the end of the configuration file.
    pub extra_config: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: None,
            store_dir: None,
            max_payload: None,
            sync_always: false,
            jetstream: true,
            extra_config: String::new(),
        }
    }
}

impl Options {
    /// The configuration file for a server of this name.
    pub(super) fn config(&self, name: &str, port: u16, store_dir: &Path) -> String {
        let mut lines = vec![format!("server_name: \"{name}\""), format!("listen: \"127.0.0.1:{port}\"")];
        if let Some(bytes) = self.max_payload {
            lines.push(format!("max_payload: {bytes}"));
        }
        if self.jetstream {
            lines.push("jetstream {".into());
            lines.push(format!("  store_dir: \"{}\"", store_dir.display().to_string().replace('\\', "/")));
            if self.sync_always {
                lines.push("  sync_interval: always".into());
            }
            lines.push("}".into());
        }
        lines.push(self.extra_config.clone());
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_jetstream_server_on_loopback() {
        let config = Options::default().config("one", 20_001, Path::new("/tmp/store"));
        let expected = "server_name: \"one\"\nlisten: \"127.0.0.1:20001\"\njetstream {\n  store_dir: \"/tmp/store\"\n}\n\n";
        assert_eq!(config, expected);
    }

    #[test]
    fn every_option_is_written() {
        let options = Options {
            max_payload: Some(65_536),
            sync_always: true,
            extra_config: "write_deadline: \"2s\"".into(),
            ..Options::default()
        };
        let config = options.config("two", 20_002, Path::new(r"C:\temp\store"));
        for line in [
            "max_payload: 65536",
            "  sync_interval: always",
            "  store_dir: \"C:/temp/store\"",
            "write_deadline: \"2s\"",
        ] {
            assert!(config.lines().any(|written| written == line), "{line} is not in\n{config}");
        }
    }

    #[test]
    fn a_server_without_jetstream_has_no_store() {
        let options = Options { jetstream: false, ..Options::default() };
        assert!(!options.config("three", 20_003, Path::new("/tmp/store")).contains("jetstream"));
    }
}
