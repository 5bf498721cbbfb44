// A job that is on its way out: who creates it is told at the facade.
#![deny(deprecated)]

#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[deprecated(note = "use `orders.send_receipt`")]
    #[job("orders.mail_receipt", payload = String, retry = "explicit")]
    pub struct MailReceipt;
    #[job("orders.send_receipt", payload = String)]
    pub struct SendReceipt;
}

fn main() {
    let _ = (orders::JOB.orders.mail_receipt, orders::JOB.orders.send_receipt);
}
