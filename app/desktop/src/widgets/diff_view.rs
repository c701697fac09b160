//! Two texts line by line: what went and what came.

use egui::{Role, Sense, Ui, WidgetInfo, vec2};
use similar::{ChangeTag, TextDiff};

use super::rows::RowScroll;
use crate::theme::{colours, mono_font};

/// A computed difference. Computing takes time, so it is made once, not in each frame.
#[derive(Clone, Debug, Default)]
pub struct Diff {
    pub lines: Vec<DiffLine>,
    /// Said instead of lines when the texts are too large to compare.
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: LineKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    Same,
    Gone,
    New,
    /// Lines that are the same on both sides and were left out.
    Skipped,
}

/// Lines of what is the same that stay around a change.
const AROUND: usize = 3;
/// Texts beyond this are not compared line by line.
const LARGEST: usize = 512 * 1024;

impl Diff {
    /// Compares two texts.
    pub fn new(before: &str, after: &str) -> Self {
        if before == after {
            return Self::default();
        }
        if before.len() + after.len() > LARGEST {
            let note = format!(
                "Too large to compare line by line: {} before, {} after.",
                crate::words::size(before.len() as u64),
                crate::words::size(after.len() as u64)
            );
            return Self {
                lines: Vec::new(),
                note: Some(note),
            };
        }
        let diff = TextDiff::from_lines(before, after);
        let all: Vec<_> = diff
            .iter_all_changes()
            .map(|change| DiffLine {
                kind: match change.tag() {
                    ChangeTag::Equal => LineKind::Same,
                    ChangeTag::Delete => LineKind::Gone,
                    ChangeTag::Insert => LineKind::New,
                },
                text: change.value().trim_end_matches(['\r', '\n']).to_owned(),
            })
            .collect();
        Self {
            lines: fold(all),
            note: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.note.is_none()
    }
}

/// Leaves out long stretches of what is the same.
fn fold(all: Vec<DiffLine>) -> Vec<DiffLine> {
    let near = |index: usize| {
        let from = index.saturating_sub(AROUND);
        let until = (index + AROUND + 1).min(all.len());
        all[from..until]
            .iter()
            .any(|line| line.kind != LineKind::Same)
    };
    let mut lines = Vec::new();
    let mut skipped = 0;
    for (index, line) in all.iter().enumerate() {
        if near(index) {
            push_skipped(&mut lines, &mut skipped);
            lines.push(line.clone());
        } else {
            skipped += 1;
        }
    }
    push_skipped(&mut lines, &mut skipped);
    lines
}

fn push_skipped(lines: &mut Vec<DiffLine>, skipped: &mut u64) {
    if *skipped > 0 {
        lines.push(DiffLine {
            kind: LineKind::Skipped,
            text: format!("{} the same", crate::words::counted(*skipped, "line")),
        });
        *skipped = 0;
    }
}

/// Position of one diff view.
#[derive(Clone, Debug, Default)]
pub struct DiffView {
    scroll: RowScroll,
}

const HEIGHT: f32 = 19.0;

impl DiffView {
    /// Draws at most `height` points high.
    pub fn show(&mut self, ui: &mut Ui, name: &str, diff: &Diff, height: f32) {
        if let Some(note) = &diff.note {
            ui.weak(note);
            return;
        }
        if diff.lines.is_empty() {
            ui.weak("No difference");
            return;
        }
        let colours = colours(ui);
        let wanted = (diff.lines.len() as f32 * HEIGHT + 8.0).min(height);
        let (full, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), wanted), Sense::hover());
        let id = response.id.with("diff");
        response.widget_info(|| WidgetInfo::labeled(Role::Document, true, name));
        ui.painter().rect_filled(full, 5.0, colours.ground);
        let area = full.shrink2(vec2(0.0, 4.0));
        let window = self
            .scroll
            .window(ui, id, area, diff.lines.len() as u64, HEIGHT);
        let painter = ui.painter_at(window.area);
        for row in window.first..window.first + window.count {
            let line = &diff.lines[row as usize];
            let place = window.row(row, HEIGHT);
            let (mark, colour, ground) = match line.kind {
                LineKind::Same => (" ", colours.text, None),
                LineKind::Gone => ("−", colours.danger, Some(colours.danger_ground)),
                LineKind::New => ("+", colours.fine, Some(colours.fine_ground)),
                LineKind::Skipped => ("…", colours.weak, None),
            };
            if let Some(ground) = ground {
                painter.rect_filled(place, 0.0, ground);
            }
            let text: String = line.text.chars().take(2_000).collect();
            let at = place.left_center() + vec2(10.0, 0.0);
            painter.text(at, egui::Align2::LEFT_CENTER, mark, mono_font(), colour);
            let at = at + vec2(18.0, 0.0);
            painter.text(at, egui::Align2::LEFT_CENTER, text, mono_font(), colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_three_lines_around_it() {
        let before: String = (0..20).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 10\n", "line ten\n");
        let diff = Diff::new(&before, &after);
        let kinds: Vec<_> = diff.lines.iter().map(|line| line.kind).collect();
        use LineKind::{Gone, New, Same, Skipped};
        assert_eq!(
            kinds,
            [
                Skipped, Same, Same, Same, Gone, New, Same, Same, Same, Skipped
            ]
        );
        assert!(Diff::new("a", "a").is_empty());
    }

    #[test]
    fn what_is_too_large_says_so() {
        let large = "x".repeat(LARGEST);
        assert!(Diff::new(&large, "y").note.is_some());
    }
}
