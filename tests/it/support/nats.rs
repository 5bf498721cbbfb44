//! A nats-server of a test's own.
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use futures_util::StreamExt;
use testbed::nats::{Options, Server, find};
use trellis_runtime::broker::NatsBroker;
use trellis_runtime::wire::Environment;

pub struct Nats {
    pub server: Server,
    pub client: async_nats::Client,
    pub context: jetstream::Context,
}

impl Nats {
    /// Start one and connect.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    pub async fn start_with(options: Options) -> Self {
        Self::on(Server::start(&find().unwrap(), options).unwrap()).await
    }

    /// Connect to a server that was started otherwise.
    pub async fn on(server: Server) -> Self {
        let client = connect(server.url()).await;
        let context = jetstream::new(client.clone());
        Self { server, client, context }
    }

    /// With the event stream, as a host would make it.
    pub async fn with_event_stream() -> Self {
        let nats = Self::start().await;
        nats.create_event_stream().await;
        nats
    }

    pub async fn create_event_stream(&self) {
        let none = Environment::NONE;
        let config = jetstream::stream::Config {
            name: none.event_stream(),
            subjects: vec![none.event_stream_subjects()],
            duplicate_window: Duration::from_secs(120),
            metadata: [("trellis.made_by".to_owned(), "trellis.v1".to_owned())].into(),
            ..Default::default()
        };
        self.context.create_stream(config).await.unwrap();
    }

    pub fn broker(&self) -> Arc<NatsBroker> {
        Arc::new(NatsBroker::new(
            self.client.clone(),
            Environment::NONE.event_stream(),
            Duration::from_secs(5),
        ))
    }

    /// Messages in the event stream.
    pub async fn stored(&self) -> u64 {
        self.count(&Environment::NONE.event_stream()).await
    }

    pub async fn count(&self, stream: &str) -> u64 {
        match self.context.get_stream(stream).await {
            Ok(stream) => stream.cached_info().state.messages,
            Err(_) => 0,
        }
    }

    /// What the server says of a consumer on the event stream.
    pub async fn consumer(&self, name: &str) -> jetstream::consumer::Info {
        let stream = self.context.get_stream(Environment::NONE.event_stream()).await.unwrap();
        stream.consumer_info(name).await.unwrap()
    }

    /// All messages of a stream, in order.
    pub async fn messages(&self, stream: &str) -> Vec<jetstream::Message> {
        let stream = self.context.get_stream(stream).await.unwrap();
        let count = usize::try_from(stream.cached_info().state.messages).unwrap();
        let config = jetstream::consumer::pull::OrderedConfig::default();
        let consumer = stream.create_consumer(config).await.unwrap();
        let messages = consumer.messages().await.unwrap().take(count);
        tokio::time::timeout(Duration::from_secs(30), messages.map(Result::unwrap).collect()).await.unwrap()
    }
}

/// Connect the way a service would, with quick reconnects.
pub async fn connect(url: impl AsRef<str>) -> async_nats::Client {
    async_nats::ConnectOptions::new()
        .reconnect_delay_callback(|_| Duration::from_millis(50))
        .connect(url.as_ref())
        .await
        .unwrap()
}
