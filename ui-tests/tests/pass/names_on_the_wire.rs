// Fields are named as serde writes them, whatever they are called in Rust.
use trellis::Contract;

#[trellis::contract(id = "acme.wire@v1")]
pub mod wire {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[event("case.camel", params(orderId, "x-y", out, kept, tag), order_by = region)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase", tag = "tag")]
    pub struct Camel {
        pub order_id: String,
        #[serde(rename = "x-y")]
        pub x_y: u8,
        #[serde(rename(serialize = "out", deserialize = "in"))]
        pub both: u8,
        #[serde(rename(deserialize = "lost"))]
        pub kept: u8,
        #[serde(default)]
        pub region: i64,
        #[serde(skip)]
        pub skipped: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub unnamed: Option<bool>,
    }

    #[event("case.split", params("order-id"))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all(serialize = "kebab-case", deserialize = "camelCase"))]
    pub struct Split {
        pub order_id: Box<str>,
    }

    // What another function writes is not judged by its type.
    #[event("case.with", params(time, price))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct With {
        #[serde(serialize_with = "text", skip_deserializing)]
        #[schemars(with = "String")]
        pub time: Option<f64>,
        #[serde(with = "price")]
        #[schemars(with = "String")]
        pub price: f64,
    }

    // Newtypes, aliases of the caller and types out of sight.
    #[event("case.newtypes", params(id, kind, foreign))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Newtypes {
        pub id: Id,
        pub kind: Kind,
        pub foreign: super::Foreign,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Id(String);
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub enum Kind {
        A,
    }

    #[event("case.transparent", params(order_id))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(transparent)]
    pub struct Transparent {
        pub inner: Split2,
    }
    #[event("case.newtype", params(order_id))]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Newtype(Split2);
    #[derive(Clone, Serialize, Deserialize, JsonSchema)]
    pub struct Split2 {
        pub order_id: u8,
    }

    #[event("case.into", params(order_id))]
    #[derive(Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(into = "Split2", from = "Split2")]
    pub struct Into {
        pub something_else: f64,
    }
    impl From<Split2> for Into {
        fn from(it: Split2) -> Self {
            Self { something_else: f64::from(it.order_id) }
        }
    }
    impl From<Into> for Split2 {
        fn from(_: Into) -> Self {
            Self { order_id: 1 }
        }
    }

    // A hand-written `Serialize` can do anything.
    #[event("case.by_hand", params(anything))]
    #[derive(Deserialize, JsonSchema)]
    pub struct ByHand {
        pub field: u8,
    }
    impl Serialize for ByHand {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serde_json::json!({ "anything": self.field }).serialize(serializer)
        }
    }

    fn text<S: serde::Serializer>(_: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("now")
    }
    mod price {
        pub(super) fn serialize<S: serde::Serializer>(price: &f64, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(price)
        }
        pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(_: D) -> Result<f64, D::Error> {
            Ok(1.0)
        }
    }
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Foreign(u8);

#[trellis::contract(id = "acme.shadow@v1")]
pub mod shadow {
    pub use super::model::Vec;
    pub type Option = u8;

    // Not the types that are usually called so.
    #[event("case.shadowed", params(option, vec))]
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub struct Shadowed {
        pub option: Option,
        pub vec: Vec,
    }
}

mod model {
    pub use super::Foreign as Vec;
}

fn main() {
    assert_eq!(wire::Contract::events()[0].params, ["orderId", "x-y", "out", "kept", "tag"]);
}
