// A job created on the pool instead of the transaction, which would run even if the change is not made.
use trellis::{JobId, Message, MessageId, Outbox, PayloadError, Submission};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.send_receipt")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct SendReceipt {}
    #[job("orders.archive")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Archive {}
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

struct Pool;

async fn handle(pool: &Pool, tx: &mut Tx) {
    let _ = orders::JOB.orders.send_receipt.create(pool, orders::SendReceipt {}).await;
    let _ = orders::JOB.orders.send_receipt.create(tx, orders::SendReceipt {}).await;
}

fn main() {
    let _ = handle;
}
