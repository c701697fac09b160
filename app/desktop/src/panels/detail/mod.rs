//! One message: why it died, its payload, headers, raw bytes, what was changed, and what was done with it before.

mod headers;
mod payload;
mod why;

use std::sync::Arc;

use dlo_core::Message;
use dlo_engine::{
    command::{DecodeAs, LookId},
    event::{AuditLine, Opened},
};
use egui::{Align, Button, Layout, RichText, ScrollArea, Ui};

use crate::{
    action::{self, Action},
    dialogs::{Dialog, editor::EditorDialog},
    intent::{Cx, Intent},
    state::LookState,
    theme::{self, colours},
    values,
    widgets::{
        diff_view::{Diff, DiffView},
        hex_view::HexView,
        json_tree::JsonTree,
        parts::{self, Tone, button, chip, quiet_button},
    },
    words,
};

/// View state of the panel.
#[derive(Debug, Default)]
pub struct DetailPanel {
    tab: Tab,
    of: Option<(LookId, u32)>,
    tree: JsonTree,
    hex: HexView,
    diff: DiffView,
    /// The difference that is shown, with the draft it was made of.
    changes: Option<(Message, Diff)>,
    payload: payload::PayloadView,
    version: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tab {
    #[default]
    Why,
    Payload,
    Headers,
    Raw,
    Changes,
    History,
}

const TABS: [(Tab, &str); 6] = [
    (Tab::Why, "Why"),
    (Tab::Payload, "Payload"),
    (Tab::Headers, "Headers"),
    (Tab::Raw, "Raw"),
    (Tab::Changes, "Changes"),
    (Tab::History, "History"),
];

impl DetailPanel {
    /// Draws the message that is open in a look.
    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState) {
        let Some(row) = look.wanted else {
            return;
        };
        self.head(ui, cx, look, row);
        look.opened.status_ui(ui);
        let Some(opened) = look.message().cloned() else {
            return;
        };
        if self.of != Some((look.id, opened.row)) {
            self.of = Some((look.id, opened.row));
            self.version += 1;
            self.changes = None;
            self.hex = HexView::default();
        }
        ui.horizontal_wrapped(|ui| {
            for (tab, text) in TABS {
                let text = match tab {
                    Tab::Headers => format!("{text} {}", opened.delivery.message.headers.len()),
                    Tab::Changes if look.drafts.contains_key(&opened.row) => format!("{text} •"),
                    Tab::History if !opened.history.is_empty() => {
                        format!("{text} {}", opened.history.len())
                    }
                    _ => text.to_owned(),
                };
                if ui.add(Button::selectable(self.tab == tab, text)).clicked() {
                    self.tab = tab;
                }
            }
        });
        ui.separator();
        // What is wider than the panel is cut there, instead of pushing the panel wider.
        let rect = ui.available_rect_before_wrap();
        let mut inner = ui.new_child(egui::UiBuilder::new().max_rect(rect));
        inner.set_clip_rect(rect.intersect(ui.clip_rect()));
        self.body(&mut inner, cx, look, &opened);
        ui.allocate_rect(rect, egui::Sense::hover());
    }

    fn body(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState, opened: &Arc<Opened>) {
        match self.tab {
            Tab::Why => {
                ScrollArea::vertical()
                    .id_salt("why")
                    .auto_shrink(false)
                    .show(ui, |ui| why::why_ui(ui, cx, look, opened));
            }
            Tab::Payload => self
                .payload
                .ui(ui, cx, look, opened, &mut self.tree, self.version),
            Tab::Headers => {
                ScrollArea::both()
                    .id_salt("headers")
                    .auto_shrink(false)
                    .show(ui, |ui| headers::headers_ui(ui, opened));
            }
            Tab::Raw => self.raw(ui, opened),
            Tab::Changes => self.changes_ui(ui, cx, look, opened),
            Tab::History => {
                ScrollArea::vertical()
                    .id_salt("history")
                    .auto_shrink(false)
                    .show(ui, |ui| history_ui(ui, &opened.history));
            }
        }
    }

    fn head(&self, ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState, row: u32) {
        ui.horizontal(|ui| {
            ui.label(
                RichText::new(format!("Message {}", row + 1))
                    .size(15.0)
                    .family(theme::bold())
                    .color(colours(ui).strong),
            );
            if let Some(opened) = look.message() {
                ui.weak(opened.delivery.position.to_string())
                    .on_hover_text("Its place, as the broker counts");
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if quiet_button(ui, "×", None)
                    .accessible_name("Close message")
                    .on_hover_text(crate::panels::top::hint(ui, Action::CloseMessage))
                    .clicked()
                {
                    cx.want(Intent::CloseMessage(look.id));
                }
                let next = row + 1 >= look.view.len();
                if quiet_button(ui, "↓", next.then_some("This is the last row"))
                    .accessible_name("Next message")
                    .on_hover_text("Next message")
                    .clicked()
                {
                    cx.want(Intent::OpenMessage(look.id, row + 1, DecodeAs::Detected));
                }
                let before = row == 0;
                if quiet_button(ui, "↑", before.then_some("This is the first row"))
                    .accessible_name("Previous message")
                    .on_hover_text("Previous message")
                    .clicked()
                {
                    cx.want(Intent::OpenMessage(look.id, row - 1, DecodeAs::Detected));
                }
                edit_button(ui, cx, look);
            });
        });
    }

    fn raw(&mut self, ui: &mut Ui, opened: &Opened) {
        let message = &opened.delivery.message;
        ui.horizontal_wrapped(|ui| {
            ui.weak("sha256");
            ui.add(
                egui::Label::new(RichText::new(message.sha256()).monospace().size(11.0))
                    .selectable(true)
                    .truncate(),
            );
        });
        match &message.body {
            None => parts::empty(
                ui,
                "null",
                "The body is null, which is not the same as empty.",
            ),
            Some(body) if body.is_empty() => parts::empty(
                ui,
                "empty",
                "The body has no bytes, which is not the same as null.",
            ),
            Some(body) => {
                ui.horizontal(|ui| {
                    ui.weak(words::size(body.len() as u64));
                    if quiet_button(ui, "Copy", None)
                        .on_hover_text("Copies the selection as text, or all")
                        .clicked()
                    {
                        ui.ctx()
                            .copy_text(String::from_utf8_lossy(self.hex.chosen(body)).into_owned());
                    }
                    if let Some(range) = self.hex.selection() {
                        ui.weak(format!("{} to {} selected", range.start(), range.end()));
                    }
                });
                self.hex.show(ui, "Bytes of the body", body);
            }
        }
    }

    fn changes_ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState, opened: &Opened) {
        let Some(draft) = look.drafts.get(&opened.row) else {
            ui.weak(
                "This message is not edited. What a replay would change is in the replay's plan.",
            );
            self.planned(ui, cx, opened);
            return;
        };
        ui.horizontal(|ui| {
            chip(ui, "edited, not sent yet", Tone::Accent);
            edit_button(ui, cx, look);
            if button(ui, "Take back the edit", None).clicked() {
                cx.want(Intent::Draft(look.id, opened.row, None));
            }
        });
        if self.changes.as_ref().is_none_or(|(of, _)| of != draft) {
            let original = &opened.delivery.message;
            let before = format!("{}{}", values::lines(original), body_lines(original));
            let after = format!("{}{}", values::lines(draft), body_lines(draft));
            self.changes = Some((draft.clone(), Diff::new(&before, &after)));
        }
        if let Some((_, diff)) = &self.changes {
            let height = ui.available_height();
            self.diff.show(ui, "Changes", diff, height);
        }
    }

    /// What the last plan would do to this message.
    fn planned(&self, ui: &mut Ui, cx: &Cx<'_>, opened: &Opened) {
        let Some(plan) = cx
            .state
            .plan
            .value()
            .filter(|plan| plan.look == opened.look)
        else {
            return;
        };
        let Some(planned) = plan
            .messages
            .iter()
            .find(|message| message.row == opened.row)
        else {
            return;
        };
        parts::section(ui, "In the last plan");
        match &planned.outgoing {
            Some(_) => crate::dialogs::plan::changes_ui(ui, &planned.changes),
            None => crate::dialogs::plan::saved_ui(ui, planned),
        }
    }
}

/// The body's text for a diff, as far as it is text.
fn body_lines(message: &Message) -> String {
    match message.body.as_deref() {
        Some(body) if body.len() < 400_000 => match std::str::from_utf8(body) {
            Ok(text) => format!("\n{text}\n"),
            Err(_) => format!("\n{}\n", values::hex(body)),
        },
        body => format!("\n{}\n", values::bytes_line(body)),
    }
}

fn edit_button(ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState) {
    let scene = action::Scene {
        state: cx.state,
        selected: 0,
    };
    let blocked = Action::Edit.blocked(&scene);
    if button(ui, "Edit message…", blocked.as_deref())
        .on_hover_text(crate::panels::top::hint(ui, Action::Edit))
        .clicked()
        && let Some(opened) = look.message()
    {
        let draft = look.drafts.get(&opened.row).cloned();
        cx.dialog(Dialog::Editor(Box::new(EditorDialog::new(opened, draft))));
    }
}

fn history_ui(ui: &mut Ui, history: &[AuditLine]) {
    if history.is_empty() {
        ui.weak("Nothing was done with this message from here.");
        return;
    }
    for line in history {
        ui.horizontal_wrapped(|ui| {
            ui.label(
                RichText::new(words::moment(line.time))
                    .monospace()
                    .color(colours(ui).weak),
            );
            ui.label(
                RichText::new(words::sentence(&line.act))
                    .family(theme::bold())
                    .color(colours(ui).strong),
            );
            chip(
                ui,
                words::outcome(&line.act, &line.outcome),
                crate::panels::audit::outcome_tone(&line.outcome),
            );
            if let Some(target) = &line.target {
                ui.label(format!("to {target}"));
            }
        });
        ui.horizontal_wrapped(|ui| {
            ui.weak(format!("{}: {}", line.who, line.why));
            if let Some(detail) = &line.detail {
                ui.weak(detail);
            }
        });
        ui.separator();
    }
}
