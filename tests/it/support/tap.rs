//! A TCP proxy in front of a nats-server: what the server says can be lost, connections can be cut.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Tap {
    /// The URL of the server, through the proxy.
    pub url: String,
    valve: Arc<Valve>,
    listening: tokio::task::JoinHandle<()>,
}

struct Valve {
    mute: AtomicBool,
    cut: watch::Sender<bool>,
}

impl Tap {
    /// In front of the server at a `nats://host:port` URL.
    pub async fn start(url: &str) -> Self {
        let target = url.trim_start_matches("nats://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let valve = Arc::new(Valve { mute: AtomicBool::new(false), cut: watch::Sender::new(false) });
        let listening = tokio::spawn(accept(listener, target, Arc::clone(&valve)));
        Self { url, valve, listening }
    }

    /// From now on what the server says is lost; what it is told still arrives.
    pub fn mute(&self) {
        self.valve.mute.store(true, Ordering::SeqCst);
    }

    /// Close all connections, and refuse new ones.
    pub fn cut(&self) {
        self.valve.cut.send_replace(true);
    }

    /// From now on connections can be made again, and everything passes.
    pub fn mend(&self) {
        self.valve.mute.store(false, Ordering::SeqCst);
        self.valve.cut.send_replace(false);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, target: String, valve: Arc<Valve>) {
    while let Ok((inbound, _)) = listener.accept().await {
        if *valve.cut.borrow() {
            continue;
        }
        let Ok(outbound) = TcpStream::connect(&target).await else { continue };
        let (in_read, in_write) = inbound.into_split();
        let (out_read, out_write) = outbound.into_split();
        let mut cut = valve.cut.subscribe();
        let valve = Arc::clone(&valve);
        tokio::spawn(async move {
            tokio::select! {
                () = pump(in_read, out_write, None) => {}
                () = pump(out_read, in_write, Some(&valve)) => {}
                _ = cut.wait_for(|cut| *cut) => {}
            }
        });
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, valve: Option<&Valve>) {
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if valve.is_some_and(|valve| valve.mute.load(Ordering::SeqCst)) {
            continue;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
