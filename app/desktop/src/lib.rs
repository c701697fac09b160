//! The window of Dead Letter Office.
//!
//! It speaks only [`dlo_engine::Ask`] and [`dlo_engine::News`] through an engine's handle, and never waits in a frame. What it
//! must never know: a broker's client library, SQLite, how a body is decoded. [`app::App`] draws into any [`egui::Ui`], so that
//! tests drive it without a window; [`window::open`] puts a window around it.

pub mod action;
pub mod app;
pub mod dialogs;
pub mod dispatch;
pub mod files;
pub mod first_frame;
pub mod intent;
pub mod notify;
pub mod panels;
pub mod payload;
pub mod remote;
pub mod state;
pub mod theme;
pub mod values;
pub mod widgets;
pub mod window;
pub mod words;
pub mod work;
