//! Deaths: why, where, how often and when a message failed, read from the marks of brokers and frameworks.
//!
//! Separate, because a connector hands over exactly what the broker holds and must not know a framework's headers.
//! Everything here is pure: a delivery goes in, a [`Death`] comes out, and each field says which header it came from.

mod death;
mod pointer;
pub(crate) mod rfc3339;

pub use death::{Confidence, Death, Origin, Reason};
pub use pointer::Pointer;
