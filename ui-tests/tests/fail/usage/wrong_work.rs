// A worker with another result than declared, one for the payload in place of the job, and none at all.
use trellis::{ActiveJob, JobError, Service, Work};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.send_receipt", result = Receipt)]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct SendReceipt {}
    #[job("orders.archive", payload = Receipt)]
    pub struct Archive;
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Receipt {}
}

struct Orders;
impl Service for Orders {
    type Ctx = ();
}
impl Work<orders::SendReceipt> for Orders {
    async fn work(&self, _: &(), _: ActiveJob<orders::SendReceipt>) -> Result<(), JobError> {
        Ok(())
    }
}
impl Work<orders::Receipt> for Orders {
    async fn work(&self, _: &(), _: ActiveJob<orders::Receipt>) -> Result<(), JobError> {
        Ok(())
    }
}

fn mount<J: trellis::Job, S: Work<J>>(_: S) {}

fn main() {
    mount::<orders::Archive, _>(Orders);
}
