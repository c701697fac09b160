//! All runs, and one run with the outcome of each message.

use dlo_engine::{
    Ask,
    command::Decision,
    event::{RunMessage, RunSummary},
};
use egui::Ui;

use super::audit::outcome_tone;
use crate::{
    dialogs::{Dialog, resolve::ResolveDialog},
    intent::{Cx, Intent},
    state::{Center, RunDetail},
    theme::{Colours, colours},
    widgets::{
        parts::{Tone, button, callout, chip, empty, quiet_button},
        table::{Cell, Column, Picked, RowContent, Shape, Table},
    },
    words,
};

/// Positions of both tables.
#[derive(Debug, Default)]
pub struct RunsPanel {
    table: Table,
    messages: Table,
    only: Only,
    chosen: Option<u64>,
    asked: Option<Center>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Only {
    #[default]
    All,
    Troubles,
}

const RUNS: [Column; 6] = [
    Column::left("started (UTC)", 160.0),
    Column::left("act", 76.0),
    Column::left("destination", 150.0),
    Column::right("messages", 80.0),
    Column::left("state", 90.0),
    Column::rest("outcomes and reason"),
];

const MESSAGES: [Column; 6] = [
    Column::right("#", 60.0),
    Column::left("position", 120.0),
    Column::left("target", 150.0),
    Column::left("outcome", 90.0),
    Column::left("sha256", 110.0),
    Column::rest("answer"),
];

impl RunsPanel {
    /// Draws the list of runs.
    pub fn list_ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) {
        self.ask(cx, Center::Runs, Ask::Runs);
        title(ui, "Runs", |_| {});
        cx.state.runs.status_ui(ui);
        let runs = cx.state.runs.value().cloned().unwrap_or_default();
        if runs.is_empty() {
            empty(
                ui,
                "No runs",
                "Replays, discards and imports are listed here.",
            );
            return;
        }
        let colours = colours(ui);
        let touched = self
            .table
            .show(ui, "Runs", &RUNS, runs.len() as u64, |index| {
                run_content(&runs[index as usize], colours)
            });
        if let Some(click) = touched.clicked
            && let Some(run) = runs.get(click.row as usize)
        {
            cx.want(Intent::Show(Center::Run(run.run.clone())));
        }
    }

    /// Draws one run.
    pub fn run_ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, run: &str) {
        self.ask(
            cx,
            Center::Run(run.to_owned()),
            Ask::RunMessages {
                run: run.to_owned(),
            },
        );
        let detail = cx
            .state
            .run
            .value()
            .filter(|detail| detail.run.run == run)
            .cloned();
        let Some(detail) = detail else {
            title(ui, "Run", |_| {});
            cx.state.run.status_ui(ui);
            return;
        };
        self.head(ui, cx, &detail);
        let shown: Vec<&RunMessage> = detail
            .messages
            .iter()
            .filter(|message| {
                self.only == Only::All || outcome_tone(&message.outcome) != Tone::Fine
            })
            .collect();
        let colours = colours(ui);
        let chosen = self.chosen;
        let touched = self.messages.show(
            ui,
            "Messages of the run",
            &MESSAGES,
            shown.len() as u64,
            |index| message_content(shown[index as usize], &detail.run.act, chosen, colours),
        );
        if let Some(click) = touched.clicked {
            self.chosen = shown
                .get(click.row as usize)
                .map(|message| message.sequence);
        }
    }

    /// Asks once each time the page is opened.
    fn ask(&mut self, cx: &mut Cx<'_>, center: Center, ask: Ask) {
        if self.asked.as_ref() != Some(&center) {
            self.asked = Some(center);
            self.chosen = None;
            cx.ask(ask);
        }
    }

    /// Another page is open; the next visit asks again.
    pub fn left(&mut self) {
        self.asked = None;
    }

    fn head(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, detail: &RunDetail) {
        let run = &detail.run;
        let name = format!("{} of {}", words::sentence(&run.act), run.destination);
        title(ui, &name, |ui| {
            chip(ui, &run.state, outcome_tone(&run.state));
            if quiet_button(ui, "All runs", None).clicked() {
                cx.want(Intent::Show(Center::Runs));
            }
        });
        egui::Frame::new()
            .inner_margin(egui::Margin::symmetric(10, 2))
            .show(ui, |ui| {
                ui.horizontal_wrapped(|ui| {
                    ui.label(format!("{} by {}", words::moment(run.started), run.who));
                    ui.weak(format!("\"{}\"", run.why));
                    ui.weak(&run.run);
                });
                ui.horizontal_wrapped(|ui| {
                    for (outcome, count) in &run.outcomes {
                        if *count > 0 {
                            chip(
                                ui,
                                &format!(
                                    "{} {}",
                                    words::count(*count),
                                    words::outcome(&run.act, outcome)
                                ),
                                outcome_tone(outcome),
                            );
                        }
                    }
                    let mut troubles = self.only == Only::Troubles;
                    ui.checkbox(&mut troubles, "Only what went wrong");
                    self.only = if troubles { Only::Troubles } else { Only::All };
                });
                for note in &detail.notes {
                    ui.add(egui::Label::new(note).wrap());
                }
                self.unknown(ui, cx, detail);
            });
    }

    fn unknown(&self, ui: &mut Ui, cx: &mut Cx<'_>, detail: &RunDetail) {
        let unknown = detail
            .messages
            .iter()
            .filter(|message| message.outcome == "unknown")
            .count();
        if unknown == 0 {
            return;
        }
        callout(
            ui,
            Tone::Warning,
            "Of messages with an unknown outcome nobody knows yet whether they arrived. Look at the target, then say what you found; nothing is guessed.",
        );
        let chosen = self.chosen.and_then(|sequence| {
            detail
                .messages
                .iter()
                .find(|message| message.sequence == sequence && message.outcome == "unknown")
        });
        let missing = chosen
            .is_none()
            .then_some("Choose an unknown message in the list first");
        ui.horizontal(|ui| {
            for (decision, text) in [
                (Decision::Arrived, "It arrived…"),
                (Decision::Missing, "It did not arrive…"),
            ] {
                if button(ui, text, missing).clicked()
                    && let Some(message) = chosen
                {
                    cx.dialog(Dialog::Resolve(ResolveDialog::new(
                        &detail.run.run,
                        message,
                        decision,
                    )));
                }
            }
        });
    }
}

fn title(ui: &mut Ui, text: &str, add: impl FnOnce(&mut Ui)) {
    egui::Frame::new()
        .inner_margin(egui::Margin::symmetric(10, 8))
        .show(ui, |ui| {
            ui.horizontal(|ui| {
                ui.heading(text);
                add(ui);
            });
        });
}

fn run_content(run: &RunSummary, colours: &Colours) -> RowContent {
    let outcomes: Vec<_> = run
        .outcomes
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(outcome, count)| {
            let outcome = words::outcome(&run.act, outcome);
            format!("{} {outcome}", words::count(*count))
        })
        .collect();
    let state = if run.crashed { "cut off" } else { &run.state };
    let tone = if run.crashed {
        Tone::Warning
    } else {
        outcome_tone(&run.state)
    };
    RowContent {
        cells: vec![
            Cell::mono(words::moment(run.started), colours.weak),
            Cell::bold(&run.act, colours.strong),
            Cell::new(&run.destination, colours.text),
            Cell::mono(words::count(run.total), colours.text),
            Cell::new(state, tone.text(colours)),
            Cell::new(
                format!("{}   {}", outcomes.join(", "), run.why),
                colours.text,
            ),
        ],
        name: format!("Run {} of {}, {state}", run.act, run.destination),
        ground: None,
        state: Picked::No,
        shape: Shape::Cells,
    }
}

fn message_content(
    message: &RunMessage,
    act: &str,
    chosen: Option<u64>,
    colours: &Colours,
) -> RowContent {
    RowContent {
        cells: vec![
            Cell::mono((message.sequence + 1).to_string(), colours.weak),
            Cell::mono(
                message
                    .position
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                colours.text,
            ),
            Cell::new(message.target.clone().unwrap_or_default(), colours.text),
            Cell::new(
                words::outcome(act, &message.outcome),
                outcome_tone(&message.outcome).text(colours),
            ),
            Cell::mono(
                message.sha256.chars().take(12).collect::<String>(),
                colours.weak,
            ),
            Cell::new(message.detail.clone().unwrap_or_default(), colours.text),
        ],
        name: format!("Message {}: {}", message.sequence + 1, message.outcome),
        ground: None,
        state: if chosen == Some(message.sequence) {
            Picked::Yes
        } else {
            Picked::No
        },
        shape: Shape::Cells,
    }
}
