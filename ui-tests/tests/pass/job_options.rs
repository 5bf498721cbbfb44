// Every option of a job, and what is there without them.
use std::time::Duration;
use trellis::{Contract, Job, JobDeclaration, NoUpdate, Retry};

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[job(
        "orders.send_receipt",
        payload = Order,
        result = Receipt,
        update = super::Step,
        retry(explicit, longest = "1h30m", first = "250ms", tries = 8),
        deadline = "1d12h",
    )]
    pub struct SendReceipt;

    #[job("orders.archive")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Archive {
        pub order_id: u64,
    }

    #[job("orders.clean")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub enum Clean {
        All,
        Of { customer_id: u64 },
    }

    // It carries null.
    #[job("orders.sweep", retry = "explicit")]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Sweep;

    #[job("retry.first", payload = (), retry(first = "10m"))]
    pub struct First;
    #[job("retry.longest", payload = (), retry(longest = "5s"))]
    pub struct Longest;
    #[job("retry.tries", payload = (), retry(tries = 1_000))]
    pub struct Tries;
    #[job("retry.limits", payload = (), deadline = "365d", retry(first = "30d", longest = "30d"))]
    pub struct Limits;

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Order {
        pub id: u64,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Receipt {
        pub number: String,
    }
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub enum Step {
    Rendered,
}

fn is<J, P, R, U>() -> JobDeclaration
where
    J: Job<Payload = P, Result = R, Update = U>,
{
    J::DECLARATION
}

fn main() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));

    let full = is::<orders::SendReceipt, orders::Order, orders::Receipt, Step>();
    assert_eq!((full.contract, full.name), ("acme.orders@v1", "orders.send_receipt"));
    assert_eq!(full.deadline, Some(DAY + DAY / 2));
    assert_eq!(full.retry, Retry::new().tries(8).delays(second / 4, minute * 90).explicit());

    let bare = is::<orders::Archive, orders::Archive, (), NoUpdate>();
    assert_eq!(bare, JobDeclaration::new("acme.orders@v1", "orders.archive"));
    is::<orders::Clean, orders::Clean, (), NoUpdate>();
    assert_eq!(is::<orders::Sweep, orders::Sweep, (), NoUpdate>().retry, Retry::new().explicit());

    // What is not said has its default, also inside of `retry`.
    let default = Retry::new();
    assert_eq!(orders::First::DECLARATION.retry, default.delays(minute * 10, default.longest));
    assert_eq!(orders::Longest::DECLARATION.retry, default.delays(default.first, second * 5));
    assert_eq!(orders::Tries::DECLARATION.retry, default.tries(1_000));
    assert_eq!(orders::Limits::DECLARATION.retry, default.delays(DAY * 30, DAY * 30));
    assert_eq!(orders::Limits::DECLARATION.deadline, Some(DAY * 365));
    // The defaults that the macro compares with.
    assert_eq!((default.first, default.longest), (second * 5, minute * 10));

    assert_eq!(orders::Contract::jobs().len(), 8);
    assert!(orders::Contract::events().is_empty());
    let _ = (orders::JOB.orders.send_receipt, orders::JOB.retry.first);
}
