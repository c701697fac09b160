//! The innermost readings: bytes in, a document or the reason why not out.
//!
//! Each is a file of its own, knows no layer and no registry, and spends from the same budget.

pub mod avro;
pub mod cbor;
pub mod hex;
pub mod java;
pub mod json;
pub mod msgpack;
pub(crate) mod patch;
pub mod protobuf;
pub mod text;
pub mod xml;
