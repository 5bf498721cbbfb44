// A service that consumes events of its own contract and of another one.
use trellis::{Event, Group, HandlerError, Mount, On, Received, Registrar, Service};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct OrderCreated {}
}

#[trellis::contract(id = "acme.warehouse@v1")]
pub mod warehouse {
    use super::orders;

    #[event("stock.emptied")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Emptied {}

    #[group("stock")]
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    pub struct Stock(pub orders::OrderCreated, pub Emptied);
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
impl On<warehouse::Emptied> for Warehouse {
    async fn on(&self, _: &(), _: Received<warehouse::Emptied>) -> Result<(), HandlerError> {
        Ok(())
    }
}

#[derive(Default)]
struct Names(Vec<&'static str>);
impl<S: Service> Registrar<S> for Names {
    fn on<E: Event>(&mut self)
    where
        S: On<E>,
    {
        self.0.push(E::DECLARATION.name);
    }
}

fn mount<G: Mount<Warehouse>>() -> Names {
    let mut names = Names::default();
    G::mount(&mut names);
    names
}

fn main() {
    assert_eq!(mount::<warehouse::Stock>().0, ["orders.created", "stock.emptied"]);
    assert_eq!(warehouse::Stock::DECLARATION.contract, "acme.warehouse@v1");
    let owners: Vec<&str> = warehouse::Stock::MEMBERS.iter().map(|event| event.contract).collect();
    assert_eq!(owners, ["acme.orders@v1", "acme.warehouse@v1"]);
    assert_eq!(warehouse::Stock, warehouse::Stock::default());
}
