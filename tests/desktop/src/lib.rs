//! What the window's tests share: the whole app on the memory broker and the real engine, driven by accessible names; and a
//! renderer without a graphics card for the few image snapshots.

#![allow(clippy::expect_used, reason = "everything in here runs only in tests")]

pub mod flow;
pub mod renderer;
pub mod snapshot;
