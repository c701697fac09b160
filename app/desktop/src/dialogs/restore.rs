//! Putting saved copies back.

use dlo_engine::{
    Ask,
    command::{Answers, ConnectionId, RestoreWhich},
    profile::Mode,
};
use egui::{ComboBox, Ui};

use super::{Then, finish_ui};
use crate::{
    intent::Cx,
    state::AppState,
    widgets::{
        confirm::Confirmation,
        parts::{Tone, callout, caption, choice, primary_button, text_field},
    },
    words,
};

/// Which copies, and where to.
#[derive(Debug)]
pub struct RestoreDialog {
    which: RestoreWhich,
    count: u64,
    destination: String,
    /// Copies that were restored before.
    again: u64,
    connection: Option<ConnectionId>,
    elsewhere: Elsewhere,
    to: String,
    confirmation: Confirmation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elsewhere {
    Back,
    Other,
}

impl RestoreDialog {
    pub fn new(
        which: RestoreWhich,
        count: u64,
        destination: String,
        again: u64,
        state: &AppState,
    ) -> Self {
        let connection = state
            .active_connection()
            .or_else(|| state.connections.first());
        Self {
            which,
            count,
            again,
            connection: connection.map(|connection| connection.id),
            elsewhere: Elsewhere::Back,
            to: destination.clone(),
            destination,
            confirmation: Confirmation::default(),
        }
    }

    pub fn title(&self) -> String {
        format!("Restore {}", words::counted(self.count, "message"))
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        if self.again > 0 {
            let text = format!(
                "{} of these were restored before; they would be there twice.",
                words::count(self.again)
            );
            callout(ui, Tone::Warning, &text);
        }
        self.place(ui, cx.state);
        let name = self.must_type(cx.state);
        self.confirmation.show(ui, name.as_deref());
        let missing = self.missing(cx.state, name.as_deref());
        let text = self.title();
        let (acted, then) = finish_ui(ui, |ui| {
            primary_button(ui, &text, missing.as_deref()).clicked()
        });
        match self.connection {
            Some(connection) if acted => {
                cx.ask(Ask::Restore {
                    connection,
                    captures: self.which.clone(),
                    to: (self.elsewhere == Elsewhere::Other).then(|| self.to.trim().to_owned()),
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

    fn place(&mut self, ui: &mut Ui, state: &AppState) {
        caption(ui, "On");
        let chosen = self.connection.and_then(|id| state.connection(id));
        let label = chosen
            .map(|connection| connection.label.clone())
            .unwrap_or_default();
        let combo = ComboBox::from_id_salt("restore connection").selected_text(label);
        let response = combo.show_ui(ui, |ui| {
            for connection in &state.connections {
                ui.selectable_value(&mut self.connection, Some(connection.id), &connection.label);
            }
        });
        response.response.accessible_name("Connection");
        let places = [
            (
                Elsewhere::Back,
                "where they were",
                "Each to the destination it was saved from",
            ),
            (Elsewhere::Other, "elsewhere", ""),
        ];
        choice(ui, &mut self.elsewhere, &places);
        if self.elsewhere == Elsewhere::Other {
            let width = ui.available_width();
            text_field(
                ui,
                "Destination",
                &mut self.to,
                "orders, or exchange:NAME/KEY",
                width,
            );
        }
    }

    fn must_type(&self, state: &AppState) -> Option<String> {
        let connection = state.connection(self.connection?)?;
        let name = match self.elsewhere {
            Elsewhere::Other => self.to.trim().to_owned(),
            Elsewhere::Back => self.destination.clone(),
        };
        (connection.mode == Mode::Production).then_some(name)
    }

    fn missing(&self, state: &AppState, name: Option<&str>) -> Option<String> {
        match self.connection.and_then(|id| state.connection(id)) {
            None => Some("Choose a connection first.".to_owned()),
            Some(connection) => connection
                .read_only()
                .map(str::to_owned)
                .or_else(|| self.confirmation.missing(name)),
        }
    }
}
