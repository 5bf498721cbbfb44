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
    pub mod event {}
}
