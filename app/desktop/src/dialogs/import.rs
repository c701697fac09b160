//! Publishing the messages of a capture file.

use dlo_engine::{
    Ask,
    command::{Answers, ConnectionId},
    profile::Mode,
};
use egui::Ui;

use super::{Then, finish_ui};
use crate::{
    files::Wanted,
    intent::{Cx, Intent},
    state::AppState,
    widgets::{
        confirm::Confirmation,
        parts::{Tone, callout, caption, choice, primary_button, text_field},
        path_field::{self, Chosen},
    },
};

/// Which file, and where to.
#[derive(Debug)]
pub struct ImportDialog {
    pub path: String,
    connection: ConnectionId,
    elsewhere: Elsewhere,
    to: String,
    confirmation: Confirmation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elsewhere {
    AsWritten,
    One,
}

impl ImportDialog {
    pub fn new(connection: ConnectionId) -> Self {
        Self {
            path: String::new(),
            connection,
            elsewhere: Elsewhere::AsWritten,
            to: String::new(),
            confirmation: Confirmation::default(),
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        caption(ui, "Capture file");
        if path_field::path_field(ui, "File", &mut self.path, cx.no_dialog) == Chosen::Dialog {
            cx.want(Intent::PickFile(Wanted::Open));
        }
        caption(ui, "Publish to");
        let places = [
            (
                Elsewhere::AsWritten,
                "where each came from",
                "The destination that stands in the file",
            ),
            (Elsewhere::One, "one destination", ""),
        ];
        choice(ui, &mut self.elsewhere, &places);
        if self.elsewhere == Elsewhere::One {
            let width = ui.available_width();
            text_field(
                ui,
                "Destination",
                &mut self.to,
                "orders, or exchange:NAME/KEY",
                width,
            );
        }
        if let Some(connection) = cx.state.connection(self.connection) {
            let text = format!(
                "The messages are published on {}. What is there stays.",
                connection.label
            );
            callout(ui, Tone::Plain, &text);
        }
        let name = self.must_type(cx.state);
        self.confirmation.show(ui, name.as_deref());
        let file = path_field::parse(&self.path);
        let missing = self.missing(file.is_none(), name.as_deref());
        let (acted, then) = finish_ui(ui, |ui| {
            primary_button(ui, "Import", missing.as_deref()).clicked()
        });
        match file {
            Some(file) if acted => {
                cx.ask(Ask::Import {
                    file,
                    connection: self.connection,
                    to: (self.elsewhere == Elsewhere::One).then(|| self.to.trim().to_owned()),
                    why: self.confirmation.why.trim().to_owned(),
                    answers: Answers {
                        typed: name.map(|_| self.confirmation.typed.trim().to_owned()),
                        ..Answers::default()
                    },
                });
                Then::Close
            }
            _ => then,
        }
    }

    /// What has to be typed on production: the destination, or the connection when there are several.
    fn must_type(&self, state: &AppState) -> Option<String> {
        let connection = state.connection(self.connection)?;
        let name = match self.elsewhere {
            Elsewhere::One => self.to.trim().to_owned(),
            Elsewhere::AsWritten => connection.label.clone(),
        };
        (connection.mode == Mode::Production).then_some(name)
    }

    fn missing(&self, no_file: bool, name: Option<&str>) -> Option<String> {
        if no_file {
            return Some("Choose a file first.".to_owned());
        }
        if self.elsewhere == Elsewhere::One && self.to.trim().is_empty() {
            return Some("Name the destination first.".to_owned());
        }
        self.confirmation.missing(name)
    }
}
