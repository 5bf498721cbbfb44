// The facade weighs nothing, is `Copy`, and works outside of a context.
use std::future::IntoFuture;
use std::task::{Context, Poll, Waker};
use trellis::{JobId, Message, MessageId, Outbox, PayloadError, Submission};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created", params(order_id), order_by = region)]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct OrderCreated {
        pub order_id: String,
        pub region: u8,
    }
}

#[derive(Default)]
struct Recorder(Vec<Message>);
impl Outbox for Recorder {
    type Error = PayloadError;
    async fn append(&mut self, message: Message) -> Result<MessageId, PayloadError> {
        let id = message.id.clone();
        self.0.push(message);
        Ok(id.unwrap_or_else(|| MessageId::new("made-here").unwrap()))
    }
    async fn submit(&mut self, _: Submission) -> Result<JobId, PayloadError> {
        unreachable!()
    }
}

fn ready<F: IntoFuture>(future: F) -> F::Output {
    let mut future = Box::pin(future.into_future());
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!(),
    }
}

fn main() {
    assert_eq!(size_of::<orders::event::Root>(), 0);
    assert_eq!(size_of_val(&orders::EVENT.orders.created), 0);
    assert_eq!(format!("{:?}", orders::EVENT.orders.created), "EventHandle(orders.created)");
    let event = orders::event::Root::default();
    let copy = event;
    let mut tx = Recorder::default();
    let created = |order_id: &str| orders::OrderCreated { order_id: order_id.to_owned(), region: 7 };
    ready(event.orders.created.enqueue(&mut tx, created("a.b"))).unwrap();
    let id = ready(copy.orders.created.enqueue(&mut tx, created("c")).id("mine")).unwrap();
    ready(orders::EVENT.orders.created.enqueue(&mut tx, created("d"))).unwrap();
    assert_eq!(id.as_str(), "mine");
    assert_eq!(tx.0[0].params, ["a~2E~b"]);
    assert_eq!(tx.0[0].order_key.as_deref(), Some("region=7"));
}
