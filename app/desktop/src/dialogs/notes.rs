//! Owner, runbook, notes and thresholds of a destination, kept on this machine.

use dlo_core::Address;
use dlo_engine::{
    Ask,
    command::{ConnectionId, Notes, Thresholds},
    event::Listed,
};
use egui::{RichText, TextEdit, Ui};

use super::{Then, finish_ui};
use crate::{
    intent::Cx,
    theme::colours,
    widgets::parts::{caption, primary_button, section, text_field},
};

/// Notes while they are edited.
#[derive(Debug)]
pub struct NotesDialog {
    connection: ConnectionId,
    address: Address,
    owner: String,
    runbook: String,
    text: String,
    alert: Fields,
}

/// Thresholds as they are typed; empty is none.
#[derive(Debug, Default)]
struct Fields {
    depth: String,
    age: String,
    growth: String,
    expiry: String,
}

impl NotesDialog {
    pub fn new(connection: ConnectionId, listed: &Listed) -> Self {
        Self {
            connection,
            address: listed.destination.address.clone(),
            owner: listed.notes.owner.clone().unwrap_or_default(),
            runbook: listed.notes.runbook.clone().unwrap_or_default(),
            text: listed.notes.text.clone(),
            alert: Fields::new(&listed.notes.alert),
        }
    }

    pub fn name(&self) -> &str {
        &self.address.name
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        let width = ui.available_width();
        caption(ui, "Owner: the team that is asked when something dies here");
        text_field(ui, "Owner", &mut self.owner, "Orders team", width);
        caption(ui, "Runbook");
        text_field(
            ui,
            "Runbook",
            &mut self.runbook,
            "https://wiki.example/orders-dlq",
            width,
        );
        caption(ui, "Notes");
        let edit = TextEdit::multiline(&mut self.text)
            .desired_rows(3)
            .desired_width(width);
        ui.add(edit).accessible_name("Notes");
        self.alert.ui(ui);
        let alert = self.alert.read();
        let wrong = alert.as_ref().err().cloned();
        let (acted, then) = finish_ui(ui, |ui| {
            primary_button(ui, "Save", wrong.as_deref()).clicked()
        });
        let (Ok(alert), true) = (alert, acted) else {
            return then;
        };
        let given = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        cx.ask(Ask::SaveNotes {
            connection: self.connection,
            address: self.address.clone(),
            notes: Notes {
                owner: given(&self.owner),
                runbook: given(&self.runbook),
                text: self.text.trim().to_owned(),
                alert,
            },
        });
        Then::Close
    }
}

impl Fields {
    fn new(alert: &Thresholds) -> Self {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let span = |seconds: Option<u64>| seconds.map(span_text);
        Self {
            depth: number(alert.depth).unwrap_or_default(),
            age: span(alert.age).unwrap_or_default(),
            growth: number(alert.growth).unwrap_or_default(),
            expiry: span(alert.expiry).unwrap_or_default(),
        }
    }

    fn ui(&mut self, ui: &mut Ui) {
        section(ui, "Alerts");
        ui.add(egui::Label::new("Raise an alert, and a notification of the desktop, when there is one of these. An empty field raises none.").wrap());
        egui::Grid::new("thresholds")
            .num_columns(4)
            .spacing([10.0, 4.0])
            .show(ui, |ui| {
                caption(ui, "messages, at least");
                text_field(
                    ui,
                    "Alert from so many messages",
                    &mut self.depth,
                    "1000",
                    100.0,
                );
                caption(ui, "oldest, at least");
                text_field(ui, "Alert from this age", &mut self.age, "12 h", 100.0);
                ui.end_row();
                caption(ui, "growth an hour, at least");
                text_field(ui, "Alert from this growth", &mut self.growth, "40", 100.0);
                caption(ui, "first expires within");
                text_field(
                    ui,
                    "Alert before messages expire",
                    &mut self.expiry,
                    "1 d",
                    100.0,
                );
                ui.end_row();
            });
        if let Err(why) = self.read() {
            ui.label(RichText::new(why).color(colours(ui).danger));
        }
    }

    fn read(&self) -> Result<Thresholds, String> {
        Ok(Thresholds {
            depth: number(&self.depth)?,
            age: span(&self.age)?,
            growth: number(&self.growth)?,
            expiry: span(&self.expiry)?,
        })
    }
}

fn number(text: &str) -> Result<Option<u64>, String> {
    let text = text.trim().replace([',', '_', ' '], "");
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse() {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(format!("{text} is no count; write for example 1000.")),
    }
}

const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];

/// Seconds of `12 h`, `30 min`, `1 d`, `40 s`.
fn span(text: &str) -> Result<Option<u64>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || format!("{text} is no time; write for example 30 min, 12 h or 2 d.");
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit()).trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let (_, seconds) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    count
        .checked_mul(*seconds)
        .filter(|seconds| *seconds > 0)
        .map(Some)
        .ok_or_else(wrong)
}

/// Seconds in the largest unit that says them exactly.
fn span_text(seconds: u64) -> String {
    let fits = UNITS.iter().find(|(_, unit)| seconds.is_multiple_of(*unit));
    let (name, unit) = fits.copied().unwrap_or(("s", 1));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_they_are_written() {
        for text in ["12 h", "30 min", "2 d", "45 s"] {
            let seconds = span(text).expect("a span").expect("not empty");
            assert_eq!(span_text(seconds), text);
        }
        assert_eq!(span("90min"), Ok(Some(5_400)));
        assert_eq!((span(" "), number("1,000")), (Ok(None), Ok(Some(1_000))));
        assert!(span("12").is_err() && span("h").is_err() && number("0").is_err());
    }
}
