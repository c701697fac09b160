//! The decoded payload: layers as chips, the value as a tree or as text, the decode report, another way to decode.

use std::sync::Arc;

use dlo_engine::{command::DecodeAs, event::Opened};
use egui::{RichText, ScrollArea, Ui};

use crate::{
    intent::{Cx, Intent},
    payload,
    state::LookState,
    theme::colours,
    widgets::{
        json_tree::JsonTree,
        parts::{self, Tone, chip, choice, quiet_button, text_field},
    },
};

/// How the payload is shown.
#[derive(Debug, Default)]
pub struct PayloadView {
    form: Form,
    recipe: String,
    /// What is shown, with the message it was made from.
    made: Option<(u64, Shown)>,
    schema_open: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Tree,
    Text,
}

/// What is drawn, made once a message.
#[derive(Debug)]
struct Shown {
    opened: Arc<Opened>,
    text: String,
}

impl PayloadView {
    /// Draws the payload of a message.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        cx: &mut Cx<'_>,
        look: &LookState,
        opened: &Arc<Opened>,
        tree: &mut JsonTree,
        version: u64,
    ) {
        let stale = self
            .made
            .as_ref()
            .is_none_or(|(of, shown)| *of != version || !Arc::ptr_eq(&shown.opened, opened));
        if stale {
            let text = payload::readable(opened);
            self.made = Some((
                version,
                Shown {
                    opened: opened.clone(),
                    text,
                },
            ));
        }
        self.chips(ui, cx, look, opened);
        self.report(ui, opened);
        let message = &opened.delivery.message;
        match message.body.as_deref() {
            None => {
                return parts::empty(
                    ui,
                    "null",
                    "The body is null, which is not the same as empty.",
                );
            }
            Some([]) => {
                return parts::empty(
                    ui,
                    "empty",
                    "The body has no bytes, which is not the same as null.",
                );
            }
            Some(_) => {}
        }
        let has_tree = payload::has_tree(opened);
        ui.horizontal(|ui| {
            if has_tree {
                choice(
                    ui,
                    &mut self.form,
                    &[(Form::Tree, "Tree", ""), (Form::Text, "Text", "")],
                );
            }
            if quiet_button(ui, "Copy all", None).clicked()
                && let Some((_, shown)) = &self.made
            {
                ui.ctx().copy_text(shown.text.clone());
            }
        });
        if has_tree && self.form == Form::Tree {
            payload::tree_ui(ui, opened, tree, version);
        } else if let Some((_, shown)) = &self.made {
            text_ui(ui, &shown.text);
        }
    }

    fn chips(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState, opened: &Opened) {
        ui.horizontal_wrapped(|ui| {
            for (name, detail) in payload::chips(opened) {
                let response = chip(ui, &name, Tone::Accent);
                if !detail.is_empty() {
                    response.on_hover_text(detail);
                }
            }
            if let Some((label, _)) = payload::schema(opened) {
                let response = chip(ui, &label, Tone::Fine).interact(egui::Sense::click());
                if response.on_hover_text("Show the schema").clicked() {
                    self.schema_open = !self.schema_open;
                }
            }
            let response = ui.menu_button("Decode as", |ui| {
                ui.set_min_width(280.0);
                ui.weak("Layers and format, outermost first, for example gzip+json");
                text_field(ui, "Decode as", &mut self.recipe, "gzip+json", 260.0);
                ui.horizontal(|ui| {
                    let missing = self
                        .recipe
                        .trim()
                        .is_empty()
                        .then_some("Write a recipe first");
                    if parts::button(ui, "This message", missing).clicked() {
                        cx.want(Intent::OpenMessage(
                            look.id,
                            opened.row,
                            DecodeAs::Recipe(self.recipe.trim().to_owned()),
                        ));
                        ui.close();
                    }
                    if parts::button(ui, "All of this destination", missing)
                        .on_hover_text("It is remembered")
                        .clicked()
                    {
                        cx.want(Intent::OpenMessage(
                            look.id,
                            opened.row,
                            DecodeAs::Remember(self.recipe.trim().to_owned()),
                        ));
                        ui.close();
                    }
                });
                if ui.button("As detected").clicked() {
                    cx.want(Intent::OpenMessage(
                        look.id,
                        opened.row,
                        DecodeAs::Remember(String::new()),
                    ));
                    ui.close();
                }
            });
            response
                .response
                .on_hover_text("Choose layers and format by hand");
        });
    }

    fn report(&self, ui: &mut Ui, opened: &Opened) {
        if self.schema_open
            && let Some((_, text)) = payload::schema(opened)
        {
            ScrollArea::both()
                .id_salt("schema")
                .max_height(180.0)
                .show(ui, |ui| {
                    ui.add(egui::Label::new(RichText::new(text).monospace()).selectable(true));
                });
        }
        let notes = payload::notes(opened);
        for (tone, text) in notes.iter().filter(|(tone, _)| *tone == Tone::Warning) {
            ui.add(egui::Label::new(RichText::new(text).color(tone.text(colours(ui)))).wrap());
        }
        let rest: Vec<_> = notes
            .iter()
            .filter(|(tone, _)| *tone != Tone::Warning)
            .collect();
        if !rest.is_empty() {
            let title = format!("Decode report ({})", rest.len());
            egui::CollapsingHeader::new(title)
                .id_salt("report")
                .show(ui, |ui| {
                    for (_, text) in rest {
                        ui.add(
                            egui::Label::new(
                                RichText::new(text).size(11.5).color(colours(ui).weak),
                            )
                            .wrap(),
                        );
                    }
                });
        }
    }
}

/// Text beyond this is cut on screen; the raw tab has all bytes.
const LONGEST: usize = 200_000;

fn text_ui(ui: &mut Ui, text: &str) {
    let cut = text
        .char_indices()
        .nth(LONGEST)
        .map_or(text, |(at, _)| &text[..at]);
    ScrollArea::both()
        .id_salt("text")
        .auto_shrink(false)
        .show(ui, |ui| {
            ui.add(
                egui::Label::new(RichText::new(cut).monospace())
                    .selectable(true)
                    .wrap_mode(egui::TextWrapMode::Extend),
            );
            if cut.len() < text.len() {
                ui.weak("Cut here; the Raw tab has all bytes.");
            }
        });
}
