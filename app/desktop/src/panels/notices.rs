//! Short lines in the lower corner: what was done, and what failed. Failures stay until they are dismissed.

use egui::{Align2, Area, Id, Order, RichText, Ui, vec2};

use crate::{
    intent::{Cx, Intent},
    state::Weight,
    theme::context_colours,
    widgets::parts::{Tone, quiet_button},
};

/// Draws over everything else, above the strip of jobs and the buttons under a table.
pub fn notices_ui(ui: &Ui, cx: &mut Cx<'_>, above: f32) {
    if cx.state.notices.is_empty() {
        return;
    }
    let colours = context_colours(ui.ctx());
    Area::new(Id::unique("notices"))
        .order(Order::Foreground)
        .anchor(Align2::RIGHT_BOTTOM, vec2(-12.0, -56.0 - above))
        .show(ui.ctx(), |ui| {
            for (index, notice) in cx.state.notices.iter().enumerate() {
                let tone = match notice.weight {
                    Weight::Information => Tone::Accent,
                    Weight::Success => Tone::Fine,
                    Weight::Failure => Tone::Danger,
                };
                egui::Frame::popup(ui.style())
                    .fill(colours.panel)
                    .stroke(egui::Stroke::new(1.0, tone.text(colours)))
                    .inner_margin(egui::Margin::symmetric(12, 8))
                    .show(ui, |ui| {
                        ui.set_max_width(420.0);
                        ui.horizontal_top(|ui| {
                            let text = RichText::new(&notice.text).color(tone.text(colours));
                            ui.set_max_width(380.0);
                            ui.vertical(|ui| ui.add(egui::Label::new(text).wrap()));
                            if quiet_button(ui, "×", None)
                                .accessible_name("Dismiss")
                                .on_hover_text("Dismiss")
                                .clicked()
                            {
                                cx.want(Intent::Dismiss(index));
                            }
                        });
                    });
                ui.add_space(4.0);
            }
        });
}
