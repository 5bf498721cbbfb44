//! How a cluster is run.

/// Options of a cluster. The default is PostgreSQL's own configuration with more connections.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port; `None` takes a free one.
    pub port: Option<u16>,
    /// How many connections it accepts.
    pub max_connections: u32,
    /// Whether it waits for the disk at all. Off, only a crash of the machine loses data, not one of the server.
    pub fsync: bool,
    /// Whether a commit waits for the write-ahead log.
    pub synchronous_commit: bool,
    /// Other settings, by name.
    pub settings: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { port: None, max_connections: 200, fsync: true, synchronous_commit: true, settings: Vec::new() }
    }
}

impl Options {
    /// For tests: what it says is the same as by default, but it does not wait for the disk.
    pub fn for_tests() -> Self {
        Self { fsync: false, ..Self::default() }
    }

    /// The settings as arguments of `postgres`.
    pub(super) fn args(&self, port: u16, sockets: &str) -> Vec<String> {
        let on_off = |on: bool| if on { "on" } else { "off" }.to_string();
        let own = [
            ("listen_addresses", "127.0.0.1".to_string()),
            ("port", port.to_string()),
            ("unix_socket_directories", sockets.to_string()),
            ("max_connections", self.max_connections.to_string()),
            ("fsync", on_off(self.fsync)),
            ("synchronous_commit", on_off(self.synchronous_commit)),
        ];
        let own = own.into_iter().map(|(name, value)| format!("{name}={value}"));
        let others = self.settings.iter().map(|(name, value)| format!("{name}={value}"));
        own.chain(others).flat_map(|setting| ["-c".to_string(), setting]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_an_argument_and_own_settings_come_last() {
        let settings = vec![("wal_level".to_string(), "logical".to_string())];
        let options = Options { synchronous_commit: false, settings, ..Options::for_tests() };
        let expected = "-c listen_addresses=127.0.0.1 -c port=20005 -c unix_socket_directories=/tmp/s \
                        -c max_connections=200 -c fsync=off -c synchronous_commit=off -c wal_level=logical";
        assert_eq!(options.args(20_005, "/tmp/s").join(" "), expected);
    }
}
