//! Headers and properties with the broker's types, in order, duplicates included.

use dlo_core::{Header, Value};
use dlo_engine::event::Opened;
use egui::{Label, RichText, Ui};

use crate::{
    theme::{Colours, colours},
    values,
    widgets::{
        json_tree::{Hue, cut},
        parts::section,
    },
};

/// Headers that are drawn; a message may carry ten thousand.
const MOST: usize = 400;

/// Draws key, properties and headers.
pub fn headers_ui(ui: &mut Ui, opened: &Opened) {
    let message = &opened.delivery.message;
    if message.key.is_some() || opened.key.is_some() {
        section(ui, "Key");
        let text = values::bytes_line(message.key.as_deref());
        ui.add(Label::new(RichText::new(cut(&text, 2_000)).monospace()).selectable(true));
    }
    if !message.properties.is_empty() {
        section(ui, "Properties");
        grid(
            ui,
            "properties",
            message
                .properties
                .iter()
                .map(|(name, value)| (name.as_str(), "", value)),
        );
    }
    section(ui, "Headers");
    if message.headers.is_empty() {
        ui.weak("None");
    }
    let rows = message.headers.iter().take(MOST).map(parts);
    grid(ui, "headers grid", rows);
    if message.headers.len() > MOST {
        ui.weak(format!(
            "and {} more; all of them are exported and replayed",
            message.headers.len() - MOST
        ));
    }
}

fn parts(header: &Header) -> (&str, &str, &Value) {
    (&header.name, &header.typed.kind, header.value())
}

fn grid<'a>(ui: &mut Ui, salt: &str, rows: impl Iterator<Item = (&'a str, &'a str, &'a Value)>) {
    egui::Grid::new(salt)
        .num_columns(3)
        .spacing([12.0, 4.0])
        .show(ui, |ui| {
            for (name, kind, value) in rows {
                ui.add(Label::new(RichText::new(name).color(colours(ui).key)).selectable(true));
                ui.label(RichText::new(kind).size(11.0).color(colours(ui).weak));
                let text = cut(&values::show(value), 1_000);
                let colour = colour(values::hue(value), colours(ui));
                let response = ui.add(
                    Label::new(RichText::new(&text).monospace().color(colour)).selectable(true),
                );
                response.context_menu(|ui| {
                    if ui.button("Copy value").clicked() {
                        ui.ctx().copy_text(values::show(value));
                        ui.close();
                    }
                    if let Some(bytes) = value.as_bytes()
                        && ui.button("Copy as hexadecimal").clicked()
                    {
                        ui.ctx()
                            .copy_text(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
                        ui.close();
                    }
                });
                ui.end_row();
            }
        });
}

fn colour(hue: Hue, colours: &Colours) -> egui::Color32 {
    match hue {
        Hue::Quoted => colours.quoted,
        Hue::Number => colours.number,
        Hue::Word => colours.accent,
        Hue::Special => colours.warning,
        Hue::Container => colours.text,
    }
}
