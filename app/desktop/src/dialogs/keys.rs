//! All keys.

use egui::{RichText, ScrollArea, Ui};

use super::Then;
use crate::{action::Action, theme::colours};

const TABLE: [(&str, &str); 7] = [
    ("↑ ↓ Page Home End", "Move in the table"),
    ("Shift", "with these or a click: select a range"),
    ("Ctrl and a click", "Add to the selection, or take out"),
    ("Space", "The same for the row with the cursor"),
    ("Enter", "Open the message, or unfold the group"),
    ("← →", "Fold and unfold"),
    ("Tab", "To the next field or table"),
];

/// Draws the list.
pub fn keys_ui(ui: &mut Ui) -> Then {
    let height = (ui.ctx().content_rect().height() - 160.0).max(160.0);
    ScrollArea::vertical().max_height(height).show(ui, |ui| {
        egui::Grid::new("keys")
            .num_columns(2)
            .spacing([24.0, 5.0])
            .show(ui, |ui| {
                for action in Action::ALL {
                    let Some(shortcut) = action.shortcut() else {
                        continue;
                    };
                    let key = ui.ctx().format_shortcut(&shortcut);
                    ui.label(RichText::new(key).monospace().color(colours(ui).accent));
                    ui.label(format!(
                        "{}: {}",
                        action.text().trim_end_matches('…'),
                        action.tooltip()
                    ));
                    ui.end_row();
                }
                for (keys, text) in TABLE {
                    ui.label(RichText::new(keys).monospace().color(colours(ui).accent));
                    ui.label(text);
                    ui.end_row();
                }
            });
    });
    Then::Stay
}
