//! A file to choose: a path that can be typed, with the platform's dialog beside it.

use std::path::PathBuf;

use egui::{Response, Ui};

use super::parts::{button, text_field};

/// Draws a path to type and a button for the dialog. True when the dialog is asked for; `unavailable` says why there is none.
pub fn path_field(ui: &mut Ui, name: &str, path: &mut String, unavailable: Option<&str>) -> Chosen {
    let mut chosen = Chosen::Nothing;
    ui.horizontal(|ui| {
        let width = (ui.available_width() - 96.0).max(120.0);
        let field: Response = text_field(ui, name, path, "Type a path, or browse", width);
        if field.changed() {
            chosen = Chosen::Typed;
        }
        if button(ui, "Browse…", unavailable).clicked() {
            chosen = Chosen::Dialog;
        }
    });
    chosen
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    Nothing,
    Typed,
    Dialog,
}

/// The path that was typed, with `~` as the home folder; `None` when it is empty.
pub fn parse(path: &str) -> Option<PathBuf> {
    let path = path.trim();
    if path.is_empty() {
        return None;
    }
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Some(PathBuf::from(home).join(rest)),
        _ => Some(PathBuf::from(path)),
    }
}
