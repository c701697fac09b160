//! Saved copies of messages that were removed or rescued, and putting them back.

use dlo_engine::{
    Ask,
    capture::{Captured, parse_line},
    command::CopiesOf,
    event::SavedCopy,
};
use egui::{RichText, ScrollArea, Ui};

use crate::{
    dialogs::{Dialog, restore::RestoreDialog},
    intent::Cx,
    theme::{Colours, colours},
    values,
    widgets::{
        message_table::RowSet,
        parts::{self, button, choice, empty, primary_button, quiet_button, text_field},
        table::{Cell, Column, Picked, RowContent, Shape, Table},
    },
    words,
    work::Work,
};

/// What is shown and selected.
#[derive(Debug, Default)]
pub struct CapturesPanel {
    table: Table,
    destination: String,
    of: CopiesOf,
    selected: RowSet,
    anchor: Option<u64>,
    asked: bool,
    /// The message of the copy that was clicked last, read on a thread: it may be 20 MB long.
    message: Work<Message>,
    /// The copy whose message was asked for.
    opened: Option<i64>,
}

/// A copy as a person reads it.
#[derive(Debug)]
struct Message {
    of: i64,
    facts: Vec<(String, String)>,
    text: String,
}

const COLUMNS: [Column; 5] = [
    Column::left("saved (UTC)", 160.0),
    Column::left("destination", 140.0),
    Column::left("because", 96.0),
    Column::left("restored by", 110.0),
    Column::rest("message"),
];

/// Characters of a message that are shown; the file of an export has all of it.
const MOST: usize = 100_000;

impl CapturesPanel {
    /// Draws the view.
    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) {
        if !self.asked {
            self.asked = true;
            self.ask(cx);
        }
        self.message.poll();
        let all = cx.state.captures.value().cloned().unwrap_or_default();
        let wanted = self.destination.trim().to_lowercase();
        let shown: Vec<&SavedCopy> = all
            .iter()
            .filter(|copy| wanted.is_empty() || copy.destination.to_lowercase().contains(&wanted))
            .collect();
        egui::Frame::new()
            .inner_margin(egui::Margin::symmetric(10, 8))
            .show(ui, |ui| self.head(ui, cx, &shown));
        if shown.is_empty() {
            empty(
                ui,
                "No saved copies",
                "Discarded and rescued messages appear here.",
            );
            return;
        }
        if let Some(message) = self.message.answer.as_ref()
            && self.opened == Some(message.of)
        {
            egui::Panel::bottom("saved copy")
                .resizable(true)
                .default_size(220.0)
                .show(ui, |ui| message_ui(ui, message));
        }
        egui::CentralPanel::no_frame().show(ui, |ui| self.table(ui, &shown));
    }

    /// Another page is open; the next visit asks again.
    pub fn left(&mut self) {
        self.asked = false;
    }

    fn ask(&self, cx: &mut Cx<'_>) {
        cx.ask(Ask::Captures {
            destination: None,
            of: self.of,
        });
    }

    fn head(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, shown: &[&SavedCopy]) {
        ui.horizontal_wrapped(|ui| {
            ui.heading("Saved copies");
            let field = text_field(
                ui,
                "Filter by destination",
                &mut self.destination,
                "destination",
                150.0,
            );
            let choices = [
                (
                    CopiesOf::Removed,
                    "taken away",
                    "Of messages that were discarded, purged or resolved, or rescued by a look",
                ),
                (
                    CopiesOf::Everything,
                    "all",
                    "Also of messages that a replay has sent: they are for the record",
                ),
            ];
            let other = choice(ui, &mut self.of, &choices);
            if field.changed() || other {
                self.selected.clear();
            }
            if button(ui, "Refresh", None)
                .on_hover_text("Read the saved copies again")
                .clicked()
                || other
            {
                self.ask(cx);
            }
        });
        ui.weak("Every message is saved before it is removed. Copies can be put back where they were, or elsewhere.");
        cx.state.captures.status_ui(ui);
        self.restore(ui, cx, shown);
    }

    fn table(&mut self, ui: &mut Ui, shown: &[&SavedCopy]) {
        let colours = colours(ui);
        let selected = &self.selected;
        let total = shown.len() as u64;
        let touched = self
            .table
            .show(ui, "Saved copies", &COLUMNS, total, |index| {
                let picked = selected.contains(index as u32);
                content(shown[index as usize], picked, colours)
            });
        let Some(click) = touched.clicked else {
            return;
        };
        self.pick(click.row, click.modifiers);
        if let Some(copy) = shown.get(click.row as usize)
            && self.opened != Some(copy.id)
        {
            self.opened = Some(copy.id);
            let (id, line) = (copy.id, copy.line.clone());
            self.message.start(ui.ctx(), move || read(id, &line));
        }
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
                cx.dialog(Dialog::Restore(RestoreDialog::new(&chosen, cx.state)));
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
            Cell::new(because(&copy.act), text),
            Cell::new(copy.restored_by.clone().unwrap_or_default(), colours.fine),
            Cell::mono(&copy.preview, text),
        ],
        name: format!("Copy {} of {}", copy.id, copy.destination),
        ground: None,
        state: if selected { Picked::Yes } else { Picked::No },
        shape: Shape::Cells,
    }
}

/// Why a copy was saved.
fn because(act: &str) -> &str {
    match act {
        "look" => "rescued",
        act => words::past(act),
    }
}

fn message_ui(ui: &mut Ui, message: &Message) {
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        let text = RichText::new(&message.text).monospace();
        ui.add(egui::Label::new(text).selectable(true).wrap());
        ui.separator();
        parts::facts(ui, "saved copy", |ui| {
            for (name, value) in &message.facts {
                parts::fact(ui, name, value);
            }
        });
    });
}

fn read(id: i64, line: &str) -> Message {
    let (facts, text) = match parse_line(line) {
        Ok(captured) => (facts(&captured), text(&captured)),
        Err(error) => (Vec::new(), format!("This copy cannot be read: {error}")),
    };
    Message {
        of: id,
        facts,
        text,
    }
}

fn facts(captured: &Captured) -> Vec<(String, String)> {
    let delivery = &captured.delivery;
    let mut facts = vec![
        ("Was in".to_owned(), captured.destination.clone()),
        ("Position".to_owned(), delivery.position.to_string()),
        ("sha256".to_owned(), delivery.message.sha256()),
    ];
    let time = delivery.time.map(words::moment);
    facts.extend(time.map(|time| ("Time".to_owned(), time)));
    let head = values::lines(&delivery.message);
    facts.push(("Headers".to_owned(), head.trim_end().to_owned()));
    facts
}

/// The body: JSON in lines, other text as it is, bytes in hexadecimal.
fn text(captured: &Captured) -> String {
    let Some(body) = captured.delivery.message.body.as_deref() else {
        return "The body is null.".to_owned();
    };
    let pretty = serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok());
    let text = match (pretty, std::str::from_utf8(body)) {
        (_, Ok("")) => "The body is empty.".to_owned(),
        (Some(pretty), _) => pretty,
        (None, Ok(text)) => text.to_owned(),
        (None, Err(_)) => dlo_engine::store::preview(body, MOST / 2),
    };
    crate::widgets::json_tree::cut(&text, MOST)
}
