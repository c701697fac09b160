//! The messages of a look: cost line, filter, table under failure groups, selection, and what can be done with it.

mod acts;
mod view;

use std::collections::HashMap;

use dlo_engine::{
    command::{LookId, Selection, ShowResolved},
    store::RowState,
};

use crate::{
    intent::Cx,
    state::LookState,
    widgets::{
        message_table::{Grouping, Lines, RowSet},
        table::Table,
    },
};

/// View state of all open looks.
#[derive(Debug, Default)]
pub struct MessagesPanel {
    looks: HashMap<LookId, LookPanel>,
    /// The filter field wants the keyboard in the next frame.
    focus_filter: bool,
}

/// View state of one look.
#[derive(Debug, Default)]
pub struct LookPanel {
    pub query: String,
    pub resolved: ShowResolved,
    pub lines: Lines,
    pub selected: RowSet,
    /// The line with the cursor, and where a selection by shift begins.
    cursor: Option<u64>,
    anchor: Option<u64>,
    table: Table,
    /// A row that is to be shown as soon as its line is known.
    reveal: Option<u32>,
    /// How many rows that are gone were taken out of the selection.
    seen_gone: usize,
}

impl MessagesPanel {
    /// Draws the look.
    pub fn ui(&mut self, ui: &mut egui::Ui, cx: &mut Cx<'_>, look: &LookState) {
        let focus = std::mem::take(&mut self.focus_filter);
        let panel = self.looks.entry(look.id).or_default();
        view::look_ui(ui, cx, panel, look, focus);
    }

    /// Forgets looks that are gone, and rows of the others on which nothing can be done any more.
    pub fn keep(&mut self, looks: &[LookState]) {
        self.looks
            .retain(|id, _| looks.iter().any(|look| look.id == *id));
        for look in looks {
            if let Some(panel) = self.looks.get_mut(&look.id) {
                panel.follow(look);
            }
        }
    }

    pub fn look(&mut self, id: LookId) -> &mut LookPanel {
        self.looks.entry(id).or_default()
    }

    /// How many messages of a look are selected.
    pub fn selected(&self, id: LookId) -> u64 {
        self.looks.get(&id).map_or(0, |panel| panel.selected.len())
    }

    /// Puts the keyboard into the filter field.
    pub fn focus_filter(&mut self) {
        self.focus_filter = true;
    }
}

impl LookPanel {
    /// Selects every row that is shown and can still be acted on.
    pub fn select_all(&mut self, look: &LookState) {
        self.selected.clear();
        let rows: Vec<u32> = self.lines.rows(&look.view).collect();
        self.selected.extend(look.view.actable_among(rows));
    }

    /// Takes rows out of the selection on which nothing can be done any more, because they were settled or are not held.
    pub fn follow(&mut self, look: &LookState) {
        let gone = look.view.gone_from(self.seen_gone);
        self.seen_gone += gone.len();
        for row in gone {
            self.selected.remove(row);
        }
    }

    pub fn select_none(&mut self) {
        self.selected.clear();
    }

    pub fn toggle_grouping(&mut self) {
        self.lines.grouping = match self.lines.grouping {
            Grouping::ByFailure => Grouping::None,
            Grouping::None => Grouping::ByFailure,
        };
        self.cursor = None;
        self.anchor = None;
    }

    /// Opens every group, or closes all when all are open.
    pub fn unfold(&mut self, look: &LookState) {
        let groups: Vec<u32> = look.view.groups().iter().map(|group| group.id).collect();
        if groups.iter().all(|group| self.lines.open.contains(group)) {
            self.lines.open.clear();
        } else {
            self.lines.open.extend(groups);
        }
    }

    /// Scrolls to a line without selecting it.
    pub fn jump(&mut self, line: u64) {
        self.table.scroll.top = line as f64;
    }

    /// Shows a row, unfolding its group.
    pub fn go_to(&mut self, row: u32, look: &LookState) {
        if let Some(group) = look.view.group_of(row) {
            self.lines.open.insert(group);
        }
        self.selected.clear();
        self.selected.insert(row);
        self.reveal = Some(row);
    }

    /// What is selected, as the engine is told it, and how many messages that are still there.
    pub fn selection(&self, look: &LookState) -> (Selection, u64) {
        // *All* means those that wait for somebody: resolved ones that are shown too are named one by one.
        let open: u64 = look.view.groups().iter().map(|group| group.open).sum();
        let everything =
            self.selected.len() == open && self.selected.len() == self.lines.actable(&look.view);
        let can_act = |row: u32| look.view.state(row).is_some_and(RowState::can_act);
        let rows: Vec<u32> = self.selected.iter().filter(|row| can_act(*row)).collect();
        let count = rows.len() as u64;
        match everything {
            // A look that is still running has rows that nobody has seen yet, so it is told by rows.
            true if !look.progress.running
                && !look.filter.is_active()
                && look.filter.rows.is_none() =>
            {
                (Selection::All, count)
            }
            _ => (Selection::Rows(rows), count),
        }
    }
}
