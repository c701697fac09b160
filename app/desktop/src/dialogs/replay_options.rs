//! How a replay is done, as it is typed: target, rate, canary, edits, and what is kept.
//!
//! Separate from [`super::plan`], which shows the plan that these options lead to.

use dlo_engine::command::{Edit, Mark, ReplayPartition, ReplayTime, Unwrap};
use egui::{ComboBox, DragValue, RichText, Ui};

use super::plan::Kind;
use crate::{
    intent::Cx,
    state::LookState,
    theme::colours,
    widgets::parts::{caption, choice, quiet_button, text_field},
    words,
};

/// How a replay is done, as it is typed.
#[derive(Clone, Debug)]
pub struct Options {
    pub route: RouteChoice,
    pub to: String,
    pub to_connection: Option<dlo_engine::command::ConnectionId>,
    pub limited: bool,
    pub rate: u32,
    pub canary: bool,
    pub canary_messages: u64,
    pub canary_seconds: u64,
    pub canary_percent: f64,
    pub edits: Vec<EditField>,
    pub keep_headers: String,
    pub mark: Mark,
    pub time: ReplayTime,
    pub partitioning: ReplayPartition,
    pub unwrap: Unwrap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteChoice {
    Auto,
    Queue,
    Exchange,
    Topic,
    To,
}

/// One edit that is made to every message, as it is typed.
#[derive(Clone, Debug)]
pub struct EditField {
    pub kind: EditKind,
    pub a: String,
    pub b: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditKind {
    Set,
    Remove,
    Replace,
    Patch,
    Jq,
    SetHeader,
    RenameHeader,
    RemoveHeader,
}

const EDITS: [(EditKind, &str, &str, &str); 8] = [
    (EditKind::Set, "set a value", "/currency", "\"EUR\""),
    (EditKind::Remove, "remove a value", "/currency", ""),
    (EditKind::Replace, "replace text", "db-3", "db-4"),
    (
        EditKind::Patch,
        "JSON Patch",
        "[{\"op\": \"remove\", \"path\": \"/a\"}]",
        "",
    ),
    (EditKind::Jq, "jq", ".price |= tonumber", ""),
    (EditKind::SetHeader, "set a header", "x-tenant", "a1"),
    (EditKind::RenameHeader, "rename a header", "x-old", "x-new"),
    (EditKind::RemoveHeader, "remove a header", "x-old", ""),
];

impl Default for Options {
    fn default() -> Self {
        Self {
            route: RouteChoice::Auto,
            to: String::new(),
            to_connection: None,
            limited: true,
            rate: 50,
            canary: true,
            canary_messages: 10,
            canary_seconds: 60,
            canary_percent: 5.0,
            edits: Vec::new(),
            keep_headers: String::new(),
            mark: Mark::WhereAllowed,
            time: ReplayTime::Now,
            partitioning: ReplayPartition::ByKey,
            unwrap: Unwrap::No,
        }
    }
}

impl Options {
    /// Draws what can be chosen for this act; `edited` messages among those selected were edited by hand.
    pub fn ui(&mut self, ui: &mut Ui, cx: &Cx<'_>, look: &LookState, kind: Kind, edited: u64) {
        let options = self;
        let replay = kind == Kind::Replay;
        caption(ui, "To");
        let routes = [
            (
                RouteChoice::Auto,
                "where it failed",
                "The queue or topic that failed, alone, where the broker can do that",
            ),
            (
                RouteChoice::Queue,
                "the queue",
                "The queue that failed, past any exchange",
            ),
            (
                RouteChoice::Exchange,
                "the exchange",
                "The exchange it was first published to; everything bound to it gets a copy",
            ),
            (
                RouteChoice::Topic,
                "the topic",
                "The topic it came from; every consumer group reads it again",
            ),
            (RouteChoice::To, "elsewhere", "A destination by its name"),
        ];
        let broker = cx
            .state
            .connection(look.connection)
            .map(|connection| connection.broker.clone())
            .unwrap_or_default();
        let fits = |route: RouteChoice| match route {
            RouteChoice::Auto | RouteChoice::To => true,
            RouteChoice::Queue => replay && broker != "kafka",
            RouteChoice::Exchange => replay && matches!(broker.as_str(), "rabbitmq" | "memory"),
            RouteChoice::Topic => replay && matches!(broker.as_str(), "kafka" | "memory"),
        };
        let routes: Vec<_> = routes
            .into_iter()
            .filter(|(route, ..)| fits(*route))
            .collect();
        ui.horizontal_wrapped(|ui| {
            choice(ui, &mut options.route, &routes);
            if options.route == RouteChoice::To {
                text_field(
                    ui,
                    "Target",
                    &mut options.to,
                    "orders, or exchange:NAME/KEY",
                    200.0,
                );
                if replay && cx.state.connections.len() > 1 {
                    connection_choice(ui, cx, options);
                }
            }
        });
        ui.horizontal_wrapped(|ui| {
            ui.checkbox(&mut options.limited, "At most");
            ui.add_enabled(
                options.limited,
                DragValue::new(&mut options.rate).range(1..=100_000),
            )
            .on_disabled_hover_text("Tick At most to limit the rate")
            .accessible_name("Messages a second");
            caption(ui, "a second");
            if replay {
                ui.add_space(10.0);
                ui.checkbox(&mut options.canary, "First")
                    .on_hover_text("A few messages first, and a watch over what becomes of them");
                let on = options.canary;
                let off = "Tick First to send a few messages first and watch them";
                ui.add_enabled(
                    on,
                    DragValue::new(&mut options.canary_messages).range(1..=10_000),
                )
                .on_disabled_hover_text(off)
                .accessible_name("Canary messages");
                caption(ui, "as a canary, watch");
                ui.add_enabled(
                    on,
                    DragValue::new(&mut options.canary_seconds)
                        .range(0..=3_600)
                        .suffix(" s"),
                )
                .on_disabled_hover_text(off)
                .accessible_name("Seconds to watch");
                caption(ui, "stop if more than");
                ui.add_enabled(
                    on,
                    DragValue::new(&mut options.canary_percent)
                        .range(0.0..=100.0)
                        .suffix(" %"),
                )
                .on_disabled_hover_text(off)
                .accessible_name("Percent that may come back");
                caption(ui, "come back");
            }
        });
        if replay {
            edits_ui(ui, options, edited);
            more_ui(ui, options, &broker);
        }
    }
}

impl EditField {
    /// The edit as the engine knows it.
    pub fn edit(&self) -> Edit {
        let (a, b) = (self.a.trim().to_owned(), self.b.clone());
        match self.kind {
            EditKind::Set => Edit::Set {
                pointer: a,
                json: b,
            },
            EditKind::Remove => Edit::Remove { pointer: a },
            EditKind::Replace => Edit::Replace {
                find: self.a.clone(),
                with: b,
            },
            EditKind::Patch => Edit::Patch { json: a },
            EditKind::Jq => Edit::Jq { program: a },
            EditKind::SetHeader => Edit::SetHeader { name: a, text: b },
            EditKind::RenameHeader => Edit::RenameHeader { from: a, to: b },
            EditKind::RemoveHeader => Edit::RemoveHeader { name: a },
        }
    }
}

fn connection_choice(ui: &mut Ui, cx: &Cx<'_>, options: &mut Options) {
    caption(ui, "on");
    let chosen = options.to_connection.and_then(|id| cx.state.connection(id));
    let text = chosen.map_or_else(
        || "the same connection".to_owned(),
        |connection| connection.label.clone(),
    );
    let combo = ComboBox::from_id_salt("replay connection").selected_text(text);
    let response = combo.show_ui(ui, |ui| {
        ui.selectable_value(&mut options.to_connection, None, "the same connection");
        for connection in &cx.state.connections {
            ui.selectable_value(
                &mut options.to_connection,
                Some(connection.id),
                &connection.label,
            );
        }
    });
    response
        .response
        .accessible_name("Connection to publish on");
}

fn edits_ui(ui: &mut Ui, options: &mut Options, edited: u64) {
    if edited > 0 {
        let verb = if edited == 1 { "goes" } else { "go" };
        let messages = words::counted(edited, "message");
        let text = format!("{messages} edited by hand {verb} out as edited.");
        ui.label(RichText::new(text).color(colours(ui).accent));
    }
    let mut gone = None;
    for (index, edit) in options.edits.iter_mut().enumerate() {
        ui.horizontal(|ui| {
            let known = EDITS.iter().find(|(kind, ..)| *kind == edit.kind);
            let (_, text, hint_a, hint_b) = known.unwrap_or(&EDITS[0]);
            let combo = ComboBox::from_id_salt(("edit", index)).selected_text(*text);
            let response = combo.show_ui(ui, |ui| {
                for (kind, text, ..) in EDITS {
                    ui.selectable_value(&mut edit.kind, kind, text);
                }
            });
            response
                .response
                .accessible_name(format!("Edit {}", index + 1));
            let wide = if hint_b.is_empty() { 420.0 } else { 200.0 };
            text_field(
                ui,
                &format!("Edit {} where", index + 1),
                &mut edit.a,
                hint_a,
                wide,
            );
            if !hint_b.is_empty() {
                ui.weak("=");
                text_field(
                    ui,
                    &format!("Edit {} value", index + 1),
                    &mut edit.b,
                    hint_b,
                    200.0,
                );
            }
            if quiet_button(ui, "×", None)
                .accessible_name(format!("Remove edit {}", index + 1))
                .clicked()
            {
                gone = Some(index);
            }
        });
    }
    if let Some(index) = gone {
        options.edits.remove(index);
    }
    if quiet_button(ui, "Edit all of them…", None)
        .on_hover_text("A change that is made to every selected message")
        .clicked()
    {
        options.edits.push(EditField {
            kind: EditKind::Set,
            a: String::new(),
            b: String::new(),
        });
    }
}

fn more_ui(ui: &mut Ui, options: &mut Options, broker: &str) {
    egui::CollapsingHeader::new("More")
        .id_salt("replay more")
        .show(ui, |ui| {
            ui.horizontal(|ui| {
                caption(ui, "Keep headers that would be stripped");
                text_field(
                    ui,
                    "Headers to keep",
                    &mut options.keep_headers,
                    "x-death, …",
                    220.0,
                );
            });
            let mut marked = options.mark == Mark::WhereAllowed;
            ui.checkbox(&mut marked, "Mark with replay and run id")
                .on_hover_text(
                    "So that a return is recognised, and a consumer can tell a duplicate",
                );
            options.mark = if marked {
                Mark::WhereAllowed
            } else {
                Mark::Never
            };
            let mut unwrap = options.unwrap == Unwrap::Yes;
            ui.checkbox(&mut unwrap, "Unwrap the original message")
                .on_hover_text("Publish what is inside a Lambda, SNS or EasyNetQ wrapper");
            options.unwrap = if unwrap { Unwrap::Yes } else { Unwrap::No };
            if matches!(broker, "kafka" | "memory") {
                let mut kept = options.time == ReplayTime::Kept;
                ui.checkbox(&mut kept, "Keep the record's time")
                    .on_hover_text("It may be too old for the topic");
                options.time = if kept {
                    ReplayTime::Kept
                } else {
                    ReplayTime::Now
                };
                let partitions = [
                    (
                        ReplayPartition::ByKey,
                        "by key",
                        "As Java's default partitioner does it",
                    ),
                    (
                        ReplayPartition::Original,
                        "the original partition",
                        "The one the dead letter says it came from",
                    ),
                ];
                ui.horizontal(|ui| {
                    caption(ui, "Partition");
                    choice(ui, &mut options.partitioning, &partitions);
                });
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_become_what_the_engine_knows() {
        let field = EditField {
            kind: EditKind::Set,
            a: " /currency ".to_owned(),
            b: "\"EUR\"".to_owned(),
        };
        assert_eq!(
            field.edit(),
            Edit::Set {
                pointer: "/currency".to_owned(),
                json: "\"EUR\"".to_owned()
            }
        );
    }
}
