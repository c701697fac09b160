//! Decoding of payloads.

/// What a payload says, and how it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded;
