//! The file of a contract module, for `fail/contract/file_module.rs`.

#[event("orders.created")]
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct OrderCreated {}
