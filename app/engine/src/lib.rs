//! The engine of Dead Letter Office: everything but the pixels and the brokers.
//!
//! The window and the command line ask with [`Command`]s and are answered with [`Event`]s, both through an [`EngineHandle`].
//! What the engine must never know: a window (it wakes one through a callback), a broker's client library (it has
//! `Arc<dyn Session>`), a framework of the command line.

mod act;
mod age;
pub mod audit;
pub mod capture;
pub mod command;
mod connection;
pub mod dead_letter;
mod demo;
pub mod event;
pub mod group;
pub mod handle;
pub mod home;
mod look;
pub mod profile;
pub mod query;
mod records;
pub mod registry;
pub mod replay;
mod schemas;
pub mod secrets;
mod shared;
pub mod store;
mod supervisor;

pub use command::{Ask, Command, TaskId};
pub use event::{Event, News};
pub use handle::{Busy, EngineHandle, Settings, Wake};
