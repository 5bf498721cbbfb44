// Retries as other job queues have them, numbers out of range, and delays that contradict each other.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[job("form.number", payload = u8, retry = 3)]
    pub struct Number;
    #[job("form.bare", payload = u8, retry(3))]
    pub struct Bare;
    #[job("form.text", payload = u8, retry = "never")]
    pub struct Text;
    #[job("form.word", payload = u8, retry = explicit)]
    pub struct Word;
    #[job("form.flag", payload = u8, retry)]
    pub struct Flag;
    #[job("form.empty", payload = u8, retry())]
    pub struct Empty;
    #[job("form.quoted", payload = u8, retry("explicit"))]
    pub struct Quoted;
    #[job("form.brackets", payload = u8, retry[tries = 3])]
    pub struct Brackets;

    #[job("list.unknown", payload = u8, retry(max = 3, delay = "1s", backoff = "exponential"))]
    pub struct Unknown;
    #[job("list.twice", payload = u8, retry(tries = 3, tries = 4, first = "1h", first = "2h", explicit, explicit))]
    pub struct Twice;
    #[job("list.value", payload = u8, retry(explicit = true, tries("3"), longest))]
    pub struct Value;
    #[job("list.comma", payload = u8, retry(first = "1h" longest = "2h"))]
    pub struct Comma;

    #[job("tries.none", payload = u8, retry(tries = 0))]
    pub struct None;
    #[job("tries.many", payload = u8, retry(tries = 1001))]
    pub struct Many;
    #[job("tries.huge", payload = u8, retry(tries = 99999999999999999999))]
    pub struct Huge;
    #[job("tries.negative", payload = u8, retry(tries = -1))]
    pub struct Negative;
    #[job("tries.text", payload = u8, retry(tries = "3"))]
    pub struct TriesText;
    #[job("tries.typed", payload = u8, retry(tries = 3u8))]
    pub struct Typed;

    #[job("delays.swapped", payload = u8, retry(first = "10m", longest = "5s"))]
    pub struct Swapped;
    #[job("delays.first", payload = u8, retry(first = "1h"))]
    pub struct First;
    #[job("delays.longest", payload = u8, retry(longest = "1s"))]
    pub struct Longest;
    // Each is reported, and none of them twice.
    #[job("delays.all", payload = u8, retry(tries = 0, first = "1h", longest = "1m", max = 3))]
    pub struct All;
    #[job("delays.unread", payload = u8, retry(first = "1h", longest = "2 hours"))]
    pub struct Unread;
    #[job("delays.same", payload = u8, retry(first = "1m", longest = "60s"))]
    pub struct Same;
}

fn main() {
    let job = orders::JOB;
    let _ = (job.form.number, job.form.flag, job.list.unknown, job.list.twice, job.tries.huge, job.delays.all);
    fn is<J: trellis::Job>() {}
    is::<orders::Swapped>();
}
