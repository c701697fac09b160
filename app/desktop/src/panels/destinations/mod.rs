//! The list on the left: connections with their destinations, dead letters first.

mod model;
mod view;

pub use model::{Narrowing, Urgency, facts};

use crate::intent::Cx;

/// View state of the list.
#[derive(Debug, Default)]
pub struct DestinationsPanel {
    narrowing: Narrowing,
}

impl DestinationsPanel {
    /// Draws into the space that is left.
    pub fn ui(&mut self, ui: &mut egui::Ui, cx: &mut Cx<'_>) {
        view::panel_ui(ui, cx, &mut self.narrowing);
    }
}
