//! A profile: a named connection with its mode, secrets, header mappings and schema registry.

use std::fmt;

use dlo_core::{Secret, Secrets};
use dlo_engine::{
    Ask,
    command::KeepSecrets,
    profile::{Mode, Profile},
};
use egui::{RichText, ScrollArea, Ui};

use super::{Then, connect::wrong_url, finish_ui};
use crate::{
    intent::{Cx, Intent},
    remote::Remote,
    state::Purpose,
    theme::colours,
    widgets::parts::{
        Tone, button, callout, caption, choice, danger_button, primary_button, quiet_button,
        secret_field, section, text_field,
    },
};

/// A profile while it is edited.
#[derive(Default)]
pub struct ProfileDialog {
    profile: Profile,
    /// The name under which it is saved already.
    saved_as: Option<String>,
    password: String,
    keep: Keep,
    passphrase: String,
    /// Header mappings as they are typed.
    headers: Vec<(String, String)>,
    registry: String,
    removing: bool,
    tested: bool,
}

/// Without what was typed as a secret.
impl fmt::Debug for ProfileDialog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProfileDialog({})", self.profile.name)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Keep {
    #[default]
    Nowhere,
    Keychain,
    Encrypted,
    PlainText,
}

const FIELDS: [&str; 8] = [
    "reason.class",
    "reason.message",
    "reason.stack",
    "origin.queue",
    "origin.topic",
    "origin.exchange",
    "attempts",
    "last",
];

impl ProfileDialog {
    /// Edits a saved profile.
    pub fn of(profile: &Profile) -> Self {
        Self {
            saved_as: Some(profile.name.clone()),
            headers: profile.headers.clone().into_iter().collect(),
            registry: profile.registry.clone().unwrap_or_default(),
            profile: profile.clone(),
            ..Self::default()
        }
    }

    /// A new profile for a URL; a password in it is taken out when it is saved.
    pub fn with_url(url: &str) -> Self {
        let mut dialog = Self::default();
        dialog.profile.url = url.trim().to_owned();
        dialog
    }

    pub fn title(&self) -> String {
        match &self.saved_as {
            Some(name) => format!("Profile {name}"),
            None => "New profile".to_owned(),
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        let height = (ui.ctx().content_rect().height() - 220.0).max(160.0);
        ScrollArea::vertical().max_height(height).show(ui, |ui| {
            self.place(ui, cx);
            self.mode(ui);
            self.secrets(ui);
            self.more(ui);
        });
        let wrong = self.wrong(cx);
        if let Some(why) = wrong
            .as_deref()
            .filter(|_| !self.profile.url.is_empty() && !self.profile.name.is_empty())
        {
            ui.label(RichText::new(why).color(colours(ui).danger));
        }
        self.test_result(ui, cx);
        let mut removed = false;
        let (acted, then) = finish_ui(ui, |ui| {
            let acted = primary_button(ui, "Save", wrong.as_deref()).clicked();
            let url_wrong = wrong_url(&self.profile.url, cx);
            if button(ui, "Test connection", url_wrong.as_deref())
                .on_hover_text("Connects, changes nothing, and disconnects")
                .clicked()
            {
                self.test(cx);
            }
            removed = self.remove(ui, cx);
            acted
        });
        if acted {
            self.save(cx);
        }
        if acted || removed { Then::Close } else { then }
    }

    fn place(&mut self, ui: &mut Ui, cx: &Cx<'_>) {
        let width = ui.available_width() - 8.0;
        caption(ui, "Name");
        text_field(
            ui,
            "Profile name",
            &mut self.profile.name,
            "orders-prod",
            width,
        );
        caption(ui, "URL, without the password");
        text_field(
            ui,
            "Profile URL",
            &mut self.profile.url,
            "amqps://app@mq.example:5671/orders",
            width,
        );
        let scheme = self.profile.url.split(':').next().unwrap_or_default();
        let text = match cx
            .brokers
            .iter()
            .find(|broker| broker.schemes.contains(&scheme))
        {
            Some(broker) => format!("{}: for example {}", broker.label, broker.example),
            None => {
                let examples: Vec<_> = cx.brokers.iter().map(|broker| broker.example).collect();
                format!("For example {}", examples.join("   "))
            }
        };
        ui.add(egui::Label::new(RichText::new(text).color(colours(ui).weak)).wrap());
    }

    fn mode(&mut self, ui: &mut Ui) {
        section(ui, "Mode");
        let modes = [
            (Mode::Normal, "Normal", "Changes need a reason"),
            (
                Mode::Production,
                "Production",
                "Changes need a reason and the destination's name, typed",
            ),
            (Mode::ReadOnly, "Read-only", "Changes are refused"),
        ];
        choice(ui, &mut self.profile.mode, &modes);
    }

    fn secrets(&mut self, ui: &mut Ui) {
        section(ui, "Password or token");
        let width = ui.available_width() - 8.0;
        let hint = if self.saved_as.is_some() {
            "leave empty to keep what is stored"
        } else {
            "leave empty if it needs none"
        };
        secret_field(ui, "Password", &mut self.password, hint, width);
        if self.password.is_empty() {
            return;
        }
        caption(ui, "Keep it");
        let places = [
            (
                Keep::Nowhere,
                "nowhere",
                "It is asked for at each start, or comes from the environment",
            ),
            (
                Keep::Keychain,
                "in the keychain",
                "The platform's own store for secrets",
            ),
            (
                Keep::Encrypted,
                "in an encrypted file",
                "Encrypted with a passphrase",
            ),
            (
                Keep::PlainText,
                "in plain text",
                "Anybody who can read your files can read it",
            ),
        ];
        choice(ui, &mut self.keep, &places);
        match self.keep {
            Keep::Encrypted => {
                secret_field(
                    ui,
                    "Passphrase",
                    &mut self.passphrase,
                    "passphrase of the file",
                    width,
                );
            }
            Keep::PlainText => callout(
                ui,
                Tone::Warning,
                "Anybody who can read your files can read this password.",
            ),
            _ => {}
        }
    }

    fn more(&mut self, ui: &mut Ui) {
        let width = ui.available_width() - 8.0;
        section(ui, "Schema registry");
        text_field(
            ui,
            "Schema registry URL",
            &mut self.registry,
            "https://registry.example:8081, or empty",
            width,
        );
        section(ui, "Headers of your own");
        ui.weak("Which of your headers says why a message failed.");
        let mut gone = None;
        for (index, (header, field)) in self.headers.iter_mut().enumerate() {
            ui.horizontal(|ui| {
                text_field(
                    ui,
                    &format!("Header name {}", index + 1),
                    header,
                    "x-error",
                    180.0,
                );
                ui.weak("is");
                let combo =
                    egui::ComboBox::from_id_salt(("field", index)).selected_text(field.as_str());
                let response = combo.show_ui(ui, |ui| {
                    for choice in FIELDS {
                        ui.selectable_value(field, choice.to_owned(), choice);
                    }
                });
                response
                    .response
                    .accessible_name(format!("Field {}", index + 1));
                if quiet_button(ui, "×", None)
                    .accessible_name(format!("Remove mapping {}", index + 1))
                    .clicked()
                {
                    gone = Some(index);
                }
            });
        }
        if let Some(index) = gone {
            self.headers.remove(index);
        }
        if quiet_button(ui, "Add a header", None).clicked() {
            self.headers.push((String::new(), FIELDS[1].to_owned()));
        }
        section(ui, "Notes");
        text_field(ui, "Profile notes", &mut self.profile.notes, "", width);
    }

    fn wrong(&self, cx: &Cx<'_>) -> Option<String> {
        let name = self.profile.name.trim();
        if name.is_empty() {
            return Some("Give it a name first.".to_owned());
        }
        if name.contains(':') {
            return Some("A name cannot contain a colon, as it would look like a URL.".to_owned());
        }
        let taken = cx
            .state
            .profiles
            .value()
            .is_some_and(|profiles| profiles.iter().any(|profile| profile.name == name));
        if taken && self.saved_as.as_deref() != Some(name) {
            return Some(format!("There is a profile {name} already."));
        }
        if self.keep == Keep::Encrypted && !self.password.is_empty() && self.passphrase.is_empty() {
            return Some("The encrypted file needs a passphrase.".to_owned());
        }
        wrong_url(&self.profile.url, cx)
    }

    fn typed(&self) -> Secrets {
        let mut secrets = Secrets::default();
        if !self.password.is_empty() {
            secrets.insert("password", Secret::new(self.password.clone()));
        }
        secrets
    }

    fn test(&mut self, cx: &mut Cx<'_>) {
        self.tested = true;
        let ask = Ask::Connect {
            place: self.profile.url.trim().to_owned(),
            secrets: self.typed(),
            registry: None,
        };
        cx.want(Intent::AskAs(ask, Purpose::Test));
    }

    fn test_result(&self, ui: &mut Ui, cx: &Cx<'_>) {
        if !self.tested {
            return;
        }
        match &cx.state.test {
            Remote::Ready(server) => {
                let version = server.version.clone().unwrap_or_default();
                callout(
                    ui,
                    Tone::Fine,
                    &format!("It works: {} {version}", server.product),
                );
                for (name, value) in &server.facts {
                    ui.weak(format!("{name}: {value}"));
                }
            }
            other => other.status_ui(ui),
        }
    }

    fn remove(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> bool {
        let Some(name) = self.saved_as.clone() else {
            return false;
        };
        if !self.removing {
            self.removing = quiet_button(ui, "Remove…", None).clicked();
            return false;
        }
        let clicked = danger_button(ui, &format!("Remove profile {name}"), None).clicked();
        if clicked {
            cx.ask(Ask::RemoveProfile { name });
        }
        clicked
    }

    fn save(&mut self, cx: &mut Cx<'_>) {
        let mut profile = self.profile.clone();
        profile.name = profile.name.trim().to_owned();
        let mut secrets = self.typed();
        // A password typed into the URL is a secret like any other, and leaves the URL.
        if let Ok((endpoint, found)) = dlo_core::Endpoint::parse(&profile.url)
            && !found.is_empty()
        {
            for (name, secret) in found.iter() {
                secrets.insert(name, secret.clone());
            }
            profile.url = endpoint.to_string();
        }
        profile.registry =
            (!self.registry.trim().is_empty()).then(|| self.registry.trim().to_owned());
        let named = self
            .headers
            .iter()
            .filter(|(header, _)| !header.trim().is_empty());
        profile.headers = named
            .map(|(header, field)| (header.trim().to_owned(), field.clone()))
            .collect();
        let keep = match self.keep {
            Keep::Nowhere => KeepSecrets::Nowhere,
            Keep::Keychain => KeepSecrets::Keychain,
            Keep::Encrypted => KeepSecrets::Encrypted(Secret::new(self.passphrase.clone())),
            Keep::PlainText => KeepSecrets::PlainText,
        };
        if let Some(old) = self.saved_as.as_ref().filter(|old| **old != profile.name) {
            cx.ask(Ask::RemoveProfile { name: old.clone() });
        }
        cx.ask(Ask::SaveProfile {
            profile,
            secrets,
            keep,
        });
    }
}
