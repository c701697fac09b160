//! Connecting by URL, for a first look without a profile.

use dlo_core::{Endpoint, Secret, Secrets};
use egui::{RichText, Ui};

use super::{Dialog, Then, finish_ui, profile::ProfileDialog};
use crate::{
    intent::{Cx, Intent},
    panels::welcome::examples_ui,
    theme::colours,
    widgets::parts::{caption, primary_button, quiet_button, secret_field, section, text_field},
};

/// What was typed.
#[derive(Debug, Default)]
pub struct ConnectDialog {
    url: String,
    password: String,
    started: bool,
}

impl ConnectDialog {
    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        caption(ui, "URL of the broker");
        let width = ui.available_width();
        let field = text_field(
            ui,
            "Broker URL",
            &mut self.url,
            "amqp://user@host:5672/vhost",
            width,
        );
        if !self.started {
            self.started = true;
            field.request_focus();
        }
        caption(ui, "Password, if it needs one and the URL has none");
        secret_field(
            ui,
            "Password",
            &mut self.password,
            "used for this connection, never stored",
            width,
        );
        section(ui, "Examples");
        examples_ui(ui, cx);
        let wrong = self.wrong(cx);
        if let Some(why) = wrong.as_deref().filter(|_| !self.url.is_empty()) {
            ui.label(RichText::new(why).color(colours(ui).danger));
        }
        let enter = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        let (acted, then) = finish_ui(ui, |ui| {
            let acted = primary_button(ui, "Connect", wrong.as_deref()).clicked();
            if quiet_button(ui, "Save as a profile…", wrong.as_deref()).clicked() {
                cx.dialog(Dialog::Profile(ProfileDialog::with_url(&self.url)));
            }
            acted
        });
        if (acted || enter) && wrong.is_none() {
            let mut secrets = Secrets::default();
            if !self.password.is_empty() {
                secrets.insert("password", Secret::new(std::mem::take(&mut self.password)));
            }
            cx.want(Intent::Connect(self.url.trim().to_owned(), secrets));
            return Then::Close;
        }
        then
    }

    fn wrong(&self, cx: &Cx<'_>) -> Option<String> {
        if self.url.trim().is_empty() {
            return Some("Type a URL first.".to_owned());
        }
        wrong_url(&self.url, cx)
    }
}

/// Why a URL cannot be connected to.
pub fn wrong_url(url: &str, cx: &Cx<'_>) -> Option<String> {
    let endpoint = match Endpoint::parse(url) {
        Ok((endpoint, _)) => endpoint,
        Err(error) => return Some(crate::words::sentence(error.what())),
    };
    let known: Vec<&str> = cx
        .brokers
        .iter()
        .flat_map(|broker| broker.schemes.iter().copied())
        .collect();
    let ours = known.contains(&endpoint.scheme.as_str()) || endpoint.scheme == "file";
    (!ours).then(|| {
        format!(
            "Nothing here speaks {}:. Use one of {}.",
            endpoint.scheme,
            known.join(", ")
        )
    })
}
