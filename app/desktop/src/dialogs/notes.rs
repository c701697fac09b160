//! Owner, runbook and notes of a destination, kept on this machine.

use dlo_core::Address;
use dlo_engine::{
    Ask,
    command::{ConnectionId, Notes},
    event::Listed,
};
use egui::{TextEdit, Ui};

use super::{Then, finish_ui};
use crate::{
    intent::Cx,
    widgets::parts::{caption, primary_button, text_field},
};

/// Notes while they are edited.
#[derive(Debug)]
pub struct NotesDialog {
    connection: ConnectionId,
    address: Address,
    owner: String,
    runbook: String,
    text: String,
}

impl NotesDialog {
    pub fn new(connection: ConnectionId, listed: &Listed) -> Self {
        Self {
            connection,
            address: listed.destination.address.clone(),
            owner: listed.notes.owner.clone().unwrap_or_default(),
            runbook: listed.notes.runbook.clone().unwrap_or_default(),
            text: listed.notes.text.clone(),
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
            .desired_rows(5)
            .desired_width(width);
        ui.add(edit).accessible_name("Notes");
        let (acted, then) = finish_ui(ui, |ui| primary_button(ui, "Save", None).clicked());
        if !acted {
            return then;
        }
        let given = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        cx.ask(Ask::SaveNotes {
            connection: self.connection,
            address: self.address.clone(),
            notes: Notes {
                owner: given(&self.owner),
                runbook: given(&self.runbook),
                text: self.text.trim().to_owned(),
            },
        });
        Then::Close
    }
}
