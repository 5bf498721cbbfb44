#[trellis::contract(id = "acme")]
pub mod mistakes {
    #[event("orders.created", params(typo), what = 1)]
    #[derive(Serialize)]
    pub struct Created {
        pub id: u8,
    }
    #[event("orders.Created", payload = Created)]
    pub struct Again;
    #[event(payload = Created)]
    pub struct Nameless;
    #[group("g.h")]
    pub struct Empty {}
    #[job("orders.send", payload = Created, retry(tries = 0, first = "1h", longest = "1m", explicit), deadline = "400d")]
    pub struct Send;
    #[job("orders.Archive", payload = Created, retry = 3, result = Created)]
    pub struct Archive;
    pub mod event {}
    pub const JOB: u8 = 1;
}
