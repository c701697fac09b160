//! The parts of the window. Each is a struct with its own view state and a drawing function; what it shows comes from
//! [`crate::state::AppState`], and what a click means goes out as an [`crate::intent::Intent`].

pub mod audit;
pub mod captures;
pub mod destination;
pub mod destinations;
pub mod detail;
pub mod jobs;
pub mod messages;
pub mod notices;
pub mod runs;
pub mod top;
pub mod welcome;
