// What is written as the signature is what is implemented, for jobs of this contract and of another one.
use trellis::{ActiveJob, JobError, Service, Work};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[job("orders.send_receipt", result = Receipt, update = Step)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct SendReceipt {
        pub order_id: u64,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Receipt {
        pub order_id: u64,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub enum Step {
        Rendered,
    }
}

#[trellis::contract(id = "acme.stock@v1")]
pub mod stock {
    #[job("stock.count", payload = ())]
    pub struct Count;
}

struct Orders;
impl Service for Orders {
    type Ctx = ();
}
impl Work<orders::SendReceipt> for Orders {
    async fn work(&self, _: &(), job: ActiveJob<orders::SendReceipt>) -> Result<orders::Receipt, JobError> {
        job.update(&orders::Step::Rendered).await?;
        let order_id = job.payload.order_id;
        u8::try_from(order_id)?;
        if job.facts.tries > 3 {
            return Err(JobError::fail("enough"));
        }
        Ok(orders::Receipt { order_id })
    }
}
impl Work<stock::Count> for Orders {
    async fn work(&self, (): &(), _: ActiveJob<stock::Count>) -> Result<(), JobError> {
        Ok(())
    }
}

fn main() {
    fn works<S: Work<orders::SendReceipt> + Work<stock::Count>>(_: S) {}
    works(Orders);
}
