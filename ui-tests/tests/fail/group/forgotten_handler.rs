// An event was added to a group, and the service that mounts it has no handler for it yet.
use trellis::{HandlerError, Mount, On, Received, Service};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct OrderCreated {}
    #[event("orders.cancelled", payload = OrderCreated)]
    pub struct OrderCancelled;
    #[group("stock")]
    pub struct Stock(OrderCreated, OrderCancelled);
}

struct Warehouse;
impl Service for Warehouse {
    type Ctx = ();
}
impl On<orders::OrderCreated> for Warehouse {
    async fn on(&self, _: &(), _: Received<orders::OrderCreated>) -> Result<(), HandlerError> {
        Ok(())
    }
}

struct Builder;
impl Builder {
    fn mount<G: Mount<Warehouse>>(self) {}
}

fn main() {
    Builder.mount::<orders::Stock>();
}
