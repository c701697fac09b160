//! What changed between two payloads: in meaning, path by path, and in bytes.

mod bytes;
mod meaning;

pub use bytes::{ByteDiff, ByteRun, bytes};
pub use meaning::{Change, documents};
