// Durations as other crates and languages write them, and such that no job can have.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("text.unit", payload = u8, deadline = "10")]
    pub struct NoUnit;
    #[job("text.word", payload = u8, deadline = "5 minutes")]
    pub struct Word;
    #[job("text.week", payload = u8, deadline = "1w")]
    pub struct Week;
    #[job("text.fraction", payload = u8, deadline = "1.5h")]
    pub struct Fraction;
    #[job("text.negative", payload = u8, deadline = "-5s")]
    pub struct Negative;
    #[job("text.order", payload = u8, deadline = "30m1h")]
    pub struct Order;
    #[job("text.iso", payload = u8, deadline = "PT5M")]
    pub struct Iso;
    #[job("text.empty", payload = u8, deadline = "")]
    pub struct Empty;
    #[job("text.zero", payload = u8, deadline = "0s", retry(first = "1h0m"))]
    pub struct Zero;

    #[job("literal.number", payload = u8, deadline = 600)]
    pub struct Number;
    #[job("literal.suffix", payload = u8, deadline = 10m)]
    pub struct Suffix;
    #[job("literal.float", payload = u8, deadline = 1.5)]
    pub struct Float;
    #[job("literal.expression", payload = u8, deadline = Duration::from_secs(600), retry(first = 1s, longest = TEN))]
    pub struct Expression;

    #[job("long.deadline", payload = u8, deadline = "366d")]
    pub struct Deadline;
    #[job("long.delays", payload = u8, retry(first = "31d", longest = "99999999999999999999d"))]
    pub struct Delays;
}

fn main() {
    let job = orders::JOB;
    let _ = (job.text.unit, job.text.zero, job.literal.number, job.literal.expression, job.long.delays);
    fn is<J: trellis::Job>() {}
    is::<orders::Deadline>();
}
