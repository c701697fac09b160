//! Payloads: decode, validate, compare and edit whatever a message carries.
//!
//! Bytes and headers go in, a document and a report come out. Decoding never fails, never does I/O
//! and never panics: bytes that nothing reads are shown as bytes, and the report says what was
//! tried. A decoder that needs a schema it does not have says so in [`Decoded::needs`]; the caller
//! fetches it and decodes again.
//!
//! ```
//! use dlo_payload::{Header, Input, NoSchemas, Settings, decode};
//!
//! let headers = [Header::text("content-type", "application/json")];
//! let input = Input { headers: &headers, ..Input::value(b"{\"id\": 202201180000000014}") };
//! let decoded = decode(&input, &Settings::default(), &NoSchemas);
//!
//! assert_eq!(decoded.chips(), ["json"]);
//! assert_eq!(decoded.document.get("id").map(|id| id.preview(40)).as_deref(), Some("202201180000000014"));
//! assert_eq!(decoded.to_json()["value"].to_string(), r#"{"id":202201180000000014}"#);
//! ```
//!
//! With schemas, keep one [`Schemas`] store per profile, and let a registry fill it:
//!
//! ```
//! use dlo_payload::{Input, Schema, SchemaKey, SchemaKind, Schemas, Settings, decode};
//!
//! let schemas = Schemas::default();
//! let payload = b"\0\0\0\0\x0c\x02a";
//! let first = decode(&Input::value(payload), &Settings::default(), &schemas);
//! assert_eq!(first.needs, [SchemaKey::Confluent(12)]);
//!
//! // A registry would answer; here the schema is made by hand.
//! schemas.insert(Schema::new(SchemaKind::Avro, "\"string\"", SchemaKey::Confluent(12)).in_subject("orders-value", 7));
//! let second = decode(&Input::value(payload), &Settings::default(), &schemas);
//! assert_eq!(second.chips(), ["confluent", "avro"]);
//! assert_eq!(second.to_json()["schema"]["version"], 7);
//! ```

pub mod bulk;
mod decimal;
mod detect;
pub mod diff;
pub mod document;
pub mod edit;
pub mod formats;
mod framing;
pub mod headers;
mod input;
mod layers;
mod limits;
mod recipe;
pub mod registry;
mod report;
mod schemas;
mod time;
pub mod validate;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use document::{Document, Number};
pub use input::{Header, Input, Part, PrefixIds, Settings};
pub use limits::{Budget, Limits};
pub use recipe::{Kind, Recipe, RecipeError, Step};
pub use report::{CloudEvent, Decoded, Layer, Note, Refusal, Weight};
pub use schemas::{
    Comparison, Lookup, NoSchemas, Reference, Schema, SchemaKey, SchemaKind, SchemaSource, Schemas,
    compare, usage,
};

/// Decodes one payload as far as it can be.
///
/// A panic inside a library we call would be a bug there; it must not take a person's session with
/// it, so it ends in the bytes and a note.
pub fn decode(input: &Input<'_>, settings: &Settings, schemas: &dyn SchemaSource) -> Decoded {
    catch_unwind(AssertUnwindSafe(|| detect::decode(input, settings, schemas))).unwrap_or_else(|_| Decoded::as_bytes(input, "a decoder failed inside; the bytes are shown as they are. Please report this message's kind"))
}
