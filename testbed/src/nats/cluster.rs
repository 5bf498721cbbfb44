//! Three nats-servers that replicate their streams: started, killed one by one, started again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{NatsBinary, Options, Server, monitor};
use crate::Error;
use crate::command::last_lines;
use crate::deadline::poll;
use crate::port::{free_port, while_ports_are_taken};

/// Without a leader, a majority elects one within 4 to 9 seconds; several tries may be needed.
pub(super) const ELECTION_LIMIT: Duration = Duration::from_mins(1);

const NODES: usize = 3;

/// Three nats-servers on 127.0.0.1 whose JetStream is one. Dropping it kills them and removes their directories.
///
/// A stream named [`Cluster::KEPT`] with three replicas is there from the start and stays: that it could be made is
/// what says that others can be. It also keeps an error away that a server gives now and then to an account that makes
/// a stream in the moment in which it loses its last one.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    monitors: Vec<u16>,
}

impl Cluster {
    /// The name of the stream that is there from the start.
    pub const KEPT: &str = "TESTBED";

    /// Starts three nodes and waits until a stream with three replicas could be made.
    ///
    /// The options are those of each node; a store directory gets a directory in it for each node.
    pub fn start(binary: &NatsBinary, options: &Options) -> Result<Self, Error> {
        if options.port.is_some() {
            return Err(Error::Port { reason: "three nodes cannot listen on one".into() });
        }
        let cluster = while_ports_are_taken(|| Self::start_nodes(binary, options))?;
        if options.jetstream {
            cluster.keep_a_stream()?;
        }
        Ok(cluster)
    }

    /// The URLs for clients, one for each node, whether it runs or not.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The nodes, each to be stopped, killed, suspended and started again on its own.
    pub fn nodes_mut(&mut self) -> &mut [Server] {
        &mut self.nodes
    }

    /// The node of this name, as leaders are told.
    pub fn node_mut(&mut self, name: &str) -> Result<&mut Server, Error> {
        let node = self.nodes.iter_mut().find(|node| node.name() == name);
        node.ok_or_else(|| Error::NoSuchNode { name: name.into() })
    }

    /// Starts the nodes that do not run and waits until all of them answer and have caught up.
    ///
    /// After the end of two nodes or more this is the way: one node alone waits for a majority until it gives up.
    pub fn restart(&mut self) -> Result<(), Error> {
        for node in self.nodes.iter_mut().filter(|node| !node.is_running()) {
            node.launch_on(node.port())?;
        }
        self.wait_until_ready()?;
        self.wait_until_caught_up()
    }

    /// Waits until each node that runs has caught up and each stream has a leader: then another one can be killed
    /// without loss.
    ///
    /// The leaders are looked for, too, because of what a server says of a stream that has none at the moment: that it
    /// is there, and empty.
    pub fn wait_until_caught_up(&self) -> Result<(), Error> {
        let running = || self.nodes.iter().zip(&self.monitors).filter(|(node, _)| node.is_running());
        let seen = poll(ELECTION_LIMIT, || {
            Ok(running().all(|(_, monitor)| monitor::is_healthy(*monitor)).then_some(()))
        })?;
        seen.ok_or_else(|| self.out_of_time("all nodes up to date"))?;
        self.stream_names()?.iter().try_for_each(|stream| self.leader_of_stream(stream).map(drop))
    }

    fn start_nodes(binary: &NatsBinary, options: &Options) -> Result<Self, Error> {
        let (routes, monitors) = (free_ports()?, free_ports()?);
        let name = unique_name();
        let mut cluster = Self { nodes: Vec::with_capacity(NODES), monitors: monitors.clone() };
        for (index, (route, monitor)) in routes.iter().zip(&monitors).enumerate() {
            let member = membership(&name, *route, &routes, *monitor);
            let options = Options {
                store_dir: options.store_dir.as_ref().map(|parent| parent.join(index.to_string())),
                extra_config: format!("{member}{}", options.extra_config),
                ..options.clone()
            };
            let mut node = Server::prepare(binary, options, ELECTION_LIMIT)?;
            node.launch_on(free_port()?)?;
            cluster.nodes.push(node);
        }
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    fn wait_until_ready(&mut self) -> Result<(), Error> {
        self.nodes.iter_mut().try_for_each(Server::wait_until_ready)
    }

    pub(super) fn out_of_time(&self, awaited: impl Into<String>) -> Error {
        let log_of = |node: &Server| {
            let log =
                std::fs::read_to_string(node.log()).unwrap_or_else(|error| format!("(no log: {error})"));
            format!("{}:\n{}", node.name(), last_lines(&log, 8))
        };
        let log = self.nodes.iter().map(log_of).collect::<Vec<_>>().join("\n");
        Error::OutOfTime {
            name: "nats-server cluster".into(),
            awaited: awaited.into(),
            limit: ELECTION_LIMIT,
            log,
        }
    }
}

fn free_ports() -> Result<Vec<u16>, Error> {
    (0..NODES).map(|_| free_port()).collect()
}

/// What the configuration of a node says of its cluster.
fn membership(cluster: &str, route: u16, routes: &[u16], monitor: u16) -> String {
    let routes: Vec<String> = routes.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
    let routes = routes.join(", ");
    format!(
        "http: \"127.0.0.1:{monitor}\"\ncluster {{\n  name: \"{cluster}\"\n  listen: \"127.0.0.1:{route}\"\n  routes: [{routes}]\n}}\n"
    )
}

/// Unlike that of any other cluster: nodes that find each other by mistake refuse each other by it.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("testbed-cluster-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_knows_its_cluster_and_the_routes_of_all() {
        let expected = "http: \"127.0.0.1:23\"\ncluster {\n  name: \"one\"\n  listen: \"127.0.0.1:11\"\n  \
                        routes: [\"nats://127.0.0.1:11\", \"nats://127.0.0.1:12\"]\n}\n";
        assert_eq!(membership("one", 11, &[11, 12], 23), expected);
    }
}
