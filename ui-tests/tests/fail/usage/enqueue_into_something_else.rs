// An enqueue on the pool instead of the transaction, which would be sent even if the change is not made.
use trellis::{JobId, Message, MessageId, Outbox, PayloadError, Submission};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct OrderCreated {}
    #[event("orders.cancelled")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct OrderCancelled {}
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

async fn handle(pool: &mut Pool, tx: &mut Tx) {
    let _ = orders::EVENT.orders.created.enqueue(pool, orders::OrderCreated {}).await;
    let _ = orders::EVENT.orders.created.enqueue(tx, orders::OrderCreated {}).await;
}

fn main() {
    let _ = handle;
}
