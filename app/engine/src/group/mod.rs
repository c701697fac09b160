//! Failure groups: dead letters with one fingerprint, a label that a person recognises, and a hint at what kind of failure
//! it is.
//!
//! Separate from the deaths, because a group is an opinion: two people may want other rules ([`Rules`]), and the facts stay.

mod fingerprint;
mod grouping;
mod normalise;
mod rules;
pub(crate) mod stack;

pub use fingerprint::{Fingerprint, fingerprint};
pub use grouping::{Group, Grouping};
pub use normalise::normalise;
pub use rules::{Class, Hint, Rules, RulesError};
