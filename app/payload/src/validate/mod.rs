//! Whether a document obeys a schema: its own, or another version ("would v8 accept it?").

mod json_schema;

use std::fmt;

pub use json_schema::JsonSchema;

use crate::document::Document;
use crate::formats::protobuf;
use crate::schemas::{Parsed, Schema};

/// One thing that is wrong, with the JSON Pointer of the place.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Problem {
    pub path: String,
    /// A sentence for a person.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "(whole value)"
        } else {
            &self.path
        };
        write!(out, "{path}: {}", self.text)
    }
}

/// Checks a document against a schema. No problems: it would be accepted. `message_type` chooses the
/// Protobuf message where the schema has several. The error says why the schema cannot be used.
pub fn validate(
    document: &Document,
    schema: &Schema,
    message_type: Option<&str>,
) -> Result<Vec<Problem>, String> {
    match schema.parsed()? {
        Parsed::Avro(avro) => Ok(avro.check(document)),
        Parsed::Protobuf(proto) => {
            let message = proto
                .message(message_type)
                .map_err(|refusal| refusal.to_string())?;
            Ok(protobuf::check(&message, document))
        }
        Parsed::Json(json) => Ok(json.check(document)),
    }
}
