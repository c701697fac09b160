//! Why a message died.

/// A death as one dialect tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death;
