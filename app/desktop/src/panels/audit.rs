//! The audit trail: every act with who, when, why, which message, where it went and what the broker answered.

use std::collections::BTreeSet;

use dlo_core::Millis;
use dlo_engine::{
    Ask,
    command::{AuditAsk, AuditView},
    event::AuditLine,
};
use egui::{Align, Layout, RichText, Ui};

use crate::{
    dialogs::{Dialog, export_audit::ExportAuditDialog},
    intent::{Cx, Intent},
    remote::Remote,
    state::{AppState, Center, Purpose},
    theme::{Colours, colours},
    widgets::{
        parts::{Tone, button, chip, choice, quiet_button, text_field},
        table::{Cell, Column, Picked, RowContent, Shape, Table},
    },
    words,
};

/// Filters and position of the audit view.
#[derive(Debug, Default)]
pub struct AuditPanel {
    act: String,
    who: String,
    destination: String,
    outcome: String,
    run: String,
    text: String,
    from: String,
    until: String,
    offset: u64,
    fold: Fold,
    /// Runs whose messages are shown under them, and those that were asked for.
    unfolded: BTreeSet<String>,
    asked_runs: BTreeSet<String>,
    table: Table,
    chosen: Option<u64>,
    asked: Option<AuditAsk>,
}

/// What one line stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fold {
    #[default]
    Runs,
    Messages,
}

/// One line on screen.
#[derive(Clone, Copy, Debug)]
enum Shown<'a> {
    Entry(&'a AuditLine),
    /// A message under its run.
    Under(&'a AuditLine),
    /// So many messages of a run are not shown.
    More(&'a str, u64),
}

const PAGE: u64 = 1_000;

/// The columns; in a narrow window they are narrower, so that outcome and reason stay in sight.
fn columns(width: f32) -> &'static [Column; 8] {
    if width < 900.0 { &NARROW } else { &WIDE }
}

const NARROW: [Column; 8] = [
    Column::left("time", 150.0),
    Column::left("by", 60.0),
    Column::left("act", 76.0),
    Column::left("destination", 90.0),
    Column::left("position", 96.0),
    Column::left("target", 70.0),
    Column::left("outcome", 70.0),
    Column::rest("why"),
];

const WIDE: [Column; 8] = [
    Column::left("time (UTC)", 160.0),
    Column::left("who", 90.0),
    Column::left("act", 92.0),
    Column::left("destination", 130.0),
    Column::left("position", 116.0),
    Column::left("target", 120.0),
    Column::left("outcome", 86.0),
    Column::rest("why"),
];

impl AuditPanel {
    /// Draws the view; asks for what is shown.
    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) {
        egui::Frame::new()
            .inner_margin(egui::Margin::symmetric(10, 8))
            .show(ui, |ui| {
                ui.horizontal(|ui| {
                    ui.heading("Audit trail");
                    self.verified(ui, cx);
                    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                        if button(ui, "Export…", None)
                            .on_hover_text("Write what matches to a file")
                            .clicked()
                            && let Ok(query) = self.query()
                        {
                            cx.dialog(Dialog::ExportAudit(ExportAuditDialog::new(query)));
                        }
                        if button(ui, "Verify", None)
                            .on_hover_text("Recompute the hash chain over all entries")
                            .clicked()
                        {
                            cx.ask(Ask::VerifyAudit);
                        }
                        if button(ui, "Refresh", None).clicked() {
                            self.asked = None;
                        }
                    });
                });
                self.filters(ui);
            });
        self.ask(ui, cx);
        self.ask_runs(cx);
        self.pages(ui, cx);
        self.entries(ui, cx);
    }

    fn filters(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            let fields: [(&str, &mut String, &str, f32); 8] = [
                ("Text", &mut self.text, "any text", 130.0),
                ("Act", &mut self.act, "replay", 70.0),
                ("Who", &mut self.who, "who", 70.0),
                ("Destination", &mut self.destination, "destination", 110.0),
                ("Outcome", &mut self.outcome, "outcome", 80.0),
                ("Run", &mut self.run, "run", 80.0),
                ("From", &mut self.from, "from 2026-11-30", 110.0),
                ("Until", &mut self.until, "until", 110.0),
            ];
            let mut changed = false;
            for (name, text, hint, width) in fields {
                changed |= text_field(
                    ui,
                    &format!("Filter by {}", name.to_lowercase()),
                    text,
                    hint,
                    width,
                )
                .changed();
            }
            let folds = [
                (
                    Fold::Runs,
                    "by run",
                    "One line a run; click it to see its messages",
                ),
                (Fold::Messages, "by message", "One line a message"),
            ];
            changed |= choice(ui, &mut self.fold, &folds);
            if quiet_button(ui, "Clear", None).clicked() {
                *self = Self::default();
            }
            if changed {
                self.offset = 0;
            }
        });
        if let Err(why) = self.query() {
            ui.label(RichText::new(why).color(colours(ui).danger));
        }
    }

    fn query(&self) -> Result<AuditAsk, String> {
        let given = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        // A text or an outcome is that of a message, so the messages are shown that have it.
        let of_messages = [&self.text, &self.outcome, &self.run]
            .iter()
            .any(|text| !text.trim().is_empty());
        Ok(AuditAsk {
            view: match self.fold {
                Fold::Runs if !of_messages => AuditView::Runs,
                _ => AuditView::Messages,
            },
            act: given(&self.act),
            who: given(&self.who),
            destination: given(&self.destination),
            outcome: given(&self.outcome),
            run: given(&self.run),
            sha256: None,
            text: given(&self.text),
            from: time(&self.from)?,
            until: time(&self.until)?,
            limit: PAGE,
            offset: self.offset,
        })
    }

    fn ask(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) {
        let Ok(query) = self.query() else {
            return;
        };
        if self.asked.as_ref() != Some(&query) {
            cx.ask(Ask::Audit {
                query: query.clone(),
            });
            self.asked = Some(query);
        }
        if cx.state.audit.error().is_some() {
            cx.state.audit.status_ui(ui);
        }
    }

    /// Asks again the next time it is drawn; call it when something was done.
    pub fn outdate(&mut self) {
        self.asked = None;
        self.asked_runs.clear();
    }

    /// Asks for the messages of runs that are unfolded.
    fn ask_runs(&mut self, cx: &mut Cx<'_>) {
        for run in &self.unfolded {
            if !self.asked_runs.insert(run.clone()) {
                continue;
            }
            let query = AuditAsk {
                run: Some(run.clone()),
                limit: PAGE,
                ..AuditAsk::default()
            };
            let purpose = Purpose::AuditRun(run.clone());
            cx.want(Intent::AskAs(Ask::Audit { query }, purpose));
        }
    }

    /// The lines of the table: entries, with the messages of unfolded runs under them.
    fn lines<'a>(&self, state: &'a AppState, entries: &'a [AuditLine]) -> Vec<Shown<'a>> {
        let mut lines = Vec::with_capacity(entries.len());
        for entry in entries {
            lines.push(Shown::Entry(entry));
            let run = entry.run.as_deref().unwrap_or_default();
            if entry.messages.is_none() || !self.unfolded.contains(run) {
                continue;
            }
            let page = state.audit_runs.get(run).and_then(Remote::value);
            let Some(page) = page else {
                continue;
            };
            let of_messages = page.entries.iter().filter(|line| line.messages.is_none());
            lines.extend(of_messages.map(Shown::Under));
            let more = page.total.saturating_sub(page.entries.len() as u64);
            if more > 0 {
                lines.push(Shown::More(run, more));
            }
        }
        lines
    }

    fn verified(&self, ui: &mut Ui, cx: &Cx<'_>) {
        match cx.state.verified.value() {
            Some(verified) => match verified.broken_at {
                None => {
                    let text = format!(
                        "chain intact, {}",
                        words::counted(verified.entries, "entry").replace("entrys", "entries")
                    );
                    chip(ui, &text, Tone::Fine);
                }
                Some(at) => {
                    chip(ui, &format!("chain broken at entry {at}"), Tone::Danger).on_hover_text(
                        "Somebody changed or removed entries outside of this program",
                    );
                }
            },
            None => cx.state.verified.status_ui(ui),
        }
    }

    fn pages(&mut self, ui: &mut Ui, cx: &Cx<'_>) {
        let Some(page) = cx.state.audit.value() else {
            return;
        };
        ui.horizontal(|ui| {
            ui.add_space(10.0);
            let last = (self.offset + page.entries.len() as u64).min(page.total);
            let first = if last == 0 { 0 } else { self.offset + 1 };
            ui.weak(format!(
                "{} to {} of {}",
                words::count(first),
                words::count(last),
                words::count(page.total)
            ));
            if page.total > PAGE {
                if quiet_button(
                    ui,
                    "Newer",
                    (self.offset == 0).then_some("These are the newest"),
                )
                .clicked()
                {
                    self.offset = self.offset.saturating_sub(PAGE);
                }
                if quiet_button(
                    ui,
                    "Older",
                    (last >= page.total).then_some("These are the oldest"),
                )
                .clicked()
                {
                    self.offset += PAGE;
                }
            }
            if cx.state.audit.is_loading() {
                ui.add(egui::Spinner::new().size(12.0));
            }
        });
    }

    fn entries(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) {
        let Some(page) = cx.state.audit.value().cloned() else {
            return;
        };
        if page.entries.is_empty() {
            crate::widgets::parts::empty(ui, "No entries", "Nothing was done yet that matches.");
            return;
        }
        let chosen = self.chosen_line(cx, &page.entries);
        if let Some(line) = &chosen {
            egui::Panel::bottom("audit entry")
                .resizable(true)
                .default_size(150.0)
                .show(ui, |ui| entry_ui(ui, cx, line));
        }
        let colours = colours(ui);
        let lines = self.lines(cx.state, &page.entries);
        let (chosen, unfolded) = (self.chosen, &self.unfolded);
        let table = &mut self.table;
        let touched = egui::CentralPanel::no_frame()
            .show(ui, |ui| {
                let total = lines.len() as u64;
                let columns = columns(ui.available_width());
                table.show(ui, "Audit entries", columns, total, |index| {
                    content(&lines[index as usize], chosen, unfolded, colours)
                })
            })
            .inner;
        match touched
            .clicked
            .and_then(|click| lines.get(click.row as usize))
        {
            Some(Shown::Entry(line)) => {
                self.chosen = Some(line.id);
                if let (Some(run), Some(1..)) = (&line.run, line.messages)
                    && !self.unfolded.remove(run)
                {
                    self.unfolded.insert(run.clone());
                    self.asked_runs.remove(run);
                }
            }
            Some(Shown::Under(line)) => self.chosen = Some(line.id),
            Some(Shown::More(run, _)) => {
                cx.want(Intent::Show(Center::Run((*run).to_owned())));
            }
            None => {}
        }
    }

    /// The entry that was clicked last, among those that are there.
    fn chosen_line(&self, cx: &Cx<'_>, page: &[AuditLine]) -> Option<AuditLine> {
        let id = self.chosen?;
        let under = cx.state.audit_runs.values().filter_map(Remote::value);
        page.iter()
            .chain(under.flat_map(|page| page.entries.iter()))
            .find(|line| line.id == id)
            .cloned()
    }
}

/// A day or a moment in UTC.
fn time(text: &str) -> Result<Option<Millis>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let full = if text.len() == 10 {
        format!("{text}T00:00:00Z")
    } else {
        text.to_owned()
    };
    Millis::parse(&full)
        .map(Some)
        .ok_or_else(|| "Write times as 2026-11-30 or 2026-11-30T03:10:00Z.".to_owned())
}

fn content(
    shown: &Shown<'_>,
    chosen: Option<u64>,
    unfolded: &BTreeSet<String>,
    colours: &Colours,
) -> RowContent {
    match shown {
        Shown::Entry(line) => {
            let run = line.run.as_deref().unwrap_or_default();
            let mark = match line.messages {
                Some(1..) if unfolded.contains(run) => "− ",
                Some(1..) => "+ ",
                _ => "",
            };
            line_content(line, mark, chosen, colours)
        }
        Shown::Under(line) => line_content(line, "   ", chosen, colours),
        Shown::More(_, more) => {
            let text = format!(
                "and {} more; click to see them in the run",
                words::count(*more)
            );
            RowContent {
                cells: vec![Cell::new(text.clone(), colours.weak)],
                name: text,
                ground: None,
                state: Picked::No,
                shape: Shape::Cells,
            }
        }
    }
}

fn line_content(
    line: &AuditLine,
    mark: &str,
    chosen: Option<u64>,
    colours: &Colours,
) -> RowContent {
    let tone = outcome_tone(&line.outcome).text(colours);
    let outcome = words::outcome(&line.act, &line.outcome);
    let messages = line.messages.filter(|count| *count > 0);
    let place = match messages {
        Some(count) => words::counted(count, "message"),
        None => (line.position.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default(),
    };
    let of = messages.map_or(String::new(), |count| {
        format!(", {}", words::counted(count, "message"))
    });
    RowContent {
        cells: vec![
            Cell::mono(words::moment(line.time), colours.weak),
            Cell::new(&line.who, colours.text),
            Cell::bold(format!("{mark}{}", line.act), colours.strong),
            Cell::new(&line.destination, colours.text),
            Cell::mono(place, colours.text),
            Cell::new(line.target.clone().unwrap_or_default(), colours.text),
            Cell::new(outcome, tone),
            Cell::new(&line.why, colours.text),
        ],
        name: format!(
            "Entry {}: {} {} {outcome}{of}",
            line.id, line.act, line.destination
        ),
        ground: None,
        state: if chosen == Some(line.id) {
            Picked::Yes
        } else {
            Picked::No
        },
        shape: Shape::Cells,
    }
}

fn entry_ui(ui: &mut Ui, cx: &mut Cx<'_>, line: &AuditLine) {
    egui::ScrollArea::vertical()
        .auto_shrink(false)
        .show(ui, |ui| {
            crate::widgets::parts::facts(ui, "audit entry", |ui| {
                let fact = crate::widgets::parts::fact;
                fact(ui, "Entry", &format!("{} at {}", line.id, line.time));
                fact(ui, "Who and why", &format!("{}: {}", line.who, line.why));
                fact(
                    ui,
                    "What",
                    &format!("{} from {} at {}", line.act, line.destination, line.place),
                );
                if let Some(hash) = &line.sha256 {
                    fact(ui, "sha256", hash);
                }
                if let Some(target) = &line.target {
                    fact(ui, "Target", target);
                }
                if let Some(messages) = line.messages.filter(|count| *count > 0) {
                    fact(ui, "Messages", &words::count(messages));
                }
                fact(ui, "Outcome", words::outcome(&line.act, &line.outcome));
                if let Some(detail) = &line.detail {
                    fact(ui, "Answer", detail);
                }
            });
            if let Some(run) = &line.run
                && button(ui, "Show its run", None).clicked()
            {
                cx.want(Intent::Show(Center::Run(run.clone())));
            }
        });
}

/// The colour of an outcome.
pub fn outcome_tone(outcome: &str) -> Tone {
    match outcome {
        "settled" | "confirmed" | "restored" | "discarded" | "resolved" | "done" => Tone::Fine,
        "failed" | "unroutable" | "unknown" => Tone::Danger,
        "returned" | "cancelled" | "refused" | "open" => Tone::Warning,
        _ => Tone::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_or_moments() {
        assert_eq!(time("").expect("nothing"), None);
        assert_eq!(
            time("2026-11-30"),
            Ok(Millis::parse("2026-11-30T00:00:00Z"))
        );
        assert!(time("yesterday").is_err());
    }
}
