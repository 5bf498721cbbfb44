// Names with dots, as events have them; and other words for "from the beginning".
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Created {}

    #[group("orders.stock")]
    pub struct Dots(Created);
    #[group("Stock")]
    pub struct Pascal(Created);
    #[group]
    pub struct Missing(Created);
    #[group("stock", replay = "everything")]
    pub struct Replay(Created);
    #[group("fine", replay = all)]
    pub struct Word(Created);
    #[group("fine")]
    pub struct Again(Created);
    #[group("other", from = "all", replay = "all", replay = "new")]
    pub struct Options(Created);
}

fn main() {
    fn is<G: trellis::Group>() {}
    is::<orders::Dots>();
    is::<orders::Missing>();
    is::<orders::Replay>();
    is::<orders::Again>();
}
