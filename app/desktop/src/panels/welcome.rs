//! What is shown before anything is chosen: how to connect, runs that were cut off, and what needs somebody.

use dlo_core::Secrets;
use egui::{RichText, ScrollArea, Ui};

use crate::{
    action::Action,
    intent::{Cx, Intent},
    state::Center,
    theme,
    widgets::parts::{Tone, button, callout_ui, primary_button, section},
    words,
};

/// Draws the page.
pub fn welcome_ui(ui: &mut Ui, cx: &mut Cx<'_>) {
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        ui.add_space(24.0);
        egui::Frame::new()
            .inner_margin(egui::Margin::symmetric(28, 0))
            .show(ui, |ui| {
                ui.set_max_width(620.0);
                ui.label(
                    RichText::new("Dead Letter Office")
                        .size(22.0)
                        .family(theme::bold())
                        .color(theme::colours(ui).strong),
                );
                crashed(ui, cx);
                if cx.state.connections.is_empty() {
                    connect(ui, cx);
                } else {
                    connected(ui, cx);
                }
            });
    });
}

fn connect(ui: &mut Ui, cx: &mut Cx<'_>) {
    ui.weak("Connect to a broker to see its dead letters. Looking removes nothing.");
    ui.add_space(10.0);
    ui.horizontal(|ui| {
        if primary_button(ui, Action::Connect.text(), None).clicked() {
            cx.want(Intent::Perform(Action::Connect));
        }
        if button(ui, Action::NewProfile.text(), None).clicked() {
            cx.want(Intent::Perform(Action::NewProfile));
        }
        let demo = cx
            .brokers
            .iter()
            .any(|broker| broker.schemes.contains(&"demo"));
        let connecting = cx.state.attempts.contains_key("demo:");
        if demo && button(ui, "Open the demo", connecting.then_some("Connecting")).clicked() {
            cx.want(Intent::Connect("demo:".to_owned(), Secrets::default()));
        }
    });
    section(ui, "Addresses");
    examples_ui(ui, cx);
}

/// An example address of each kind of broker.
pub fn examples_ui(ui: &mut Ui, cx: &Cx<'_>) {
    crate::widgets::parts::facts(ui, "examples", |ui| {
        for broker in cx.brokers {
            ui.label(broker.label);
            ui.add(
                egui::Label::new(RichText::new(broker.example).monospace())
                    .selectable(true)
                    .wrap(),
            );
            ui.end_row();
        }
    });
}

fn connected(ui: &mut Ui, cx: &mut Cx<'_>) {
    ui.weak("Choose a destination on the left. Dead letters come first.");
    let alerts = cx.state.alerts();
    if alerts.is_empty() {
        return;
    }
    section(ui, "Needs somebody");
    for alert in alerts {
        if ui.link(&alert.text).clicked() {
            cx.want(Intent::Visit(alert.connection, alert.address));
        }
    }
}

fn crashed(ui: &mut Ui, cx: &mut Cx<'_>) {
    let runs: Vec<_> = cx.state.crashed_runs().cloned().collect();
    for run in runs {
        ui.add_space(8.0);
        callout_ui(ui, Tone::Warning, |ui| {
            let title = format!(
                "A {} of {} was cut off on {}",
                run.act,
                run.destination,
                words::moment(run.started)
            );
            ui.label(
                RichText::new(title)
                    .family(theme::bold())
                    .color(theme::colours(ui).warning),
            );
            let unknown = run.outcomes.get("unknown").copied().unwrap_or(0);
            let text = if unknown > 0 {
                format!(
                    "{} an unknown outcome: it may or may not have arrived. Nothing is guessed; please look.",
                    words::counted(unknown, "message has").replace("message hass", "messages have")
                )
            } else {
                "No outcome is unknown; what was not started is still where it was.".to_owned()
            };
            ui.label(text);
            if button(ui, "Show the run", None).clicked() {
                cx.want(Intent::Show(Center::Run(run.run.clone())));
            }
        });
    }
}
