//! The loaded messages of a look: packed, bounded in bytes, and read without waiting.
//!
//! The engine appends pages; the window reads rows by number for what is on the screen. Both hold the lock only to push or
//! to slice, never to decode, so a frame does not wait (see [`LookView`]).

mod pack;
mod view;

pub use view::{Budget, GroupRow, KeyKind, LookView, NewRow, Row, RowState, preview};
