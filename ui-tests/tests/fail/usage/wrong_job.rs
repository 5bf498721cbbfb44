// The payload of another job, names that are misspelt, an id that is a text, and an event taken for a job.
use trellis::{Job, JobHandle, JobId, JobRefs, Message, MessageId, Outbox, PayloadError, Submission};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.send_receipt")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct SendReceipt {}
    #[job("orders.archive")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Archive {}
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct OrderCreated {}
}

struct Tx;
impl Outbox for Tx {
    type Error = PayloadError;
    async fn append(&mut self, _: Message) -> Result<MessageId, PayloadError> {
        unreachable!()
    }
    async fn submit(&mut self, _: Submission) -> Result<JobId, PayloadError> {
        unreachable!()
    }
}

struct Nats;
impl JobRefs for Nats {
    type Ref<J: Job> = ();
    fn job_ref<J: Job>(&self, _: JobId) {}
}

async fn handle(tx: &mut Tx, nats: &Nats, id: JobId) {
    let _ = orders::JOB.orders.send_receipt.create(&mut *tx, orders::Archive {}).await;
    let _ = orders::JOB.orders.archiv.create(&mut *tx, orders::Archive {}).await;
    let _ = orders::JOB.orders.created.create(&mut *tx, orders::OrderCreated {}).await;
    orders::JOB.orders.archive.by_id(nats, "01J8ZQ");
    orders::EVENT.orders.created.by_id(nats, id.clone());
    JobHandle::<orders::OrderCreated>::new().by_id(nats, id);
    let _ = orders::JOB.orders.archive.enqueue(tx, orders::Archive {}).await;
}

fn main() {
    let _ = handle;
}
