//! Replay, discard and the like: options, the plan they lead to, what has to be answered, and the confirmation.
//!
//! Each change of an option asks for a new plan; only the newest counts. Nothing happens before the last button.

use std::{collections::BTreeSet, time::Duration};

use dlo_engine::{
    Ask,
    command::{Act, Answers, Canary, LookId, PlanAsk, ReplayAsk, Route, RunAsk, Selection},
    replay::plan::{Change, ChangeKind, Finding, Plan, PlannedMessage, Severity},
    store::RowState,
};
use egui::{RichText, ScrollArea, Ui};

use super::{
    Then, finish_ui,
    replay_options::{EditField, Options, RouteChoice},
};
use crate::{
    intent::{Cx, Intent},
    state::{LookState, Purpose},
    theme::{self, colours},
    widgets::{
        confirm::Confirmation,
        parts::{Tone, callout_ui, chip, danger_button, primary_button, quiet_button, section},
    },
    words,
};

/// Which act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Replay,
    Discard,
    Unresolve,
    Tombstone,
    Truncate,
    Purge,
    Redrive,
}

/// An act while it is prepared.
#[derive(Debug)]
pub struct PlanDialog {
    kind: Kind,
    look: LookId,
    selection: Selection,
    count: u64,
    options: Options,
    /// The options the last plan was asked with.
    asked: Option<String>,
    accepted: BTreeSet<&'static str>,
    confirmation: Confirmation,
    example: usize,
}

impl PlanDialog {
    pub fn new(kind: Kind, look: LookId, selection: Selection, count: u64) -> Self {
        let options = Options {
            // A canary of everything would only wait.
            canary: count > 10,
            ..Options::default()
        };
        Self {
            kind,
            look,
            selection,
            count,
            options,
            asked: None,
            accepted: BTreeSet::new(),
            confirmation: Confirmation::default(),
            example: 0,
        }
    }

    pub fn title(&self) -> String {
        self.button_text(self.count)
    }

    fn button_text(&self, count: u64) -> String {
        let messages = words::counted(count, "message");
        match self.kind {
            Kind::Replay => format!("Replay {messages}"),
            Kind::Discard => format!("Discard {messages}"),
            Kind::Unresolve => format!("Take back the mark of {messages}"),
            Kind::Tombstone => format!("Write tombstones for {messages}"),
            Kind::Truncate => "Delete the resolved prefix".to_owned(),
            Kind::Purge => format!("Purge {messages}"),
            Kind::Redrive => format!("Redrive {messages}"),
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        let Some(look) = cx.state.look(self.look) else {
            ui.label("The look is gone. Look again.");
            return if primary_button(ui, "Close", None).clicked() {
                Then::Close
            } else {
                Then::Stay
            };
        };
        self.plan_again(cx, look);
        let height = (ui.ctx().content_rect().height() - 330.0).max(120.0);
        let plan = cx
            .state
            .plan
            .value()
            .filter(|plan| plan.look == self.look)
            .cloned();
        ScrollArea::vertical().max_height(height).show(ui, |ui| {
            self.intro(ui);
            if matches!(self.kind, Kind::Replay | Kind::Redrive) {
                let edited = self.edited(look).count() as u64;
                self.options.ui(ui, cx, look, self.kind, edited);
            }
            section(ui, "Plan");
            cx.state.plan.status_ui(ui);
            if let Some(plan) = &plan {
                self.plan_ui(ui, plan);
            }
        });
        ui.separator();
        let name = plan
            .as_ref()
            .filter(|plan| plan.must_type)
            .map(|plan| plan.from.name.clone());
        self.confirmation.show(ui, name.as_deref());
        let missing = self.missing(cx, plan.as_deref());
        let going = plan.as_ref().map_or(self.count, |plan| going(plan));
        let text = self.button_text(going);
        let (acted, then) = finish_ui(ui, |ui| match self.kind {
            Kind::Replay | Kind::Redrive | Kind::Unresolve => {
                primary_button(ui, &text, missing.as_deref()).clicked()
            }
            _ => danger_button(ui, &text, missing.as_deref()).clicked(),
        });
        match plan {
            Some(plan) if acted => {
                self.run(cx, &plan, text);
                Then::Close
            }
            _ => then,
        }
    }

    fn intro(&self, ui: &mut Ui) {
        let text = match self.kind {
            Kind::Replay => {
                "Each message is published again, confirmed by the broker, and only then removed here."
            }
            Kind::Discard => {
                "A copy of each message is saved first, then it is removed. Saved copies can be restored."
            }
            Kind::Unresolve => "The messages count as unresolved again.",
            Kind::Tombstone => {
                "A record with a null value is written for each key: compaction then removes the older records of that key, for every consumer."
            }
            Kind::Truncate => {
                "Everything before the first unresolved message is deleted from the partitions, for every consumer. Copies are saved first."
            }
            Kind::Purge => {
                "Everything in it is removed, also what arrived since the look. Copies are saved first."
            }
            Kind::Redrive => "The broker moves all messages by itself, unedited.",
        };
        ui.add(egui::Label::new(RichText::new(text).color(colours(ui).weak)).wrap());
    }

    /// Asks for a plan when the options changed.
    fn plan_again(&mut self, cx: &mut Cx<'_>, look: &LookState) {
        let Ok(act) = self.act(look) else {
            return;
        };
        let wanted = format!("{act:?}");
        if self.asked.as_ref() == Some(&wanted) {
            return;
        }
        self.asked = Some(wanted);
        self.accepted.clear();
        cx.ask(Ask::Plan(PlanAsk {
            look: self.look,
            selection: self.selection.clone(),
            act,
        }));
    }

    fn act(&self, look: &LookState) -> Result<Act, String> {
        Ok(match self.kind {
            Kind::Replay => Act::Replay(Box::new(self.replay(look)?)),
            Kind::Discard => Act::Discard,
            Kind::Unresolve => Act::Unresolve,
            Kind::Tombstone => Act::Tombstone,
            Kind::Truncate => Act::Truncate,
            Kind::Purge => Act::Purge,
            Kind::Redrive => {
                let options = &self.options;
                let to = options.to.trim();
                Act::Redrive {
                    to: (options.route == RouteChoice::To && !to.is_empty()).then(|| to.to_owned()),
                    rate: options.limited.then_some(options.rate),
                }
            }
        })
    }

    fn replay(&self, look: &LookState) -> Result<ReplayAsk, String> {
        let options = &self.options;
        let route = match options.route {
            RouteChoice::Auto => Route::Auto,
            RouteChoice::Queue => Route::Queue,
            RouteChoice::Exchange => Route::Exchange,
            RouteChoice::Topic => Route::Topic,
            RouteChoice::To if options.to.trim().is_empty() => {
                return Err("Name the target first.".to_owned());
            }
            RouteChoice::To => Route::To(options.to.trim().to_owned()),
        };
        let edits = options
            .edits
            .iter()
            .filter(|edit| !edit.a.trim().is_empty());
        Ok(ReplayAsk {
            route,
            to_connection: options.to_connection,
            drafts: self
                .edited(look)
                .map(|(row, message)| (*row, message.clone()))
                .collect(),
            edits: edits.map(EditField::edit).collect(),
            keep_headers: options
                .keep_headers
                .split([',', ' '])
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            rate: options.limited.then_some(options.rate),
            canary: options.canary.then_some(Canary {
                messages: options.canary_messages,
                watch: Duration::from_secs(options.canary_seconds),
                stop_percent: options.canary_percent,
            }),
            mark: options.mark,
            time: options.time,
            partitioning: options.partitioning,
            atomicity: dlo_core::Atomicity::Each,
            unwrap: options.unwrap,
        })
    }

    /// Edits by hand of messages that are selected and can still go.
    fn edited<'a>(
        &'a self,
        look: &'a LookState,
    ) -> impl Iterator<Item = (&'a u32, &'a dlo_core::Message)> {
        look.drafts.iter().filter(|(row, _)| {
            let state = look.view.state(**row);
            self.selects(**row) && state.is_some_and(RowState::can_act)
        })
    }

    fn selects(&self, row: u32) -> bool {
        match &self.selection {
            Selection::Rows(rows) => rows.binary_search(&row).is_ok(),
            _ => true,
        }
    }

    fn plan_ui(&mut self, ui: &mut Ui, plan: &Plan) {
        for finding in &plan.findings {
            self.finding_ui(ui, finding);
        }
        ui.horizontal_wrapped(|ui| {
            for (target, count) in &plan.targets {
                chip(
                    ui,
                    &format!("{} to {target}", words::count(*count)),
                    Tone::Accent,
                );
            }
            let refused = plan
                .messages
                .iter()
                .filter(|message| message.refused.is_some())
                .count() as u64;
            if refused > 0 {
                chip(
                    ui,
                    &format!("{} cannot go and stay", words::count(refused)),
                    Tone::Warning,
                );
            }
        });
        if !plan.engine.is_empty() {
            ui.add(egui::Label::new(&plan.engine).wrap());
        }
        for (index, step) in plan.steps.iter().enumerate() {
            ui.horizontal_top(|ui| {
                ui.label(RichText::new(format!("{}.", index + 1)).color(colours(ui).weak));
                ui.add(egui::Label::new(step).wrap());
            });
        }
        self.examples_ui(ui, plan);
    }

    fn finding_ui(&mut self, ui: &mut Ui, finding: &Finding) {
        let tone = match finding.severity {
            Severity::Fine => Tone::Fine,
            Severity::Warning => Tone::Warning,
            Severity::MustAnswer => Tone::Warning,
            Severity::Blocks => Tone::Danger,
        };
        callout_ui(ui, tone, |ui| {
            let count = if finding.messages > 0 {
                format!("{}: ", words::counted(finding.messages, "message"))
            } else {
                String::new()
            };
            let text =
                RichText::new(format!("{count}{}", finding.text)).color(tone.text(colours(ui)));
            ui.add(egui::Label::new(text).wrap());
            if finding.severity == Severity::MustAnswer {
                let mut accepted = self.accepted.contains(finding.code);
                ui.checkbox(&mut accepted, format!("I accept this ({})", finding.code));
                if accepted {
                    self.accepted.insert(finding.code);
                } else {
                    self.accepted.remove(finding.code);
                }
            }
        });
    }

    /// What happens to one message, header by header, with a way through all of them.
    fn examples_ui(&mut self, ui: &mut Ui, plan: &Plan) {
        if plan.messages.is_empty() {
            return;
        }
        self.example = self.example.min(plan.messages.len() - 1);
        ui.horizontal(|ui| {
            let last = self.example + 1 >= plan.messages.len();
            if quiet_button(ui, "‹", (self.example == 0).then_some("This is the first"))
                .accessible_name("Previous message of the plan")
                .clicked()
            {
                self.example -= 1;
            }
            ui.label(format!(
                "message {} of {}",
                words::count(self.example as u64 + 1),
                words::count(plan.messages.len() as u64)
            ));
            if quiet_button(ui, "›", last.then_some("This is the last"))
                .accessible_name("Next message of the plan")
                .clicked()
            {
                self.example += 1;
            }
        });
        if let Some(message) = plan.messages.get(self.example) {
            planned_ui(ui, message);
        }
    }

    fn missing(&self, cx: &Cx<'_>, plan: Option<&Plan>) -> Option<String> {
        if self.options.route == RouteChoice::To
            && self.options.to.trim().is_empty()
            && self.kind == Kind::Replay
        {
            return Some("Name the target first.".to_owned());
        }
        if cx.state.plan.is_loading() {
            return Some("The plan is being made.".to_owned());
        }
        let Some(plan) = plan.filter(|_| cx.state.plan.error().is_none()) else {
            return Some("There is no plan yet.".to_owned());
        };
        if let Some(finding) = plan
            .findings
            .iter()
            .find(|finding| finding.severity == Severity::Blocks)
        {
            return Some(finding.text.clone());
        }
        if let Some(finding) = plan
            .must_answer()
            .find(|finding| !self.accepted.contains(finding.code))
        {
            return Some(format!("Answer this first: {}", finding.text));
        }
        if going(plan) == 0 && !matches!(self.kind, Kind::Purge | Kind::Truncate | Kind::Redrive) {
            return Some("No message can go.".to_owned());
        }
        self.confirmation
            .missing(plan.must_type.then_some(plan.from.name.as_str()))
    }

    fn run(&self, cx: &mut Cx<'_>, plan: &Plan, text: String) {
        let ask = Ask::Run(RunAsk {
            plan: plan.id,
            why: self.confirmation.why.trim().to_owned(),
            answers: Answers {
                accepted: self
                    .accepted
                    .iter()
                    .map(|code| (*code).to_owned())
                    .collect(),
                all: false,
                typed: plan
                    .must_type
                    .then(|| self.confirmation.typed.trim().to_owned()),
            },
        });
        cx.want(Intent::AskAs(
            ask,
            Purpose::Run(format!("{text} of {}", plan.from)),
        ));
    }
}

/// Messages that would go.
fn going(plan: &Plan) -> u64 {
    plan.messages
        .iter()
        .filter(|message| message.refused.is_none())
        .count() as u64
}

fn planned_ui(ui: &mut Ui, message: &PlannedMessage) {
    ui.horizontal_wrapped(|ui| {
        ui.weak("position");
        ui.monospace(message.position.to_string());
        match (&message.refused, &message.target) {
            (Some(why), _) => {
                ui.label(RichText::new(format!("stays: {why}")).color(colours(ui).warning));
            }
            (None, Some(target)) => {
                ui.label(
                    RichText::new(format!("to {target}"))
                        .family(theme::bold())
                        .color(colours(ui).strong),
                );
                ui.weak(format!("from {}", message.evidence));
            }
            (None, None) => {}
        }
    });
    match &message.outgoing {
        Some(_) => changes_ui(ui, &message.changes),
        None => saved_ui(ui, message),
    }
}

/// What is said of a message that goes nowhere.
pub fn saved_ui(ui: &mut Ui, message: &PlannedMessage) {
    if message.refused.is_none() {
        ui.weak("Nothing is sent. Its copy, where one is saved, keeps every byte.");
    }
}

/// Differences between a dead letter and what goes out.
pub fn changes_ui(ui: &mut Ui, changes: &[Change]) {
    if changes.is_empty() {
        ui.weak("It goes out byte for byte as it is.");
        return;
    }
    ScrollArea::horizontal()
        .id_salt("planned scroll")
        .show(ui, |ui| changes_grid(ui, changes));
}

fn changes_grid(ui: &mut Ui, changes: &[Change]) {
    egui::Grid::new("planned changes")
        .num_columns(4)
        .spacing([12.0, 3.0])
        .show(ui, |ui| {
            for change in changes {
                let (word, tone) = match change.kind {
                    ChangeKind::Stripped => ("stripped", Tone::Danger),
                    ChangeKind::Added => ("added", Tone::Fine),
                    ChangeKind::Edited => ("edited", Tone::Accent),
                };
                chip(ui, word, tone);
                ui.label(RichText::new(&change.what).color(colours(ui).key));
                let cut = |text: &Option<String>| {
                    crate::widgets::json_tree::cut(text.as_deref().unwrap_or(""), 44)
                };
                let text = match change.kind {
                    ChangeKind::Stripped => cut(&change.before),
                    ChangeKind::Added => cut(&change.after),
                    ChangeKind::Edited => {
                        format!("{} → {}", cut(&change.before), cut(&change.after))
                    }
                };
                ui.monospace(text);
                ui.weak(&change.why);
                ui.end_row();
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_button_names_what_and_how_many() {
        let dialog = PlanDialog::new(Kind::Discard, LookId(1), Selection::All, 312);
        assert_eq!(dialog.title(), "Discard 312 messages");
        let one = PlanDialog::new(Kind::Replay, LookId(1), Selection::First(1), 1);
        assert_eq!(one.title(), "Replay 1 message");
        assert!(
            !one.options.canary,
            "a canary of everything would only wait"
        );
    }
}
