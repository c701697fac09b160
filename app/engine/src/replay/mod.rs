//! Plans: what an act would do to each message, and what a person has to know before it is done.
//!
//! Making a plan changes nothing. Carrying it out is `act`.

pub(crate) mod compose;
mod convert;
mod edits;
mod findings;
pub mod plan;
pub(crate) mod planner;
pub(crate) mod target;
