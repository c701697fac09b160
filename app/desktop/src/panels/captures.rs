//! Saved copies of messages that were removed or rescued, and putting them back.

use dlo_engine::{Ask, command::RestoreWhich, event::SavedCopy};
use egui::{RichText, Ui};

use crate::{
    dialogs::{Dialog, restore::RestoreDialog},
    intent::Cx,
    theme::{Colours, colours},
    widgets::{
        message_table::RowSet,
        parts::{button, empty, primary_button, quiet_button, text_field},
        table::{Cell, Column, Picked, RowContent, Shape, Table},
    },
    words,
};

/// What is shown and selected.
#[derive(Debug, Default)]
pub struct CapturesPanel {
    table: Table,
    destination: String,
    selected: RowSet,
    anchor: Option<u64>,
    asked: bool,
}

const COLUMNS: [Column; 5] = [
    Column::left("saved (UTC)", 160.0),
    Column::left("destination", 150.0),
    Column::left("sha256", 110.0),
    Column::left("restored by", 110.0),
    Column::rest("message"),
];

impl CapturesPanel {
    /// Draws the view.
    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) {
        if !self.asked {
            self.asked = true;
            cx.ask(Ask::Captures { destination: None });
        }
        let all = cx.state.captures.value().cloned().unwrap_or_default();
        let wanted = self.destination.trim().to_lowercase();
        let shown: Vec<&SavedCopy> = all
            .iter()
            .filter(|copy| wanted.is_empty() || copy.destination.to_lowercase().contains(&wanted))
            .collect();
        egui::Frame::new().inner_margin(egui::Margin::symmetric(10, 8)).show(ui, |ui| {
            ui.horizontal(|ui| {
                ui.heading("Saved copies");
                if text_field(ui, "Filter by destination", &mut self.destination, "destination", 150.0).changed() {
                    self.selected.clear();
                }
                if button(ui, "Refresh", None).clicked() {
                    cx.ask(Ask::Captures { destination: None });
                }
            });
            ui.weak("Every message is saved before it is removed. Copies can be put back where they were, or elsewhere.");
            cx.state.captures.status_ui(ui);
            self.restore(ui, cx, &shown);
        });
        if shown.is_empty() {
            empty(
                ui,
                "No saved copies",
                "Discarded and rescued messages appear here.",
            );
            return;
        }
        let colours = colours(ui);
        let selected = &self.selected;
        let touched = self
            .table
            .show(ui, "Saved copies", &COLUMNS, shown.len() as u64, |index| {
                content(
                    shown[index as usize],
                    selected.contains(index as u32),
                    colours,
                )
            });
        if let Some(click) = touched.clicked {
            self.pick(click.row, click.modifiers);
        }
    }

    /// Another page is open; the next visit asks again.
    pub fn left(&mut self) {
        self.asked = false;
    }

    fn pick(&mut self, row: u64, modifiers: egui::Modifiers) {
        let index = row as u32;
        if modifiers.shift {
            let anchor = self.anchor.unwrap_or(row);
            self.selected.clear();
            self.selected
                .extend((anchor.min(row)..=anchor.max(row)).map(|row| row as u32));
            return;
        }
        if !modifiers.command {
            self.selected.clear();
        } else if self.selected.contains(index) {
            self.selected.remove(index);
            return;
        }
        self.selected.insert(index);
        self.anchor = Some(row);
    }

    fn restore(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, shown: &[&SavedCopy]) {
        let chosen: Vec<&SavedCopy> = self
            .selected
            .iter()
            .filter_map(|index| shown.get(index as usize).copied())
            .collect();
        ui.horizontal(|ui| {
            let blocked = if cx.state.connections.is_empty() {
                Some("Connect to a broker first")
            } else {
                chosen.is_empty().then_some("Select copies first")
            };
            let text = if chosen.is_empty() {
                "Restore…".to_owned()
            } else {
                format!("Restore {}…", words::count(chosen.len() as u64))
            };
            if primary_button(ui, &text, blocked)
                .on_hover_text("Put the selected copies back")
                .clicked()
            {
                let ids = chosen.iter().map(|copy| copy.id).collect();
                let destination = chosen[0].destination.clone();
                let again = chosen
                    .iter()
                    .filter(|copy| copy.restored_by.is_some())
                    .count();
                cx.dialog(Dialog::Restore(RestoreDialog::new(
                    RestoreWhich::Ids(ids),
                    chosen.len() as u64,
                    destination,
                    again as u64,
                    cx.state,
                )));
            }
            if quiet_button(
                ui,
                "Select all shown",
                shown.is_empty().then_some("Nothing is shown"),
            )
            .clicked()
            {
                self.selected.clear();
                self.selected.extend(0..shown.len() as u32);
            }
            if !self.selected.is_empty() {
                ui.label(
                    RichText::new(format!("{} selected", words::count(self.selected.len())))
                        .color(colours(ui).strong),
                );
            }
        });
    }
}

fn content(copy: &SavedCopy, selected: bool, colours: &Colours) -> RowContent {
    let text = if copy.restored_by.is_some() {
        colours.weak
    } else {
        colours.text
    };
    RowContent {
        cells: vec![
            Cell::mono(words::moment(copy.saved), colours.weak),
            Cell::new(&copy.destination, text),
            Cell::mono(
                copy.sha256.chars().take(12).collect::<String>(),
                colours.weak,
            ),
            Cell::new(copy.restored_by.clone().unwrap_or_default(), colours.fine),
            Cell::mono(body_of(&copy.line), text),
        ],
        name: format!("Copy {} of {}", copy.id, copy.destination),
        ground: None,
        state: if selected { Picked::Yes } else { Picked::No },
        shape: Shape::Cells,
    }
}

/// The body's part of a capture line, without parsing all of it in a frame.
fn body_of(line: &str) -> String {
    let at = line.find("\"body\":").map_or(0, |at| at + 7);
    line[at..].chars().take(200).collect()
}
