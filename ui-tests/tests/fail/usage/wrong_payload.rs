// The payload of another event, and names of the facade that are misspelt.
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

async fn handle(tx: &mut Tx) {
    let _ = orders::EVENT.orders.created.enqueue(tx, orders::OrderCancelled {}).await;
    let _ = orders::EVENT.orders.creatd.enqueue(tx, orders::OrderCreated {}).await;
    let _ = orders::EVENT.order.created.enqueue(tx, orders::OrderCreated {}).await;
}

fn main() {
    let _ = handle;
}
