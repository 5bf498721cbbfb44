// Doc comments flow into the manifest; the manifest is what the declarations say and nothing else.
use trellis::Contract;

/// Orders: accepted,
/// and given up.
#[trellis::contract(id = "acme.orders@v1")]
pub mod orders {
    //! The second part of the module's comment.
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// An order was accepted.
    ///
    ///     let indented = true;
    #[event("orders.created", params(order_id, "region-code"), order_by = customer_id)]
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct OrderCreated {
        /// Which order.
        pub order_id: String,
        #[serde(rename = "region-code")]
        pub region: u8,
        pub customer_id: u8,
    }

    #[doc = concat!("An order was ", "given up.")]
    #[event("orders.cancelled", payload = Reason)]
    pub struct OrderCancelled;

    /// Sends a receipt.
    ///
    /// By mail.
    #[job(
        "orders.send_receipt",
        payload = Vec<OrderCreated>,
        result = Reason,
        update = u8,
        retry(tries = 3, first = "250ms", longest = "1h", explicit),
        deadline = "1d"
    )]
    pub struct SendReceipt;

    #[job("orders.archive", payload = OrderCreated)]
    pub struct Archive;

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub enum Reason {
        Bored,
    }

    /** Keeps the stock. */
    #[group("stock", replay = "all")]
    pub struct Stock(
        /// Takes it away,
        OrderCreated,
        /// and puts it back.
        OrderCancelled,
    );
}

fn main() {
    let manifest = serde_json::to_value(orders::Contract::manifest()).unwrap();
    let expected = serde_json::json!({
        "format": "trellis.contract.v1",
        "id": "acme.orders@v1",
        "description": "Orders: accepted,\nand given up.\nThe second part of the module's comment.",
        "events": {
            "orders.created": {
                "description": "An order was accepted.\n\n    let indented = true;",
                "params": ["order_id", "region-code"],
                "order_by": "customer_id",
                "payload": { "$ref": "#/$defs/OrderCreated" },
            },
            "orders.cancelled": {
                "description": "An order was given up.\n",
                "params": [],
                "payload": { "$ref": "#/$defs/Reason" },
            },
        },
        "jobs": {
            "orders.archive": {
                "description": "",
                "tries": 5,
                "first_delay_ms": 5_000,
                "longest_delay_ms": 600_000,
                "explicit_retry": false,
                "payload": { "$ref": "#/$defs/OrderCreated" },
                "result": { "type": "null" },
                "update": false,
            },
            "orders.send_receipt": {
                "description": "Sends a receipt.\n\nBy mail.",
                "tries": 3,
                "first_delay_ms": 250,
                "longest_delay_ms": 3_600_000,
                "explicit_retry": true,
                "deadline_ms": 86_400_000,
                "payload": { "type": "array", "items": { "$ref": "#/$defs/OrderCreated" } },
                "result": { "$ref": "#/$defs/Reason" },
                "update": { "type": "integer", "format": "uint8", "minimum": 0, "maximum": 255 },
            },
        },
        "groups": {
            "stock": {
                "description": "Keeps the stock.",
                "replay": "all",
                "members": [
                    { "contract": "acme.orders@v1", "event": "orders.created" },
                    { "contract": "acme.orders@v1", "event": "orders.cancelled" },
                ],
            },
        },
    });
    for key in ["format", "id", "description", "events", "jobs", "groups"] {
        assert_eq!(manifest[key], expected[key], "{key}");
    }
    assert!(manifest["$defs"]["OrderCreated"]["properties"]["region-code"].is_object());
}
