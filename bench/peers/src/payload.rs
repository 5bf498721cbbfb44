//! What a job carries: as much as ours does.

use serde::{Deserialize, Serialize};

/// How many bytes a body has.
const BODY_BYTES: usize = 256;

/// A payload whose JSON takes [`BODY_BYTES`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Payload {
    note: String,
}

impl Payload {
    pub(crate) fn new() -> Self {
        const AROUND_THE_NOTE: usize = r#"{"note":""}"#.len();
        Self { note: "x".repeat(BODY_BYTES - AROUND_THE_NOTE) }
    }
}

#[cfg(test)]
mod tests {
    use super::{BODY_BYTES, Payload};

    #[test]
    fn the_body_has_the_announced_size() {
        assert_eq!(serde_json::to_vec(&Payload::new()).unwrap().len(), BODY_BYTES);
    }
}
