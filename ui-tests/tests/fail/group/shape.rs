// Member lists that are written another way.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    #[event("orders.created")]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Created {}

    #[group("empty")]
    pub struct Empty();
    #[group("unit")]
    pub struct Unit;
    #[group("named")]
    pub struct Named {
        pub created: Created,
        pub again: self::Created,
    }
    #[group("choice")]
    pub enum Choice {
        Created(Created),
    }
    #[group("twice")]
    pub struct Twice(Created, self::Created, crate::orders::Created);
    #[group("conditional")]
    pub struct Conditional(
        #[cfg(all())] Created,
        #[serde(skip)]
        #[doc = "fine"]
        Created,
    );
}

fn main() {
    fn is<G: trellis::Group>() {}
    is::<orders::Empty>();
    is::<orders::Unit>();
    is::<orders::Named>();
    is::<orders::Choice>();
    is::<orders::Twice>();
    is::<orders::Conditional>();
    let _ = orders::Choice::Created(orders::Created {});
}
