// `receipts` beside `receipts.send`: on the facade, one field would have to be a handle and a group.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("receipts.send", payload = u8)]
    pub struct Send;
    #[job("receipts", payload = u8)]
    pub struct Receipts;
    #[job("archive", payload = u8)]
    pub struct Archive;
    #[job("archive.old.close", payload = u8)]
    pub struct Close;
    // Only among jobs.
    #[event("archive.closed", payload = u8)]
    pub struct Closed;
}

fn main() {
    let _ = (orders::JOB.receipts.send, orders::JOB.archive, orders::EVENT.archive.closed);
    fn is<J: trellis::Job>() {}
    is::<orders::Receipts>();
    is::<orders::Close>();
}
