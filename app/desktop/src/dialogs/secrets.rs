//! A password asked for after the broker refused to let us in.

use dlo_core::{Secret, Secrets};
use egui::Ui;

use super::{Then, finish_ui};
use crate::{
    intent::{Cx, Intent},
    widgets::parts::{primary_button, secret_field},
};

/// What was typed, and for which place.
#[derive(Debug)]
pub struct SecretsDialog {
    place: String,
    password: Secret,
}

impl SecretsDialog {
    pub fn new(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            password: Secret::new(""),
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        ui.label(format!(
            "Password for {}. It is used now and not stored.",
            self.place
        ));
        let width = ui.available_width();
        let mut typed = self.password.expose().to_owned();
        secret_field(ui, "Password", &mut typed, "", width);
        self.password = Secret::new(typed);
        let missing = self
            .password
            .expose()
            .is_empty()
            .then_some("Type the password first");
        let (acted, then) = finish_ui(ui, |ui| primary_button(ui, "Connect", missing).clicked());
        if acted {
            let mut secrets = Secrets::default();
            secrets.insert("password", self.password.clone());
            cx.want(Intent::Connect(self.place.clone(), secrets));
            return Then::Close;
        }
        then
    }
}
