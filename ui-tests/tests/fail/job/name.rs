// Names as other job queues have them: a type, dashes, a queue with a colon, a keyword; or none at all.
use trellis::Job;

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.right", payload = u8)]
    pub struct Right;

    #[job("SendReceipt", payload = u8)]
    pub struct Pascal;
    #[job("orders.send-receipt", payload = u8)]
    pub struct Dashes;
    #[job("mail:send", payload = u8)]
    pub struct Colon;
    #[job("", payload = u8)]
    pub struct Empty;
    #[job("orders.do", payload = u8)]
    pub struct Keyword;

    #[job]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct NoArguments {}
    #[job(retry = 3, payload = u8)]
    pub struct OptionFirst;
    #[job(name = "orders.named", payload = u8)]
    pub struct Named;
    #[job = "orders.equals"]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Equals {}
}

fn main() {
    // They are jobs all the same.
    let _ = orders::JOB.orders.right;
    let _ = (orders::Pascal::DECLARATION, orders::Keyword::DECLARATION, orders::OptionFirst::DECLARATION);
    let _ = (orders::NoArguments::DECLARATION, orders::Named::DECLARATION, orders::Equals::DECLARATION);
}
