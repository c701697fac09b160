//! The buttons under the messages: what can be done with those that are selected.
//!
//! Separate from the messages, because it asks only how many are selected and what the broker can do.

use dlo_engine::command::ShowResolved;
use egui::{Align, Layout, RichText, Ui};

use super::LookPanel;
use crate::{
    action::{self, Action},
    dialogs::{Dialog, editor::EditorDialog, plan::Kind},
    intent::{Cx, Intent},
    panels::top::hint,
    state::LookState,
    theme::colours,
    widgets::parts::{button, danger_button, primary_button, quiet_button},
    words,
};

/// What can be done with the selection.
pub fn acts(ui: &mut Ui, cx: &mut Cx<'_>, panel: &mut LookPanel, look: &LookState) {
    let selected = panel.selected.len();
    let count = |word: &str| {
        if selected > 0 {
            format!("{word} {}…", words::count(selected))
        } else {
            format!("{word}…")
        }
    };
    let scene = action::Scene {
        state: cx.state,
        selected,
    };
    let blocked = |action: Action| action.blocked(&scene);
    let (replay, discard, export, edit) = (
        blocked(Action::Replay),
        blocked(Action::Discard),
        blocked(Action::Export),
        blocked(Action::Edit),
    );
    ui.horizontal_wrapped(|ui| {
        if primary_button(ui, &count("Replay"), replay.as_deref())
            .on_hover_text(hint(ui, Action::Replay))
            .clicked()
        {
            let (selection, count) = panel.selection(look);
            cx.want(Intent::Act(Kind::Replay, look.id, selection, count));
        }
        if button(ui, "Edit…", edit.as_deref())
            .on_hover_text(hint(ui, Action::Edit))
            .clicked()
            && let Some(opened) = look.message()
        {
            let draft = look.drafts.get(&opened.row).cloned();
            cx.dialog(Dialog::Editor(Box::new(EditorDialog::new(opened, draft))));
        }
        if danger_button(ui, &count("Discard"), discard.as_deref())
            .on_hover_text(hint(ui, Action::Discard))
            .clicked()
        {
            let (selection, count) = panel.selection(look);
            cx.want(Intent::Act(Kind::Discard, look.id, selection, count));
        }
        if button(ui, &count("Export"), export.as_deref())
            .on_hover_text(hint(ui, Action::Export))
            .clicked()
        {
            let (selection, count) = panel.selection(look);
            cx.want(Intent::Export(look.id, selection, count));
        }
        log_acts(ui, cx, panel, look);
        // A wrapping row says how wide it is in all, not what is left of this line.
        let left = ui.max_rect().max.x - ui.cursor().min.x;
        if left < 130.0 {
            return;
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let shown = panel.lines.actable(&look.view);
            let all = format!("Select all {}", words::count(shown));
            let nothing = "Nothing is shown on which something could be done";
            if quiet_button(ui, &all, (shown == 0).then_some(nothing))
                .on_hover_text(hint(ui, Action::SelectAll))
                .clicked()
            {
                panel.select_all(look);
            }
            if selected > 0 && left > 340.0 {
                if quiet_button(ui, "Select none", None).clicked() {
                    panel.select_none();
                }
                ui.label(
                    RichText::new(format!("{} selected", words::count(selected)))
                        .color(colours(ui).strong),
                );
            }
        });
    });
}

/// What only brokers need that cannot remove a message: on the others the buttons would only stand in the way.
fn log_acts(ui: &mut Ui, cx: &mut Cx<'_>, panel: &LookPanel, look: &LookState) {
    let connection = cx.state.connection(look.connection);
    let listed = connection.and_then(|connection| connection.listed(&look.address));
    let Some(capability) = listed.map(|listed| &listed.destination.capability) else {
        return;
    };
    let wanted = [
        (capability.tombstone, Action::Tombstone, Kind::Tombstone),
        (
            !capability.settle_ack && panel.resolved == ShowResolved::Show,
            Action::Unresolve,
            Kind::Unresolve,
        ),
    ];
    for (can, act, kind) in wanted {
        let scene = action::Scene {
            state: cx.state,
            selected: panel.selected.len(),
        };
        let blocked = act.blocked(&scene);
        if can
            && button(ui, act.text(), blocked.as_deref())
                .on_hover_text(hint(ui, act))
                .clicked()
        {
            let (selection, count) = panel.selection(look);
            cx.want(Intent::Act(kind, look.id, selection, count));
        }
    }
}
