//! What travels: an encoded payload, and its identity.
use std::fmt;

use schemars::{JsonSchema, Schema};
use serde::{Serialize, de::DeserializeOwned};

use crate::event::{Event, EventDeclaration};
use crate::field::{self, FieldError};
use crate::schema;

/// Anything a contract can put on the wire.
pub trait Payload: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {}
impl<T: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static> Payload for T {}

/// Identity of one message: 1 to 128 visible ASCII characters.
///
/// It is the row's key in the outbox and the broker's de-duplication key. The engine makes a ULID
/// where none was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(String);

/// A text that cannot be a [`MessageId`].
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("message id {0:?} must be 1 to 128 visible ASCII characters without spaces")]
pub struct InvalidMessageId(pub String);

impl MessageId {
    /// The longest id, in bytes.
    pub const MAX_LEN: usize = 128;

    /// Check `text`.
    ///
    /// # Errors
    /// The text is empty, too long, or has a character outside visible ASCII.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidMessageId> {
        let text = text.into();
        let fits = (1..=Self::MAX_LEN).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text))
        } else {
            Err(InvalidMessageId(text))
        }
    }

    /// The identity of a message that has none of its own: its place in a stream.
    pub fn of_place(stream: &str, sequence: u64) -> Self {
        let stream: String = stream.chars().filter(char::is_ascii_graphic).take(Self::MAX_LEN / 2).collect();
        Self(format!("{stream}:{sequence}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<MessageId> for String {
    fn from(id: MessageId) -> Self {
        id.0
    }
}

/// A payload that cannot become a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// `Serialize` failed.
    #[error("cannot encode the payload of `{name}`")]
    Encode {
        /// Logical name.
        name: &'static str,
        /// What serde said.
        #[source]
        source: serde_json::Error,
    },
    /// A field that the declaration names is missing or no string or integer.
    #[error("cannot read a field that the declaration of `{name}` names")]
    Field {
        /// Logical name.
        name: &'static str,
        /// Which field, and what it is instead.
        #[source]
        source: FieldError,
    },
    /// The chosen id cannot be one.
    #[error("cannot enqueue `{name}` under the chosen id")]
    Id {
        /// Logical name.
        name: &'static str,
        /// What is wrong with it.
        #[source]
        source: InvalidMessageId,
    },
    /// The chosen job id cannot be one.
    #[error("cannot create a job `{name}` under the chosen id")]
    JobId {
        /// Logical name.
        name: &'static str,
        /// What is wrong with it.
        #[source]
        source: crate::job::InvalidJobId,
    },
}

/// A message on its way to the outbox: encoded, not yet stamped with time and subject.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Message {
    /// What the contract says of it.
    pub declaration: EventDeclaration,
    /// The payload's JSON Schema, made on demand.
    pub schema: fn() -> Schema,
    /// JSON body.
    pub body: Vec<u8>,
    /// Subject tokens, one per declared parameter, already encoded.
    pub params: Vec<String>,
    /// Rows that share a key leave in commit order.
    pub order_key: Option<String>,
    /// The chosen identity, if any.
    pub id: Option<MessageId>,
}

impl Message {
    /// Encode an event's payload.
    ///
    /// # Errors
    /// The payload cannot be encoded, or lacks a field that the declaration names.
    pub fn event<E: Event>(payload: &E::Payload) -> Result<Self, PayloadError> {
        encode(E::DECLARATION, schema::output::<E::Payload>, serde_json::to_vec(payload))
    }
}

// Not generic: one copy, however many events a contract declares.
fn encode(
    declaration: EventDeclaration,
    schema: fn() -> Schema,
    body: serde_json::Result<Vec<u8>>,
) -> Result<Message, PayloadError> {
    let name = declaration.name;
    let body = body.map_err(|source| PayloadError::Encode { name, source })?;
    let mut wanted = declaration.params.to_vec();
    wanted.extend(declaration.order_by);
    let mut values = field::read(&body, &wanted).map_err(|source| PayloadError::Field { name, source })?;
    let order_key = declaration.order_by.and_then(|field| Some(format!("{field}={}", values.pop()?)));
    let params = values.iter().map(|value| crate::subject::encode_token(value)).collect();
    Ok(Message { declaration, schema, body, params, order_key, id: None })
}
