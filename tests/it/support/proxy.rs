//! A TCP proxy whose connections can be made to hang, as a network that swallows packets does.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Proxy {
    /// The URL it was made for, through the proxy.
    pub url: String,
    generation: Arc<AtomicU64>,
    listening: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// In front of the host and port of a `postgres://user@host:port/database` URL.
    pub async fn start(url: &str) -> Self {
        let (before, rest) = url.split_once('@').unwrap();
        let (target, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{before}@{}/{database}", listener.local_addr().unwrap());
        let generation = Arc::new(AtomicU64::new(0));
        let listening = tokio::spawn(accept(listener, target.to_owned(), Arc::clone(&generation)));
        Self { url, generation, listening }
    }

    /// From now on nothing passes on the connections that are open. Later ones work.
    pub fn hang_open_connections(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn accept(listener: TcpListener, target: String, generation: Arc<AtomicU64>) {
    while let Ok((inbound, _)) = listener.accept().await {
        let outbound = TcpStream::connect(&target).await.unwrap();
        let (in_read, in_write) = inbound.into_split();
        let (out_read, out_write) = outbound.into_split();
        let born = generation.load(Ordering::SeqCst);
        tokio::spawn(pump(in_read, out_write, born, Arc::clone(&generation)));
        tokio::spawn(pump(out_read, in_write, born, Arc::clone(&generation)));
    }
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    born: u64,
    generation: Arc<AtomicU64>,
) {
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if generation.load(Ordering::SeqCst) != born {
            // Both halves stay open, so that neither side learns of it.
            std::future::pending::<()>().await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
