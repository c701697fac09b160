//! Protobuf, with a schema or as the bare tree of what is on the wire.
//! <https://protobuf.dev/programming-guides/encoding/>
//!
//! Descriptors come from prost-reflect and protox; reading is our own, so that unknown fields stay
//! in their place, every value is paid for, and an edit keeps the bytes of all fields beside it.

mod check;
mod read;
mod schema;
mod wire;
mod write;

pub use check::check;
pub use read::{Message, decode, decode_wire};
pub use schema::ProtoSchema;
pub(crate) use wire::looks_like_wire;
pub use write::{encode, write};

#[cfg(test)]
mod tests;
