//! The page of one destination: its facts, what looking costs, and how to look.

use std::time::Duration;

use dlo_core::{Address, Browse, Consent, Follow, Isolation, LookCost, Millis, Start, Verdict};
use dlo_engine::{
    Ask,
    command::{ConnectionId, LookAsk},
    event::Listed,
};
use egui::{DragValue, RichText, ScrollArea, Ui};

use super::destinations::{Urgency, facts};
use crate::{
    action::Action,
    dialogs::{
        Dialog,
        notes::NotesDialog,
        plan::{Kind, PlanDialog},
    },
    intent::{Cx, Intent},
    theme::{self, colours},
    widgets::{
        figure,
        parts::{
            self, Tone, button, callout_ui, caption, chip, choice, primary_button, section,
            text_field,
        },
    },
    words,
};

/// How a person wants to look.
#[derive(Debug, Default)]
pub struct DestinationPage {
    of: Option<(ConnectionId, Address)>,
    begin: Begin,
    time: String,
    offsets: String,
    limit: u64,
    partitions: String,
    isolation: Isolation,
    follow: Follow,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Begin {
    #[default]
    Newest,
    Oldest,
    Time,
    Offsets,
}

impl DestinationPage {
    /// Draws the page.
    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>, id: ConnectionId, address: &Address) {
        let key = (id, address.clone());
        if self.of.as_ref() != Some(&key) {
            *self = Self {
                of: Some(key),
                limit: 10_000,
                ..Self::default()
            };
        }
        let Some(connection) = cx.state.connection(id) else {
            return;
        };
        let listed = cx.state.shown(connection, address);
        let cost = connection.costs.get(address).cloned().unwrap_or_default();
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            egui::Frame::new()
                .inner_margin(egui::Margin::symmetric(18, 12))
                .show(ui, |ui| {
                    let Some(listed) = &listed else {
                        parts::empty(
                            ui,
                            &address.name,
                            "The broker does not list it any more. Refresh, or choose another.",
                        );
                        return;
                    };
                    head(ui, cx, id, listed);
                    let shown = cost
                        .value()
                        .cloned()
                        .unwrap_or_else(|| listed.destination.look.clone());
                    self.look_ui(ui, cx, id, listed, &shown);
                    cost.status_ui(ui);
                    samples(ui, listed);
                    ui.columns(2, |columns| {
                        if let [left, right] = columns {
                            known(left, listed, cx.state.now);
                            owned(right, cx, id, listed);
                            acts(right, cx, id, listed);
                        }
                    });
                });
        });
    }

    fn look_ui(
        &mut self,
        ui: &mut Ui,
        cx: &mut Cx<'_>,
        id: ConnectionId,
        listed: &Listed,
        cost: &LookCost,
    ) {
        let destination = &listed.destination;
        if destination.capability.browse == Browse::None {
            parts::callout(
                ui,
                Tone::Plain,
                "This cannot be looked at: it holds no messages of its own.",
            );
            return;
        }
        let tone = verdict_tone(cost.verdict);
        callout_ui(ui, tone, |ui| {
            let line = if cost.line.is_empty() {
                "What looking costs is not known yet."
            } else {
                &cost.line
            };
            ui.horizontal_wrapped(|ui| {
                ui.label(
                    RichText::new("Looking")
                        .family(theme::bold())
                        .color(colours(ui).strong),
                );
                ui.label(line);
            });
            for reason in &cost.reasons {
                ui.add(
                    egui::Label::new(RichText::new(reason).color(tone.text(colours(ui)))).wrap(),
                );
            }
        });
        ui.add_space(4.0);
        let ask = self.ask(listed);
        ui.horizontal(|ui| {
            let refused = (cost.verdict == Verdict::Refuse).then(|| {
                cost.reasons
                    .first()
                    .cloned()
                    .unwrap_or_else(|| cost.line.clone())
            });
            let wrong = ask.as_ref().err().cloned();
            let blocked = refused.or(wrong);
            let text = if cost.verdict == Verdict::Ask {
                "Look all the same"
            } else {
                "Look at messages"
            };
            if primary_button(ui, text, blocked.as_deref())
                .on_hover_text(super::top::hint(ui, Action::Look))
                .clicked()
                && let Ok(mut look) = ask
            {
                if cost.verdict == Verdict::Ask {
                    look.consent = Consent::Given;
                }
                cx.ask(Ask::Look {
                    connection: id,
                    address: destination.address.clone(),
                    look,
                });
            }
            caption(ui, "at most");
            ui.add(
                DragValue::new(&mut self.limit)
                    .range(1..=10_000_000)
                    .speed(50),
            )
            .accessible_name("Messages at most");
            caption(ui, "messages");
        });
        self.options(ui, listed);
        ui.add_space(4.0);
    }

    /// Where to begin and what to read, for destinations that are read by offset.
    fn options(&mut self, ui: &mut Ui, listed: &Listed) {
        let capability = &listed.destination.capability;
        if capability.browse != Browse::ByOffset {
            return;
        }
        ui.horizontal_wrapped(|ui| {
            caption(ui, "From");
            let mut choices = vec![
                (Begin::Newest, "newest", "Newest first over all partitions"),
                (
                    Begin::Oldest,
                    "oldest",
                    "From the first message that is still there",
                ),
            ];
            if capability.browse_from_time {
                choices.push((Begin::Time, "a time", ""));
            }
            if capability.browse_from_offset {
                choices.push((Begin::Offsets, "offsets", ""));
            }
            choice(ui, &mut self.begin, &choices);
            match self.begin {
                Begin::Time => {
                    text_field(
                        ui,
                        "From this time",
                        &mut self.time,
                        "2026-11-30T03:00:00Z",
                        180.0,
                    );
                }
                Begin::Offsets => {
                    text_field(
                        ui,
                        "From these offsets",
                        &mut self.offsets,
                        "0:1200, 1:980",
                        180.0,
                    );
                }
                _ => {}
            }
        });
        ui.horizontal_wrapped(|ui| {
            if capability.browse_by_partition {
                caption(ui, "Partitions");
                text_field(ui, "Partitions", &mut self.partitions, "all", 90.0);
            }
            if capability.browse_tail {
                let mut tail = self.follow == Follow::Tail;
                ui.checkbox(&mut tail, "Follow new messages");
                self.follow = if tail { Follow::Tail } else { Follow::Stop };
            }
            let mut uncommitted = self.isolation == Isolation::ReadUncommitted;
            ui.checkbox(&mut uncommitted, "Show uncommitted and aborted")
                .on_hover_text(
                    "Records of open and aborted transactions; they look like all others",
                );
            self.isolation = if uncommitted {
                Isolation::ReadUncommitted
            } else {
                Isolation::ReadCommitted
            };
        });
    }

    fn ask(&self, listed: &Listed) -> Result<LookAsk, String> {
        let by_lock = listed.destination.capability.browse == Browse::ByLock;
        let start = match self.begin {
            _ if by_lock => Start::Oldest,
            Begin::Newest => Start::Newest,
            Begin::Oldest => Start::Oldest,
            Begin::Time => Start::Time(
                Millis::parse(self.time.trim())
                    .ok_or_else(|| "Write the time as 2026-11-30T03:00:00Z.".to_owned())?,
            ),
            Begin::Offsets => Start::Offsets(parse_offsets(&self.offsets)?),
        };
        Ok(LookAsk {
            start,
            limit: self.limit,
            partitions: parse_partitions(&self.partitions)?,
            isolation: self.isolation,
            follow: self.follow,
            hold: Duration::from_secs(300),
            consent: Consent::Unasked,
        })
    }
}

fn parse_offsets(text: &str) -> Result<Vec<(i32, i64)>, String> {
    let wrong = || "Write offsets as partition:offset, for example 0:1200, 1:980.".to_owned();
    let pairs: Vec<_> = text
        .split([',', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (partition, offset) = part.split_once(':').ok_or_else(wrong)?;
            Ok((
                partition.parse().map_err(|_| wrong())?,
                offset.parse().map_err(|_| wrong())?,
            ))
        })
        .collect::<Result<_, String>>()?;
    if pairs.is_empty() {
        Err(wrong())
    } else {
        Ok(pairs)
    }
}

fn parse_partitions(text: &str) -> Result<Option<Vec<i32>>, String> {
    let text = text.trim();
    if text.is_empty() || text == "all" {
        return Ok(None);
    }
    text.split([',', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| {
            part.parse().map_err(|_| {
                format!("{part} is no partition; write numbers with commas, or leave it empty.")
            })
        })
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}

/// The colour of a verdict.
pub fn verdict_tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Fine => Tone::Plain,
        Verdict::Warn | Verdict::Ask => Tone::Warning,
        Verdict::Refuse => Tone::Danger,
    }
}

fn head(ui: &mut Ui, cx: &Cx<'_>, id: ConnectionId, listed: &Listed) {
    let destination = &listed.destination;
    ui.horizontal_wrapped(|ui| {
        ui.heading(&destination.address.name);
        chip(ui, &destination.label, Tone::Plain);
        match &destination.dead_letters {
            dlo_core::DeadLetters::No => {}
            dlo_core::DeadLetters::Yes(evidence) => {
                let why = match evidence {
                    dlo_core::Evidence::Configuration(text) => format!("By configuration: {text}"),
                    dlo_core::Evidence::Headers(text) => {
                        format!("By marks on its messages: {text}")
                    }
                    dlo_core::Evidence::Name => "Only its name says so".to_owned(),
                };
                chip(ui, "dead letters", Tone::Danger).on_hover_text(why);
            }
        }
        if let Some(connection) = cx.state.connection(id) {
            ui.weak(&connection.label);
        }
    });
    ui.horizontal_wrapped(|ui| {
        figure::figure_ui(ui, destination.depth, "messages");
        caption(ui, "waiting");
        for (text, urgency) in facts(listed, cx.state.now) {
            ui.weak("·");
            let colour = match urgency {
                Urgency::Calm => colours(ui).text,
                Urgency::Notice => colours(ui).warning,
                Urgency::Urgent => colours(ui).danger,
            };
            ui.label(RichText::new(text).color(colour));
        }
    });
    ui.add_space(4.0);
}

/// Depth over time, as far as it was sampled.
fn samples(ui: &mut Ui, listed: &Listed) {
    let samples = &listed.samples;
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return;
    };
    let steady = samples.iter().all(|(_, depth)| *depth == first.1);
    if samples.len() < 3 || steady {
        return;
    }
    let (rect, response) =
        ui.allocate_exact_size(egui::vec2(ui.available_width(), 42.0), egui::Sense::hover());
    let colours = colours(ui);
    ui.painter().rect_filled(rect, 5.0, colours.ground);
    let most = samples
        .iter()
        .map(|(_, depth)| *depth)
        .max()
        .unwrap_or(1)
        .max(1) as f32;
    let length = (last.0.since(first.0)).max(1) as f32;
    let points: Vec<_> = samples
        .iter()
        .map(|(time, depth)| {
            let x = rect.min.x + 4.0 + (rect.width() - 8.0) * time.since(first.0) as f32 / length;
            let y = rect.max.y - 5.0 - (rect.height() - 10.0) * *depth as f32 / most;
            egui::pos2(x, y)
        })
        .collect();
    ui.painter().add(egui::Shape::line(
        points,
        egui::Stroke::new(1.5, colours.accent),
    ));
    let text = format!(
        "Depth over the last {}: from {} to {}",
        words::span(length as i64),
        words::count(first.1),
        words::count(last.1)
    );
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &text));
    response.on_hover_text(text);
}

fn known(ui: &mut Ui, listed: &Listed, now: Millis) {
    let destination = &listed.destination;
    section(ui, "Facts");
    parts::facts(ui, "facts", |ui| {
        let figures = [
            ("Held by somebody", destination.in_flight),
            ("Delayed", destination.delayed),
            ("Consumers", destination.consumers),
        ];
        for (name, figure) in figures {
            if figure.value.is_some() {
                parts::fact(ui, name, &words::figure(figure))
                    .on_hover_text(words::certainty(figure.certainty));
            }
        }
        if destination.oldest.value.is_some() {
            parts::fact(
                ui,
                "Oldest",
                &words::marked(destination.oldest, |time| {
                    format!(
                        "{} ({} ago)",
                        words::moment(*time),
                        words::span(now.since(*time))
                    )
                }),
            );
        }
        if destination.oldest.value.is_none() && destination.holds_dead_letters() {
            parts::fact(ui, "Oldest", "?").on_hover_text(oldest_unknown(destination));
        }
        if let Some(retention) = destination.retention {
            parts::fact(ui, "Kept for", &words::span(retention.as_millis() as i64));
        }
        if !destination.sources.is_empty() {
            parts::fact(ui, "Dead letters of", &destination.sources.join(", "));
        }
        if let Some(to) = &destination.dead_letters_to {
            parts::fact(ui, "Its dead letters", &format!("go to {to}"));
        }
        for (name, value) in &destination.facts {
            // The broker's own argument names stay as they are written there.
            let plain = !name.starts_with("x-");
            let name = if plain {
                words::sentence(name)
            } else {
                name.clone()
            };
            parts::fact(ui, &name, value);
        }
    });
    partitions(ui, listed);
}

/// Why nobody knows how old the first message is.
pub fn oldest_unknown(destination: &dlo_core::Destination) -> &'static str {
    match destination.capability.browse {
        _ if destination.depth.value == Some(0) => "Nothing is in it.",
        Browse::ByLock => {
            "The broker does not say when its first message came in. A look reads the times that the messages carry."
        }
        Browse::ByOffset => {
            "The first record's time was not read, or it has none. A look from the oldest shows it."
        }
        Browse::None => "It cannot be looked at, and the broker does not say.",
    }
}

fn partitions(ui: &mut Ui, listed: &Listed) {
    let destination = &listed.destination;
    if destination.partitions.is_empty() {
        return;
    }
    section(ui, "Partitions");
    egui::Grid::new("partitions")
        .num_columns(4)
        .spacing([14.0, 3.0])
        .show(ui, |ui| {
            for title in ["partition", "first", "end", "messages"] {
                ui.label(RichText::new(title).size(11.5).color(colours(ui).weak));
            }
            ui.end_row();
            for partition in destination.partitions.iter().take(64) {
                ui.monospace(partition.id.to_string());
                ui.monospace(partition.log_start.to_string());
                ui.monospace(partition.high_watermark.to_string());
                let most = partition
                    .high_watermark
                    .saturating_sub(partition.log_start)
                    .max(0);
                ui.monospace(format!("≤ {}", words::count(most as u64)));
                ui.end_row();
            }
        });
    if destination.partitions.len() > 64 {
        ui.weak(format!("and {} more", destination.partitions.len() - 64));
    }
    for group in &destination.groups {
        let lag: i64 = group.lags.iter().filter_map(|lag| lag.lag).sum();
        ui.label(format!(
            "Group {}: {}, {} behind",
            group.name,
            group.state,
            words::count(lag.max(0) as u64)
        ));
    }
}

fn owned(ui: &mut Ui, cx: &mut Cx<'_>, id: ConnectionId, listed: &Listed) {
    let notes = &listed.notes;
    section(ui, "Owner");
    match notes.owner.as_deref().filter(|owner| !owner.is_empty()) {
        Some(owner) => ui.label(owner),
        None => ui.label(RichText::new("Nobody owns it yet").color(colours(ui).warning)),
    };
    if let Some(runbook) = notes
        .runbook
        .as_deref()
        .filter(|runbook| !runbook.is_empty())
        && ui.link("Runbook").on_hover_text(runbook).clicked()
    {
        cx.want(Intent::OpenUrl(runbook.to_owned()));
    }
    if !notes.text.is_empty() {
        ui.add(egui::Label::new(&notes.text).wrap());
    }
    ui.horizontal(|ui| {
        if button(ui, "Owner, notes and alerts…", None).clicked() {
            cx.dialog(Dialog::Notes(NotesDialog::new(id, listed)));
        }
    });
}

/// Acts on the whole destination that the broker itself can do.
fn acts(ui: &mut Ui, cx: &mut Cx<'_>, id: ConnectionId, listed: &Listed) {
    let capability = &listed.destination.capability;
    if !capability.redrive && !capability.purge && !capability.truncate {
        return;
    }
    section(ui, "Whole destination");
    let address = &listed.destination.address;
    let look = cx.state.look_on(id, address).map(|look| look.id);
    let read_only = cx
        .state
        .connection(id)
        .and_then(|connection| connection.read_only());
    let blocked = read_only.or(look
        .is_none()
        .then_some("Look at it first, so that the plan knows what is in it."));
    ui.horizontal_wrapped(|ui| {
        let kinds = [
            (capability.redrive, Kind::Redrive, "Redrive all…"),
            (capability.purge, Kind::Purge, "Purge…"),
            (capability.truncate, Kind::Truncate, "Delete resolved…"),
        ];
        for (can, kind, text) in kinds {
            if can
                && button(ui, text, blocked).clicked()
                && let Some(look) = look
            {
                let count = listed.destination.depth.value.unwrap_or(0);
                cx.dialog(Dialog::Plan(Box::new(PlanDialog::new(
                    kind,
                    look,
                    dlo_engine::command::Selection::All,
                    count,
                ))));
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_partitions_are_read_or_explained() {
        assert_eq!(
            parse_offsets("0:1200, 1:980"),
            Ok(vec![(0, 1200), (1, 980)])
        );
        assert!(parse_offsets("").is_err() && parse_offsets("12").is_err());
        assert_eq!(parse_partitions(" all "), Ok(None));
        assert_eq!(parse_partitions("0,2"), Ok(Some(vec![0, 2])));
        assert!(parse_partitions("x").is_err());
    }
}
