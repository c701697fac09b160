//! A person's word on a message whose outcome is unknown.

use dlo_engine::{Ask, command::Decision, event::RunMessage};
use egui::Ui;

use super::{Then, finish_ui};
use crate::{
    intent::Cx,
    widgets::{
        confirm::Confirmation,
        parts::{fact, facts, primary_button},
    },
};

/// Which message, and what was found.
#[derive(Debug)]
pub struct ResolveDialog {
    run: String,
    message: RunMessage,
    decision: Decision,
    confirmation: Confirmation,
}

impl ResolveDialog {
    pub fn new(run: &str, message: &RunMessage, decision: Decision) -> Self {
        Self {
            run: run.to_owned(),
            message: message.clone(),
            decision,
            confirmation: Confirmation::default(),
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        facts(ui, "unknown message", |ui| {
            let position = self
                .message
                .position
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            fact(ui, "Position", &position);
            fact(
                ui,
                "Target",
                self.message.target.as_deref().unwrap_or("none"),
            );
            fact(ui, "sha256", &self.message.sha256);
        });
        let (text, button) = match self.decision {
            Decision::Arrived => (
                "You looked at the target and it is there: the journal will say that it arrived.",
                "It arrived",
            ),
            Decision::Missing => (
                "You looked at the target and it is not there: the journal will say that it did not arrive, and it can be replayed again.",
                "It did not arrive",
            ),
        };
        ui.add(egui::Label::new(text).wrap());
        self.confirmation.show(ui, None);
        let missing = self.confirmation.missing(None);
        let (acted, then) = finish_ui(ui, |ui| {
            primary_button(ui, button, missing.as_deref()).clicked()
        });
        if !acted {
            return then;
        }
        cx.ask(Ask::ResolveUnknown {
            run: self.run.clone(),
            sequence: self.message.sequence,
            decision: self.decision,
            why: self.confirmation.why.trim().to_owned(),
        });
        Then::Close
    }
}
