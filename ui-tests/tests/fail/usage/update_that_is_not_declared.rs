// An update from a job that declares none.
use trellis::{ActiveJob, JobError, NoUpdate, Service, Work};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.send_receipt")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct SendReceipt {}
}

struct Orders;
impl Service for Orders {
    type Ctx = ();
}
impl Work<orders::SendReceipt> for Orders {
    async fn work(&self, _: &(), job: ActiveJob<orders::SendReceipt>) -> Result<(), JobError> {
        job.update(&"rendered".to_owned()).await?;
        job.update(&()).await?;
        job.update(&NoUpdate {}).await?;
        Ok(())
    }
}

fn main() {}
