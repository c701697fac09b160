//! Writing messages of a look to a file.

use dlo_engine::{
    Ask,
    command::{ExportFormat, LookId, Selection},
};
use egui::Ui;

use super::{Then, finish_ui};
use crate::{
    files::Wanted,
    intent::{Cx, Intent},
    widgets::{
        parts::{Tone, callout, caption, choice, primary_button, text_field},
        path_field::{self, Chosen},
    },
    words,
};

/// What is exported, and where to.
#[derive(Debug)]
pub struct ExportDialog {
    look: LookId,
    selection: Selection,
    count: u64,
    format: ExportFormat,
    pub path: String,
    why: String,
    name: String,
}

impl ExportDialog {
    pub fn new(look: LookId, selection: Selection, count: u64, destination: &str) -> Self {
        let plain = |c: char| {
            if c.is_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        };
        Self {
            look,
            selection,
            count,
            format: ExportFormat::Capture,
            path: String::new(),
            why: String::new(),
            name: destination.chars().map(plain).collect(),
        }
    }

    pub fn title(&self) -> String {
        format!("Export {}", words::counted(self.count, "message"))
    }

    fn file_name(&self) -> String {
        let ending = match self.format {
            ExportFormat::Capture => "ndjson",
            ExportFormat::Csv => "csv",
        };
        format!("{}.{ending}", self.name)
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        let formats = [
            (
                ExportFormat::Capture,
                "Capture file",
                "Newline-delimited JSON",
            ),
            (ExportFormat::Csv, "CSV", "For people and spreadsheets"),
        ];
        choice(ui, &mut self.format, &formats);
        match self.format {
            ExportFormat::Capture => {
                ui.weak("Lossless: importing it gives back the same bytes, headers and types.");
            }
            ExportFormat::Csv => {
                callout(
                    ui,
                    Tone::Warning,
                    "CSV loses types, bytes that are not text, and header order. It cannot be imported.",
                );
            }
        }
        caption(ui, "File");
        if path_field::path_field(ui, "File", &mut self.path, cx.no_dialog) == Chosen::Dialog {
            cx.want(Intent::PickFile(Wanted::Save {
                name: self.file_name(),
            }));
        }
        caption(ui, "Reason, for the audit trail (optional)");
        let width = ui.available_width();
        text_field(
            ui,
            "Reason",
            &mut self.why,
            "for the developer of orders",
            width,
        );
        let file = path_field::parse(&self.path);
        let missing = file.is_none().then_some("Choose a file first");
        let text = self.title();
        let (acted, then) = finish_ui(ui, |ui| primary_button(ui, &text, missing).clicked());
        match file {
            Some(file) if acted => {
                cx.ask(Ask::Export {
                    look: self.look,
                    selection: self.selection.clone(),
                    file,
                    format: self.format,
                    why: self.why.trim().to_owned(),
                });
                Then::Close
            }
            _ => then,
        }
    }
}
