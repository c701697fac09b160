//! Why a message died, each fact with the header it was read from.

use dlo_engine::{
    Ask,
    dead_letter::{Confidence, Death},
    event::Opened,
};
use egui::{Label, RichText, Ui};

use crate::{
    intent::Cx,
    state::LookState,
    theme::{self, colours},
    values,
    widgets::{
        json_tree::cut,
        parts::{self, Tone, button, callout, chip, section},
    },
    words,
};

/// Draws all deaths, newest first.
pub fn why_ui(ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState, opened: &Opened) {
    state_ui(ui, look, opened);
    if opened.death.is_none() {
        ui.weak(
            "Nothing in it says why it is here: no mark of a broker or framework that is known.",
        );
    }
    let deaths: Vec<&Death> = opened.death.iter().flat_map(Death::all).collect();
    for (index, death) in deaths.iter().enumerate() {
        if index == 1 {
            section(ui, "Earlier");
        }
        death_ui(ui, death, index);
        if death.pointer.is_some() {
            pointer_ui(ui, cx, look, opened, death);
        }
        ui.add_space(6.0);
    }
    facts_ui(ui, opened);
}

fn state_ui(ui: &mut Ui, look: &LookState, opened: &Opened) {
    use dlo_engine::store::RowState;
    let (tone, text) = match look.view.state(opened.row) {
        Some(RowState::Replayed) => (Tone::Fine, "It was replayed and removed."),
        Some(RowState::Discarded) => (
            Tone::Plain,
            "It was discarded; a copy is saved and can be restored.",
        ),
        Some(RowState::Resolved) => (
            Tone::Plain,
            "It is marked as resolved; this broker cannot remove a single message.",
        ),
        Some(RowState::Stale) => (
            Tone::Warning,
            "It is no longer held: it is in its queue again, perhaps with somebody else.",
        ),
        Some(RowState::Unknown) => (
            Tone::Warning,
            "An act on it ended with an unknown outcome. See the run.",
        ),
        _ => return,
    };
    callout(ui, tone, text);
}

fn death_ui(ui: &mut Ui, death: &Death, index: usize) {
    let reason = &death.reason;
    let title = reason
        .cause
        .as_deref()
        .or(reason.class.as_deref())
        .unwrap_or("No reason known");
    ui.horizontal_wrapped(|ui| {
        let size = if index == 0 { 15.0 } else { 13.0 };
        let text = RichText::new(title)
            .size(size)
            .family(theme::bold())
            .color(colours(ui).strong);
        ui.add(Label::new(text).selectable(true).wrap());
        if !death.dialect.is_empty() {
            chip(ui, &death.dialect, Tone::Plain).on_hover_text("Who wrote these marks");
        }
        match death.confidence {
            Confidence::Sure => {}
            Confidence::Likely => {
                chip(ui, "likely", Tone::Warning)
                    .on_hover_text("Not all marks that this framework always writes are there");
            }
            Confidence::Weak => {
                chip(ui, "a guess", Tone::Warning).on_hover_text(
                    "The marks have such common names that something else may have written them",
                );
            }
        }
    });
    if let Some(message) = &reason.message {
        ui.add(Label::new(cut(message, 2_000)).selectable(true).wrap());
    }
    parts::facts(ui, &format!("death {index}"), |ui| rows(ui, death));
    for note in &death.notes {
        ui.add(Label::new(RichText::new(note).color(colours(ui).warning)).wrap());
    }
    if let Some(stack) = &reason.stack {
        egui::CollapsingHeader::new("Stack trace")
            .id_salt(("stack", index))
            .default_open(index == 0)
            .show(ui, |ui| {
                let text = RichText::new(cut(stack, 20_000)).monospace().size(11.5);
                egui::ScrollArea::horizontal()
                    .id_salt(("stack lines", index))
                    .show(ui, |ui| {
                        let label = Label::new(text).selectable(true);
                        ui.add(label.wrap_mode(egui::TextWrapMode::Extend));
                    });
            });
    }
}

fn rows(ui: &mut Ui, death: &Death) {
    let origin = &death.origin;
    let reason = &death.reason;
    if reason.cause.is_some() && reason.class.is_some() {
        row(
            ui,
            death,
            "Wrapped in",
            "reason.class",
            reason.class.clone(),
        );
    }
    row(ui, death, "Queue", "origin.queue", origin.queue.clone());
    row(ui, death, "Topic", "origin.topic", origin.topic.clone());
    row(
        ui,
        death,
        "Partition",
        "origin.partition",
        origin.partition.map(|partition| partition.to_string()),
    );
    row(
        ui,
        death,
        "Offset",
        "origin.offset",
        origin.offset.map(|offset| offset.to_string()),
    );
    let exchange = origin.exchange.as_ref().map(|name| {
        if name.is_empty() {
            "default exchange".to_owned()
        } else {
            name.clone()
        }
    });
    row(ui, death, "Exchange", "origin.exchange", exchange);
    let keys = (!origin.routing_keys.is_empty()).then(|| origin.routing_keys.join(", "));
    row(ui, death, "Routing keys", "origin.routing_keys", keys);
    row(
        ui,
        death,
        "Consumer group",
        "origin.group",
        origin.group.clone(),
    );
    row(
        ui,
        death,
        "Handler",
        "origin.handler",
        origin.handler.clone(),
    );
    let attempts = death.attempts.map(|count| match &death.scope {
        Some(scope) => format!("{} ({scope})", words::count(count)),
        None => words::count(count),
    });
    row(ui, death, "Attempts", "attempts", attempts);
    row(
        ui,
        death,
        "First failure",
        "first",
        death.first.map(|time| time.to_string()),
    );
    row(
        ui,
        death,
        "Last failure",
        "last",
        death.last.map(|time| time.to_string()),
    );
    row(
        ui,
        death,
        "Sent",
        "sent",
        death.sent.map(|time| time.to_string()),
    );
}

/// One fact with the header it came from.
fn row(ui: &mut Ui, death: &Death, name: &str, field: &str, value: Option<String>) {
    let Some(value) = value else {
        return;
    };
    parts::caption(ui, name);
    let source = death.from.get(field);
    let value_ui = |ui: &mut Ui| ui.add(Label::new(&value).selectable(true).wrap());
    let source_ui = |ui: &mut Ui| {
        if let Some(source) = source {
            ui.label(RichText::new(source).size(11.0).color(colours(ui).weak))
                .on_hover_text("The header, property or place it was read from");
        }
    };
    // Beside each other when both surely fit in one line, else below each other.
    if value.chars().count() + source.map_or(0, |source| source.chars().count()) < 44 {
        ui.horizontal(|ui| {
            value_ui(ui);
            source_ui(ui);
        });
    } else {
        ui.vertical(|ui| {
            ui.spacing_mut().item_spacing.y = 1.0;
            value_ui(ui);
            source_ui(ui);
        });
    }
    ui.end_row();
}

fn pointer_ui(ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState, opened: &Opened, death: &Death) {
    let Some(pointer) = &death.pointer else {
        return;
    };
    callout(
        ui,
        Tone::Warning,
        &format!(
            "This dead letter does not hold the message, it only says where it is. {}",
            pointer.describe()
        ),
    );
    if button(ui, "Fetch the message it points to", None).clicked() {
        cx.ask(Ask::Follow {
            look: look.id,
            row: opened.row,
        });
    }
    let Some(pointed) = look
        .pointed
        .as_ref()
        .filter(|pointed| pointed.row == opened.row)
    else {
        return;
    };
    ui.add(Label::new(&pointed.note).wrap());
    if let Some(target) = &pointed.target {
        let body = values::bytes_line(target.message.body.as_deref());
        ui.add(
            Label::new(RichText::new(cut(&body, 4_000)).monospace())
                .selectable(true)
                .wrap(),
        );
    }
}

/// What the broker says beside the message.
fn facts_ui(ui: &mut Ui, opened: &Opened) {
    let delivery = &opened.delivery;
    section(ui, "At the broker");
    parts::facts(ui, "broker facts", |ui| {
        parts::fact(ui, "Position", &delivery.position.to_string());
        if let Some(time) = delivery.time {
            parts::fact(ui, "Time", &time.to_string());
        }
        if let Some(count) = delivery.delivery_count {
            parts::fact(ui, "Delivered before", &words::count(count));
        }
        for (name, value) in &delivery.facts {
            parts::fact(ui, name, &cut(&values::show(value), 500));
        }
    });
}
