// A job that is not awaited is not created.
#![deny(unused_must_use)]
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

async fn handle(tx: &mut Tx) {
    orders::JOB.orders.send_receipt.create(&mut *tx, orders::SendReceipt {});
    orders::JOB.orders.archive.create(tx, orders::Archive {}).id("chosen");
}

fn main() {
    let _ = handle;
}
