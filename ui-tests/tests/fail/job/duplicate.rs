// A declaration that was copied and whose name was not changed.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.archive", payload = u8)]
    pub struct Archive;
    #[job("orders.archive", payload = u8)]
    pub struct ArchiveToo;
    // An event of that name is no duplicate.
    #[event("orders.archive", payload = u8)]
    pub struct Archived;
}

fn main() {
    let _ = (orders::JOB.orders.archive, orders::EVENT.orders.archive);
    fn is<J: trellis::Job>() {}
    is::<orders::ArchiveToo>();
}
