//! Writing audit entries to a file.

use dlo_engine::{
    Ask,
    command::{AuditAsk, AuditView},
};
use egui::Ui;

use super::{Then, finish_ui};
use crate::{
    files::Wanted,
    intent::{Cx, Intent},
    widgets::{
        parts::{caption, primary_button},
        path_field::{self, Chosen},
    },
};

/// Which entries, and where to.
#[derive(Debug)]
pub struct ExportAuditDialog {
    query: AuditAsk,
    pub path: String,
}

impl ExportAuditDialog {
    pub fn new(query: AuditAsk) -> Self {
        Self {
            query: AuditAsk {
                view: AuditView::Messages,
                limit: u64::MAX,
                offset: 0,
                ..query
            },
            path: String::new(),
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        ui.weak("All entries that match the filters, as newline-delimited JSON with their hashes.");
        caption(ui, "File");
        if path_field::path_field(ui, "File", &mut self.path, cx.no_dialog) == Chosen::Dialog {
            cx.want(Intent::PickFile(Wanted::Save {
                name: "audit.ndjson".to_owned(),
            }));
        }
        let file = path_field::parse(&self.path);
        let missing = file.is_none().then_some("Choose a file first");
        let (acted, then) = finish_ui(ui, |ui| primary_button(ui, "Export", missing).clicked());
        match file {
            Some(file) if acted => {
                let query = self.query.clone();
                cx.ask(Ask::ExportAudit { query, file });
                Then::Close
            }
            _ => then,
        }
    }
}
