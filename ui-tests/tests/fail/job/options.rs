// Options that other job queues or events have, options that are given twice or not finished.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("orders.unknown", payload = u8, queue = "mail", max_attempts = 3, timeout = "1m", key = id)]
    pub struct Unknown;
    #[job("orders.of_events", payload = u8, params(id), order_by = id)]
    pub struct OfEvents;
    #[job("orders.twice", payload = u8, payload = u8, result = u8, result = u8, update = u8, update = u8)]
    pub struct Twice;
    #[job("orders.again", payload = u8, deadline = "1m", deadline = "2m", retry = "explicit", retry(tries = 3))]
    pub struct Again;
    #[job("orders.comma", payload = u8 result = u8, update = u8)]
    pub struct Comma;
    #[job("orders.shapes", payload = u8, result(u8), update -> u8, deadline("1m"))]
    pub struct Shapes;
    #[job("orders.unfinished", payload = u8, result = , update, deadline =)]
    pub struct Unfinished;
    #[job("orders.text", payload = u8, result = "u8")]
    pub struct Text;
}

fn main() {
    let job = orders::JOB;
    let _ = (job.orders.unknown, job.orders.of_events, job.orders.twice, job.orders.again, job.orders.comma);
    let _ = (job.orders.shapes, job.orders.unfinished, job.orders.text);
}
