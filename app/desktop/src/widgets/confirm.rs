//! What a person gives before something is changed: a reason, and on production the name, typed.

use egui::{RichText, Ui};

use super::parts::{Tone, callout_ui, caption, text_field};
use crate::theme::colours;

/// What was typed.
#[derive(Clone, Debug, Default)]
pub struct Confirmation {
    pub why: String,
    pub typed: String,
}

impl Confirmation {
    /// Why it may not go on yet. `name` must be typed when it is given.
    pub fn missing(&self, name: Option<&str>) -> Option<String> {
        if self.why.trim().is_empty() {
            return Some("Say why; the reason goes into the audit trail.".to_owned());
        }
        match name {
            Some(name) if self.typed.trim() != name => {
                Some(format!("This is production: type {name} to go on."))
            }
            _ => None,
        }
    }

    /// Draws both fields.
    pub fn show(&mut self, ui: &mut Ui, name: Option<&str>) {
        caption(ui, "Reason, for the audit trail");
        let width = ui.available_width();
        text_field(
            ui,
            "Reason",
            &mut self.why,
            "for example: db-3 was down until 02:40",
            width,
        );
        let Some(name) = name else {
            return;
        };
        ui.add_space(4.0);
        callout_ui(ui, Tone::Danger, |ui| {
            ui.horizontal_wrapped(|ui| {
                ui.label(RichText::new("This is production. Type").color(colours(ui).danger));
                ui.label(
                    RichText::new(name)
                        .family(crate::theme::bold())
                        .color(colours(ui).strong),
                );
                ui.label(RichText::new("to go on.").color(colours(ui).danger));
            });
            let width = ui.available_width();
            text_field(ui, "Name of the destination", &mut self.typed, name, width);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_needed_and_on_production_the_exact_name() {
        let mut confirmation = Confirmation::default();
        assert!(confirmation.missing(None).is_some());
        confirmation.why = "fixed".to_owned();
        assert_eq!(confirmation.missing(None), None);
        confirmation.typed = "orders".to_owned();
        assert!(confirmation.missing(Some("orders.dlq")).is_some());
        confirmation.typed = "orders.dlq ".to_owned();
        assert_eq!(confirmation.missing(Some("orders.dlq")), None);
    }
}
