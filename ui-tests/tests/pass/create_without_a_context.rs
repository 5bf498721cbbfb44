// The facade of jobs works outside of a context, through whatever is a way to create them.
use std::future::IntoFuture;
use std::task::{Context, Poll, Waker};
use trellis::{Job, JobId, JobRefs, Message, MessageId, Outbox, PayloadError, Submission, Submit};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.send_receipt", retry(tries = 8))]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct SendReceipt {
        pub order_id: u8,
    }
}

#[derive(Default)]
struct Recorder(Vec<Submission>);
impl Outbox for Recorder {
    type Error = PayloadError;
    async fn append(&mut self, _: Message) -> Result<MessageId, PayloadError> {
        unreachable!()
    }
    async fn submit(&mut self, submission: Submission) -> Result<JobId, PayloadError> {
        let id = submission.id.clone();
        self.0.push(submission);
        Ok(id.unwrap_or_else(|| JobId::new("made-here").unwrap()))
    }
}

/// Stands for `ctx.nats`.
struct Nats;
impl Submit for &Nats {
    type Created<J: Job> = (&'static str, Vec<u8>);
    type Error = PayloadError;
    async fn submit<J: Job>(self, submission: Submission) -> Result<Self::Created<J>, PayloadError> {
        Ok((J::DECLARATION.name, submission.payload))
    }
}
impl JobRefs for Nats {
    type Ref<J: Job> = (&'static str, JobId);
    fn job_ref<J: Job>(&self, id: JobId) -> Self::Ref<J> {
        (J::DECLARATION.name, id)
    }
}

fn ready<F: IntoFuture>(future: F) -> F::Output {
    let mut future = Box::pin(future.into_future());
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!(),
    }
}

/// As in `ctx.transaction(async |tx| ..)`: `tx` is a reference, and used more than once.
async fn in_a_transaction(tx: &mut Recorder) -> Result<[JobId; 3], PayloadError> {
    let job = orders::job::Root::default();
    let copy = job;
    let receipt = |order_id| orders::SendReceipt { order_id };
    let made = job.orders.send_receipt.create(&mut *tx, receipt(1)).await?;
    let chosen = copy.orders.send_receipt.create(&mut *tx, receipt(2)).id("mine").await?;
    let last = orders::JOB.orders.send_receipt.create(tx, receipt(3)).await?;
    Ok([made, chosen, last])
}

fn main() {
    assert_eq!(size_of::<orders::job::Root>(), 0);
    assert_eq!(size_of_val(&orders::JOB.orders.send_receipt), 0);
    assert_eq!(format!("{:?}", orders::JOB.orders.send_receipt), "JobHandle(orders.send_receipt)");

    let mut tx = Recorder::default();
    let ids = ready(Box::pin(in_a_transaction(&mut tx))).unwrap();
    assert_eq!(ids.map(String::from), ["made-here", "mine", "made-here"]);
    assert_eq!(tx.0.len(), 3);
    assert_eq!((tx.0[1].declaration, tx.0[1].payload.as_slice()), (orders::SendReceipt::DECLARATION, &br#"{"order_id":2}"#[..]));
    assert_eq!(tx.0[1].declaration.retry.tries, 8);

    let handle = orders::JOB.orders.send_receipt;
    let created = ready(handle.create(&Nats, orders::SendReceipt { order_id: 4 })).unwrap();
    assert_eq!(created, ("orders.send_receipt", br#"{"order_id":4}"#.to_vec()));
    let refused = ready(handle.create(&Nats, orders::SendReceipt { order_id: 5 }).id("no id"));
    assert!(matches!(refused, Err(PayloadError::JobId { name: "orders.send_receipt", .. })));
    let id: JobId = "mine".parse().unwrap();
    assert_eq!(handle.by_id(&Nats, id.clone()), ("orders.send_receipt", id));
}
