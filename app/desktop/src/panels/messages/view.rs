//! Draws the messages of a look.

use dlo_core::{Consent, Millis};
use dlo_engine::{
    Ask,
    command::{DecodeAs, ShowResolved},
    store::{GroupRow, KeyKind, Row, RowState},
};
use egui::{Button, RichText, Ui};

use super::{LookPanel, acts::acts};
use crate::{
    action::Action,
    intent::{Cx, Intent},
    panels::{
        destination::verdict_tone,
        destinations::{Urgency, facts},
        top::hint,
    },
    state::{LookPhase, LookState},
    theme::{self, Colours, colours},
    widgets::{
        figure,
        message_table::{Grouping, Line},
        parts::{Tone, button, chip, quiet_button, text_field},
        table::{Cell, Click, Column, Fold, Picked, RowContent, Shape, Touched},
    },
    words,
};

pub fn look_ui(
    ui: &mut Ui,
    cx: &mut Cx<'_>,
    panel: &mut LookPanel,
    look: &LookState,
    focus_filter: bool,
) {
    let groups = look.view.groups();
    if panel
        .lines
        .update(&look.view, look.filter.rows.as_ref(), &groups)
    {
        ui.ctx().request_repaint();
    }
    refilter(cx, look);
    let margin = egui::Margin::symmetric(10, 4);
    egui::Panel::top(ui.scope_id().with("look head"))
        .frame(egui::Frame::new().inner_margin(margin))
        .show(ui, |ui| {
            head(ui, cx, look);
            cost_line(ui, cx, look, &groups);
            filter_line(ui, cx, panel, look, focus_filter);
        });
    egui::Panel::bottom(ui.scope_id().with("look acts"))
        .frame(egui::Frame::new().inner_margin(egui::Margin::symmetric(10, 6)))
        .show(ui, |ui| acts(ui, cx, panel, look));
    egui::CentralPanel::no_frame().show(ui, |ui| table(ui, cx, panel, look, &groups));
}

/// While messages keep coming, what matches is asked again now and then.
fn refilter(cx: &mut Cx<'_>, look: &LookState) {
    let stale = look.filter.rows.is_some() && look.view.len() > look.filter.of;
    if stale
        && look.filter.asked.is_none()
        && !cx
            .state
            .is_running(|purpose| matches!(purpose, crate::state::Purpose::Filter(_)))
    {
        cx.want(Intent::Filter(
            look.id,
            look.filter.query.clone(),
            look.filter.resolved,
        ));
    }
}

fn head(ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState) {
    let connection = cx.state.connection(look.connection);
    let listed = connection.and_then(|connection| cx.state.shown(connection, &look.address));
    ui.horizontal_wrapped(|ui| {
        let name = egui::Label::new(
            RichText::new(&look.address.name)
                .size(16.0)
                .family(theme::bold())
                .color(colours(ui).strong),
        )
        .sense(egui::Sense::click());
        if ui
            .add(name)
            .on_hover_text("Facts, owner and settings of this destination")
            .clicked()
        {
            cx.want(Intent::Show(crate::state::Center::Destination(
                look.connection,
                look.address.clone(),
            )));
        }
        let Some(listed) = listed else {
            return;
        };
        figure::figure_ui(ui, listed.destination.depth, "messages waiting");
        for (text, urgency) in facts(&listed, cx.state.now) {
            ui.weak("·");
            let colour = match urgency {
                Urgency::Calm => colours(ui).weak,
                Urgency::Notice => colours(ui).warning,
                Urgency::Urgent => colours(ui).danger,
            };
            ui.label(RichText::new(text).color(colour));
        }
        if let Some(runbook) = listed
            .notes
            .runbook
            .as_deref()
            .filter(|runbook| !runbook.is_empty())
            && ui.link("Runbook").on_hover_text(runbook).clicked()
        {
            cx.want(Intent::OpenUrl(runbook.to_owned()));
        }
    });
}

/// What looking costs, what is held until when, and how far the scan has come.
fn cost_line(ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState, groups: &[GroupRow]) {
    ui.horizontal_wrapped(|ui| {
        let progress = &look.progress;
        match &look.phase {
            LookPhase::Running => {
                ui.add(egui::Spinner::new().size(12.0));
            }
            LookPhase::Paused(why) => {
                chip(ui, "paused", Tone::Warning).on_hover_text(why);
            }
            LookPhase::Ended => {}
            LookPhase::Lost(why) => {
                chip(ui, "hold lost", Tone::Danger).on_hover_text(why);
            }
            LookPhase::Closing => {
                chip(ui, "giving back", Tone::Accent);
            }
            LookPhase::Closed(returned) => {
                let text = format!("{} given back", words::count(returned.given_back));
                chip(ui, &text, Tone::Fine).on_hover_text(returned_text(returned));
            }
            LookPhase::Failed(error) => {
                ui.label(RichText::new(words::error(error)).color(colours(ui).danger));
            }
        }
        ui.label(RichText::new(scan_text(look, groups)).color(colours(ui).text));
        match &progress.hold {
            Some(hold) => {
                // What was settled since is not held any more, although nobody has counted again.
                let open: u64 = groups.iter().map(|group| group.open).sum();
                let held = hold.messages.min(open);
                hold_ui(ui, cx, look, held, hold.until, hold.at_most_until);
            }
            None if look.phase.is_open() && !look.cost.line.is_empty() => {
                ui.weak("·");
                let tone = verdict_tone(look.cost.verdict);
                let colour = if tone == Tone::Plain {
                    colours(ui).weak
                } else {
                    tone.text(colours(ui))
                };
                ui.label(RichText::new(&look.cost.line).color(colour));
            }
            None => {}
        }
        for note in &progress.notes {
            ui.label(RichText::new(note).color(colours(ui).warning));
        }
        buttons(ui, cx, look);
    });
}

fn buttons(ui: &mut Ui, cx: &mut Cx<'_>, look: &LookState) {
    if let (true, Some(task)) = (look.progress.running, look.task)
        && quiet_button(ui, "Stop", None)
            .on_hover_text("Stop reading; what is loaded stays")
            .clicked()
    {
        cx.want(Intent::CancelTask(task));
    }
    if matches!(look.phase, LookPhase::Paused(_))
        && button(ui, "Look further", None)
            .on_hover_text(hint(ui, Action::LookFurther))
            .clicked()
    {
        cx.ask(Ask::LookFurther { look: look.id });
    }
    if look.phase.is_open() {
        let holds = look.progress.hold.is_some();
        let text = if holds { "Give back" } else { "Close" };
        let tooltip = if holds {
            hint(ui, Action::GiveBack)
        } else {
            "End the look; nothing is held".to_owned()
        };
        if button(ui, text, None).on_hover_text(tooltip).clicked() {
            cx.ask(Ask::CloseLook { look: look.id });
        }
    } else if look.phase != LookPhase::Closing
        && button(ui, "Look again", None)
            .on_hover_text(hint(ui, Action::Look))
            .clicked()
    {
        cx.want(Intent::Look(
            look.connection,
            look.address.clone(),
            Consent::Unasked,
        ));
    }
}

fn returned_text(returned: &dlo_core::Returned) -> String {
    let mut parts = vec![format!(
        "{} given back in their order",
        words::counted(returned.given_back, "message")
    )];
    if returned.rescued > 0 {
        parts.push(format!(
            "{} rescued: saved, and put back as confirmed copies",
            words::count(returned.rescued)
        ));
    }
    if returned.lost_hold > 0 {
        parts.push(format!(
            "{} no longer held; the broker has them",
            words::count(returned.lost_hold)
        ));
    }
    parts.extend(returned.notes.iter().cloned());
    parts.join("\n")
}

fn hold_ui(
    ui: &mut Ui,
    cx: &mut Cx<'_>,
    look: &LookState,
    messages: u64,
    until: Millis,
    at_most: Option<Millis>,
) {
    let left = until.since(cx.state.now);
    let urgent = left < 60_000;
    ui.weak("·");
    let text = format!(
        "holds {} · returns in {}",
        words::count(messages),
        words::countdown(left)
    );
    let colour = if urgent {
        colours(ui).warning
    } else {
        colours(ui).weak
    };
    let tooltip = match at_most {
        Some(limit) => format!(
            "{}\nThe broker allows it until {} at most.",
            look.cost.line,
            words::moment(limit)
        ),
        None => look.cost.line.clone(),
    };
    ui.label(RichText::new(text).color(colour))
        .on_hover_text(tooltip);
    if quiet_button(ui, "Hold longer", None)
        .on_hover_text(hint(ui, Action::ExtendHold))
        .clicked()
    {
        cx.ask(Ask::ExtendHold { look: look.id });
    }
    ui.ctx()
        .request_repaint_after(std::time::Duration::from_millis(500));
}

/// What was scanned and what was passed over, honestly.
fn scan_text(look: &LookState, groups: &[GroupRow]) -> String {
    let progress = &look.progress;
    let shown = u64::from(look.view.len());
    let open: u64 = groups.iter().map(|group| group.open).sum();
    let loaded = words::count(shown);
    let mut parts = vec![
        if open < shown && look.phase.is_open() && progress.dropped == 0 {
            format!("{} left of {loaded} loaded", words::count(open))
        } else {
            format!("{loaded} loaded")
        },
    ];
    if progress.scanned > shown {
        let total = if progress.total.value.is_some() {
            format!(" of {}", words::figure(progress.total))
        } else {
            String::new()
        };
        parts.push(format!("scanned {}{total}", words::count(progress.scanned)));
    } else if let Some(total) = progress.total.value
        && total > shown
    {
        parts.push(format!("of {}", words::figure(progress.total)));
    }
    if progress.gaps > 0 {
        parts.push(words::counted(progress.gaps, "gap"));
    }
    if progress.errors > 0 {
        parts.push(format!("{} unreadable", words::count(progress.errors)));
    }
    if progress.dropped > 0 {
        parts.push(format!(
            "{} dropped to stay within memory",
            words::count(progress.dropped)
        ));
    }
    parts.join(" · ")
}

fn filter_line(ui: &mut Ui, cx: &mut Cx<'_>, panel: &mut LookPanel, look: &LookState, focus: bool) {
    ui.horizontal_wrapped(|ui| {
        let mut grouped = panel.lines.grouping == Grouping::ByFailure;
        let width = (ui.available_width() - 300.0).max(140.0);
        let hint_text = "Filter: text, reason:timeout, attempts>3, /items/0/sku = \"A-1\"";
        let field = text_field(ui, "Filter messages", &mut panel.query, hint_text, width)
            .on_hover_text(QUERY_HELP);
        if focus {
            field.request_focus();
        }
        let changed = field.changed();
        if ui
            .add(Button::selectable(grouped, "Group by failure"))
            .on_hover_text(hint(ui, Action::ToggleGrouping))
            .clicked()
        {
            grouped = !grouped;
            panel.toggle_grouping();
        }
        let mut resolved = panel.resolved == ShowResolved::Show;
        let before = resolved;
        ui.checkbox(&mut resolved, "Settled").on_hover_text(
            "Also show messages that need nobody any more: replayed or discarded since they were loaded, or marked as resolved on a broker that cannot remove them",
        );
        panel.resolved = if resolved {
            ShowResolved::Show
        } else {
            ShowResolved::Hide
        };
        if changed || before != resolved {
            cx.want(Intent::Filter(look.id, panel.query.clone(), panel.resolved));
        }
        let _ = grouped;
    });
    if let Some(error) = &look.filter.error {
        let text = match error.advice() {
            Some(advice) => format!("{}. {advice}", words::sentence(error.what())),
            None => words::sentence(error.what()),
        };
        ui.add(egui::Label::new(RichText::new(text).color(colours(ui).danger)).wrap());
    } else if look.filter.is_active() {
        let shown = panel.lines.shown(&look.view);
        ui.weak(format!(
            "{} of {} match",
            words::count(shown),
            words::count(u64::from(look.view.len() - look.view.first()))
        ));
    }
}

const QUERY_HELP: &str = "Words match anywhere in the message.\nfield:text and comparisons (=, !=, <, >, ~) narrow by reason, class, origin, attempts, time, key, size, header.NAME or a JSON Pointer into the body.\nand, or, not and brackets combine them.";

fn table(
    ui: &mut Ui,
    cx: &mut Cx<'_>,
    panel: &mut LookPanel,
    look: &LookState,
    groups: &[GroupRow],
) {
    let colours = colours(ui);
    if look.view.is_empty() && !look.progress.running {
        let text = if look.phase == LookPhase::Ended {
            "Nothing is in it."
        } else {
            "Nothing was loaded."
        };
        crate::widgets::parts::empty(ui, "No messages", text);
        return;
    }
    if let Some(row) = panel.reveal
        && let Some(line) = panel.lines.line_of(row, &look.view)
    {
        panel.cursor = Some(line);
        panel.anchor = Some(line);
        panel.table.scroll.reveal(line);
        panel.reveal = None;
    }
    let total = panel.lines.total();
    if total == 0 && look.filter.asked.is_none() && !look.progress.running {
        let (title, text) = if look.filter.is_active() {
            ("No match", "No message matches the filter.")
        } else {
            (
                "Nothing is left",
                "Every message that was loaded is settled. Tick Settled to see them, or look again.",
            )
        };
        crate::widgets::parts::empty(ui, title, text);
        return;
    }
    let columns = fields(ui.available_width());
    let shown: Vec<Column> = columns.iter().map(|field| field.column()).collect();
    let (lines, selected, table) = (&mut panel.lines, &panel.selected, &mut panel.table);
    let open_row = look.wanted;
    let touched = table.show(ui, "Messages", &shown, total, |line| match lines.at(line) {
        Some(Line::Group(id)) => {
            let group = groups.iter().find(|group| group.id == id);
            let fold = if lines.open.contains(&id) {
                Fold::Open
            } else {
                Fold::Closed
            };
            let rows = lines.group(id);
            let all = !rows.is_empty()
                && rows.len() as u64 <= selected.len()
                && rows.iter().all(|row| selected.contains(*row));
            group_content(group, rows.len() as u64, fold, all, colours)
        }
        Some(Line::Message(row)) => match lines.row(&look.view, row) {
            Some(content) => message_content(
                columns,
                &content,
                look.drafts.contains_key(&row),
                selected.contains(row),
                open_row == Some(row),
                colours,
            ),
            None => gone_content(colours),
        },
        None => gone_content(colours),
    });
    react(ui, cx, panel, look, &touched);
}

fn gone_content(colours: &Colours) -> RowContent {
    RowContent {
        cells: vec![
            Cell::new("", colours.weak),
            Cell::new("dropped", colours.weak),
        ],
        name: "A message that was dropped".to_owned(),
        ground: None,
        state: Picked::No,
        shape: Shape::Cells,
    }
}

fn group_content(
    group: Option<&GroupRow>,
    shown: u64,
    fold: Fold,
    all: bool,
    colours: &Colours,
) -> RowContent {
    let label = group.map_or("", |group| group.label.as_str());
    let class = group.map_or("", |group| group.class.as_str());
    let text = format!(
        "{}   {}",
        words::count(shown),
        if label.is_empty() {
            "No reason known"
        } else {
            label
        }
    );
    let tone = match class {
        "bug" => colours.danger,
        "transient" | "throttled" => colours.accent,
        "contract" => colours.warning,
        _ => colours.weak,
    };
    RowContent {
        cells: vec![Cell::bold(text, colours.strong), Cell::new(class, tone)],
        name: format!("Group {label}, {}", words::counted(shown, "message")),
        ground: Some(colours.panel),
        state: if all { Picked::Yes } else { Picked::No },
        shape: Shape::Band(fold),
    }
}

/// What a column of the table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Number,
    Time,
    /// The time of day alone.
    ShortTime,
    Key,
    Attempts,
    Size,
    Payload,
}

impl Field {
    fn column(self) -> Column {
        match self {
            Self::Number => Column::right("#", 56.0),
            Self::Time => Column::left("time (UTC)", 160.0),
            Self::ShortTime => Column::left("UTC", 76.0),
            Self::Key => Column::left("key", 106.0),
            Self::Attempts => Column::right("attempts", 66.0),
            Self::Size => Column::right("size", 64.0),
            Self::Payload => Column::rest("payload"),
        }
    }

    fn cell(self, row: &Row, text: egui::Color32, colours: &Colours) -> Cell {
        match self {
            Self::Number => Cell::mono((u64::from(row.row) + 1).to_string(), colours.weak),
            Self::Time => Cell::mono(row.time.map(words::moment).unwrap_or_default(), text),
            Self::ShortTime => Cell::mono(row.time.map(words::clock).unwrap_or_default(), text),
            Self::Key => key_cell(row, text, colours),
            Self::Attempts => Cell::mono(
                row.attempts
                    .map(|count| count.to_string())
                    .unwrap_or_default(),
                text,
            ),
            Self::Size => Cell::new(row.size.map(words::size).unwrap_or_default(), colours.weak),
            Self::Payload => Cell::mono(String::new(), text),
        }
    }
}

/// The columns that leave room for the payload: the narrower the table, the fewer.
fn fields(width: f32) -> &'static [Field] {
    use Field::{Attempts, Key, Number, Payload, ShortTime, Size, Time};
    match width {
        640.0.. => &[Number, Time, Key, Attempts, Size, Payload],
        560.0.. => &[Number, Time, Key, Attempts, Payload],
        480.0.. => &[Number, Time, Key, Payload],
        430.0.. => &[Number, ShortTime, Key, Payload],
        _ => &[Number, ShortTime, Payload],
    }
}

/// The key; what only stands in for one says what it is.
fn key_cell(row: &Row, text: egui::Color32, colours: &Colours) -> Cell {
    let key = row.key.as_deref().unwrap_or_default();
    match row.key_kind {
        KeyKind::Key if key.is_empty() => Cell::mono("empty", colours.weak),
        KeyKind::Key => Cell::mono(key, text),
        KeyKind::Group => Cell::mono(format!("group {key}"), text),
        KeyKind::MessageId => Cell::mono(format!("id {key}"), colours.weak),
        KeyKind::CorrelationId => Cell::mono(format!("corr. {key}"), colours.weak),
        KeyKind::Null => Cell::mono("null", colours.weak),
        KeyKind::None => Cell::mono("", colours.weak),
    }
}

fn message_content(
    columns: &[Field],
    row: &Row,
    edited: bool,
    selected: bool,
    open: bool,
    colours: &Colours,
) -> RowContent {
    let gone = !row.state.can_act();
    let text = if gone { colours.weak } else { colours.text };
    let mark = match row.state {
        RowState::Here => "",
        RowState::Resolved => "[resolved] ",
        RowState::Replayed => "[replayed] ",
        RowState::Discarded => "[discarded] ",
        RowState::Stale => "[not held] ",
        RowState::Unknown => "[unknown] ",
    };
    let edited_mark = if edited { "[edited] " } else { "" };
    let payload = match row.size {
        None => "null".to_owned(),
        Some(0) => "empty".to_owned(),
        Some(_) => row.preview.clone(),
    };
    let payload_colour = match row.state {
        RowState::Unknown => colours.warning,
        _ if edited => colours.accent,
        _ => text,
    };
    RowContent {
        cells: columns
            .iter()
            .map(|field| match field {
                Field::Payload => {
                    Cell::mono(format!("{mark}{edited_mark}{payload}"), payload_colour)
                }
                field => field.cell(row, text, colours),
            })
            .collect(),
        name: format!("Message {}", row.row + 1),
        ground: open.then_some(colours.hover),
        state: if selected { Picked::Yes } else { Picked::No },
        shape: Shape::Cells,
    }
}

fn react(ui: &Ui, cx: &mut Cx<'_>, panel: &mut LookPanel, look: &LookState, touched: &Touched) {
    if let Some(click) = touched.clicked {
        clicked(ui, cx, panel, look, click);
    }
    if !touched.focused {
        return;
    }
    let shift = ui.input(|input| input.modifiers.shift);
    if let Some(line) = panel
        .table
        .scroll
        .keys(ui, panel.cursor, panel.lines.total())
    {
        panel.table.scroll.reveal(line);
        pick(
            cx,
            panel,
            look,
            line,
            if shift { Pick::Range } else { Pick::Only },
        );
    }
    let pressed = |key| ui.input(|input| input.key_pressed(key));
    let under = panel.cursor.and_then(|line| panel.lines.at(line));
    if let Some(Line::Group(group)) = under
        && (pressed(egui::Key::ArrowRight) && !panel.lines.open.contains(&group)
            || pressed(egui::Key::ArrowLeft) && panel.lines.open.contains(&group)
            || pressed(egui::Key::Enter))
    {
        panel.lines.fold(group);
    }
    if let Some(Line::Message(row)) = under
        && pressed(egui::Key::Enter)
    {
        cx.want(Intent::OpenMessage(look.id, row, DecodeAs::Detected));
    }
    if pressed(egui::Key::Space)
        && let Some(line) = panel.cursor
    {
        pick(cx, panel, look, line, Pick::Toggle);
    }
}

fn clicked(ui: &Ui, cx: &mut Cx<'_>, panel: &mut LookPanel, look: &LookState, click: Click) {
    let how = if click.modifiers.command {
        Pick::Toggle
    } else if click.modifiers.shift {
        Pick::Range
    } else {
        Pick::Only
    };
    if let Some(Line::Group(group)) = panel.lines.at(click.row) {
        let left = ui.clip_rect().min.x;
        let on_triangle = ui
            .input(|input| input.pointer.interact_pos())
            .is_some_and(|pos| pos.x < left + 30.0);
        if on_triangle || click.times == 2 {
            panel.lines.fold(group);
            if on_triangle {
                return;
            }
        }
    }
    pick(cx, panel, look, click.row, how);
}

enum Pick {
    Only,
    Toggle,
    Range,
}

/// Selects by click or key, and opens the message under the cursor.
fn pick(cx: &mut Cx<'_>, panel: &mut LookPanel, look: &LookState, line: u64, how: Pick) {
    match how {
        Pick::Only => {
            panel.selected.clear();
            panel.anchor = Some(line);
            select_line(panel, look, line);
        }
        Pick::Toggle => {
            panel.anchor = Some(line);
            toggle_line(panel, look, line);
        }
        Pick::Range => {
            let anchor = panel.anchor.unwrap_or(line);
            panel.selected.clear();
            for line in anchor.min(line)..=anchor.max(line) {
                select_line(panel, look, line);
            }
            panel.anchor = Some(anchor);
        }
    }
    panel.cursor = Some(line);
    if let (Pick::Only, Some(Line::Message(row))) = (&how, panel.lines.at(line))
        && look.wanted != Some(row)
    {
        cx.want(Intent::OpenMessage(look.id, row, DecodeAs::Detected));
    }
}

/// Rows of a line on which something can be done.
fn rows_of(panel: &LookPanel, look: &LookState, line: u64) -> Vec<u32> {
    let rows = match panel.lines.at(line) {
        Some(Line::Message(row)) => vec![row],
        Some(Line::Group(group)) => panel.lines.group(group).to_vec(),
        None => Vec::new(),
    };
    look.view.actable_among(rows)
}

fn select_line(panel: &mut LookPanel, look: &LookState, line: u64) {
    let rows = rows_of(panel, look, line);
    panel.selected.extend(rows);
}

fn toggle_line(panel: &mut LookPanel, look: &LookState, line: u64) {
    match panel.lines.at(line) {
        Some(Line::Message(row)) if panel.selected.contains(row) => panel.selected.remove(row),
        Some(Line::Group(_)) => {
            let rows = rows_of(panel, look, line);
            if rows.iter().all(|row| panel.selected.contains(*row)) {
                rows.iter().for_each(|row| panel.selected.remove(*row));
            } else {
                panel.selected.extend(rows);
            }
        }
        _ => select_line(panel, look, line),
    }
}
