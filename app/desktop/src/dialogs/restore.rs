//! Putting saved copies back.

use dlo_engine::{
    Ask,
    command::{Answers, ConnectionId, RestoreWhich},
    event::SavedCopy,
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
    warnings: Vec<String>,
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
    /// For some saved copies of which there is at least one.
    pub fn new(copies: &[&SavedCopy], state: &AppState) -> Self {
        let destination = copies
            .first()
            .map(|copy| copy.destination.clone())
            .unwrap_or_default();
        let connection = state
            .active_connection()
            .or_else(|| state.connections.first());
        Self {
            which: RestoreWhich::Ids(copies.iter().map(|copy| copy.id).collect()),
            count: copies.len() as u64,
            warnings: warnings(copies),
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
        callout(
            ui,
            Tone::Plain,
            "A restored message is published again: it goes to the end of its queue or topic, behind everything that is there now.",
        );
        for warning in &self.warnings {
            callout(ui, Tone::Warning, warning);
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

/// Why putting these back would make duplicates, in sentences.
fn warnings(copies: &[&SavedCopy]) -> Vec<String> {
    let count = |wanted: &dyn Fn(&SavedCopy) -> bool| {
        copies.iter().filter(|copy| wanted(copy)).count() as u64
    };
    let cases = [
        (
            count(&|copy| copy.restored_by.is_some()),
            "restored before; put back again they would be there twice.",
        ),
        (
            count(&|copy| {
                matches!(
                    copy.act.as_str(),
                    "replay" | "import" | "restore" | "tombstone"
                )
            }),
            "copies of messages that were sent already; restoring makes duplicates of them.",
        ),
        (
            count(&|copy| copy.act == "resolve"),
            "only marked as resolved, and still in their topic; restoring adds second ones. Take back the mark instead.",
        ),
    ];
    let told = cases.into_iter().filter(|(count, _)| *count > 0);
    told.map(|(count, text)| {
        let verb = if count == 1 { "is" } else { "are" };
        format!("{} of these {verb} {text}", words::count(count))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use dlo_core::Millis;

    use super::*;

    #[test]
    fn copies_of_what_was_sent_or_is_still_there_are_told_apart() {
        let copy = |act: &str| SavedCopy {
            id: 1,
            run: "r".to_owned(),
            act: act.to_owned(),
            destination: "orders.dlq".to_owned(),
            sha256: String::new(),
            saved: Millis(0),
            restored_by: None,
            preview: String::new(),
            size: None,
            line: "{}".into(),
        };
        let (discarded, replayed, resolved) = (copy("discard"), copy("replay"), copy("resolve"));
        assert!(warnings(&[&discarded]).is_empty());
        let told = warnings(&[&discarded, &replayed, &replayed, &resolved]);
        assert!(told[0].starts_with("2 of these are copies of messages that were sent"));
        assert!(told[1].starts_with("1 of these is only marked"));
    }
}
