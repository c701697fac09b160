//! Bytes as hexadecimal and text, sixteen a row, with a selection that can be copied.

use egui::{Id, Rect, Role, Sense, Ui, WidgetInfo, pos2, vec2};

use super::rows::RowScroll;
use crate::theme::{colours, mono_font};

/// Position and selection of one hex view.
#[derive(Clone, Debug, Default)]
pub struct HexView {
    scroll: RowScroll,
    /// First and last selected byte, in the order they were touched.
    selected: Option<(usize, usize)>,
}

const PER_ROW: usize = 16;
const HEIGHT: f32 = 19.0;
/// Columns in characters: offset, gap, three per byte with a gap in the middle, gap, text.
const HEX_AT: usize = 10;
const TEXT_AT: usize = HEX_AT + PER_ROW * 3 + 2;

impl HexView {
    /// The selected range of bytes.
    pub fn selection(&self) -> Option<std::ops::RangeInclusive<usize>> {
        self.selected.map(|(a, b)| a.min(b)..=a.max(b))
    }

    /// Draws into the space that is left.
    pub fn show(&mut self, ui: &mut Ui, name: &str, bytes: &[u8]) {
        let id = ui.make_persistent_id(("hex", name));
        let full = ui.available_rect_before_wrap();
        ui.allocate_rect(full, Sense::hover());
        let colours = colours(ui);
        ui.painter().rect_filled(full, 0.0, colours.ground);
        let area = full.shrink2(vec2(8.0, 4.0));
        let response = ui.interact(area, id, Sense::click_and_drag());
        response.widget_info(|| WidgetInfo::labeled(Role::MultilineTextInput, true, name));
        let total = bytes.len().div_ceil(PER_ROW) as u64;
        let window = self.scroll.window(ui, id, area, total, HEIGHT);
        let letter = ui.fonts_mut(|fonts| fonts.glyph_width(&mono_font(), '0'));
        self.select(
            ui,
            &response,
            window.first,
            window.y,
            area,
            letter,
            bytes.len(),
        );
        let selection = self.selection();
        for row in window.first..window.first + window.count {
            let start = row as usize * PER_ROW;
            let line = &bytes[start..(start + PER_ROW).min(bytes.len())];
            let place = window.row(row, HEIGHT);
            paint_row(ui, area, place, letter, start, line, selection.as_ref());
        }
        if response.has_focus() {
            self.copy_key(ui, bytes);
        }
        response.context_menu(|ui| {
            if ui.button("Copy as hexadecimal").clicked() {
                ui.ctx().copy_text(self.as_hex(bytes));
                ui.close();
            }
            if ui.button("Copy as text").clicked() {
                ui.ctx()
                    .copy_text(String::from_utf8_lossy(self.chosen(bytes)).into_owned());
                ui.close();
            }
            if ui.button("Select all").clicked() {
                self.selected = bytes.len().checked_sub(1).map(|last| (0, last));
                ui.close();
            }
        });
    }

    /// The selected bytes, or all.
    pub fn chosen<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        self.selection()
            .and_then(|range| bytes.get(range))
            .unwrap_or(bytes)
    }

    fn as_hex(&self, bytes: &[u8]) -> String {
        let pairs: Vec<_> = self
            .chosen(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        pairs.join(" ")
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the geometry of one frame; a struct would only rename it"
    )]
    fn select(
        &mut self,
        ui: &Ui,
        response: &egui::Response,
        first: u64,
        y: f32,
        area: Rect,
        letter: f32,
        length: usize,
    ) {
        let Some(pointer) = response.interact_pointer_pos() else {
            return;
        };
        let row = first as f32 + ((pointer.y - y) / HEIGHT).floor();
        let column = ((pointer.x - area.min.x) / letter) as usize;
        let within = if column >= TEXT_AT {
            (column - TEXT_AT).min(PER_ROW - 1)
        } else {
            (column.saturating_sub(HEX_AT) / 3).min(PER_ROW - 1)
        };
        let byte = (row.max(0.0) as usize * PER_ROW + within).min(length.saturating_sub(1));
        if length == 0 {
            return;
        }
        let shift = ui.input(|input| input.modifiers.shift);
        self.selected = match self.selected {
            Some((start, _)) if response.dragged() && !response.drag_started() || shift => {
                Some((start, byte))
            }
            _ => Some((byte, byte)),
        };
        response.request_focus();
    }

    fn copy_key(&self, ui: &Ui, bytes: &[u8]) {
        let copy = ui.input(|input| {
            input
                .events
                .iter()
                .any(|event| matches!(event, egui::Event::Copy))
        });
        if copy {
            ui.ctx().copy_text(self.as_hex(bytes));
        }
    }
}

fn paint_row(
    ui: &Ui,
    clip: Rect,
    place: Rect,
    letter: f32,
    start: usize,
    line: &[u8],
    selection: Option<&std::ops::RangeInclusive<usize>>,
) {
    let colours = colours(ui);
    let painter = ui.painter_at(clip);
    let at = |column: usize| pos2(clip.min.x + column as f32 * letter, place.min.y);
    let chosen = |index: usize| selection.is_some_and(|range| range.contains(&(start + index)));
    for index in (0..line.len()).filter(|index| chosen(*index)) {
        let hex = Rect::from_min_size(at(HEX_AT + index * 3), vec2(letter * 2.0, HEIGHT));
        let text = Rect::from_min_size(at(TEXT_AT + index), vec2(letter, HEIGHT));
        painter.rect_filled(hex, 2.0, colours.selection);
        painter.rect_filled(text, 2.0, colours.selection);
    }
    let hex: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
    let text: String = line
        .iter()
        .map(|byte| {
            if (0x20..0x7f).contains(byte) {
                char::from(*byte)
            } else {
                '·'
            }
        })
        .collect();
    let parts = [
        (0, format!("{start:08x}"), colours.weak),
        (HEX_AT, hex, colours.text),
        (TEXT_AT, text, colours.quoted),
    ];
    for (column, text, colour) in parts {
        painter.text(
            at(column),
            egui::Align2::LEFT_TOP,
            text,
            mono_font(),
            colour,
        );
    }
}

/// The name under which a hex view is found.
pub fn id_of(ui: &Ui, name: &str) -> Id {
    ui.make_persistent_id(("hex", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_is_in_order_and_all_without_one() {
        let mut view = HexView::default();
        assert_eq!(view.chosen(b"abc"), b"abc");
        view.selected = Some((2, 1));
        assert_eq!(view.chosen(b"abc"), b"bc");
        assert_eq!(view.as_hex(b"abc"), "62 63");
        view.selected = Some((1, 9));
        assert_eq!(view.chosen(b"abc"), b"abc");
    }
}
