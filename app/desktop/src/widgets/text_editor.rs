//! A text editor with line numbers and error marks.

use egui::{FontSelection, Response, ScrollArea, TextEdit, Ui, pos2, vec2};

use crate::theme::{colours, mono_font};

/// Where the text is wrong and why; lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub line: usize,
    pub text: String,
}

/// Draws the editor, `height` points high. Lines with a mark are underlaid and say why under the pointer.
pub fn text_editor(
    ui: &mut Ui,
    name: &str,
    text: &mut String,
    marks: &[Mark],
    height: f32,
) -> Response {
    let colours = colours(ui);
    let (frame, _) =
        ui.allocate_exact_size(vec2(ui.available_width(), height), egui::Sense::hover());
    ui.painter().rect_filled(frame, 5.0, colours.ground);
    let mut inner = ui.new_child(
        egui::UiBuilder::new()
            .id_salt(name)
            .max_rect(frame.shrink(4.0)),
    );
    inner.set_clip_rect(frame.intersect(ui.clip_rect()));
    ScrollArea::both()
        .id_salt((name, "scroll"))
        .auto_shrink(false)
        .show(&mut inner, |ui| {
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            let digits = lines.to_string().len().max(2);
            let letter = ui.fonts_mut(|fonts| fonts.glyph_width(&mono_font(), '0'));
            let gutter = letter * digits as f32 + 18.0;
            let width = (frame.width() - gutter - 28.0).max(80.0);
            let output = ui
                .horizontal_top(|ui| {
                    ui.add_space(gutter);
                    TextEdit::multiline(text)
                        .id_salt((name, "text"))
                        .font(FontSelection::FontId(mono_font()))
                        .lock_focus(true)
                        .frame(egui::Frame::NONE)
                        .desired_width(width)
                        .show(ui)
                })
                .inner;
            numbers(ui, &output, marks, letter * digits as f32);
            output.response.response.accessible_name(name)
        })
        .inner
}

fn numbers(ui: &Ui, output: &egui::text_edit::TextEditOutput, marks: &[Mark], width: f32) {
    let colours = colours(ui);
    let painter = ui.painter();
    let clip = ui.clip_rect();
    let left = output.galley_pos.x - 14.0;
    let mut line = 1;
    let mut begins = true;
    for row in &output.galley.rows {
        let y = output.galley_pos.y + row.pos.y;
        let bottom = y + row.size.y;
        if begins && bottom >= clip.min.y && y <= clip.max.y {
            let mark = marks.iter().find(|mark| mark.line == line);
            let colour = if mark.is_some() {
                colours.danger
            } else {
                colours.weak
            };
            painter.text(
                pos2(left, y),
                egui::Align2::RIGHT_TOP,
                line,
                mono_font(),
                colour,
            );
            if let Some(mark) = mark {
                let rect =
                    egui::Rect::from_min_max(pos2(left - width, y), pos2(clip.max.x, bottom));
                painter.rect_filled(rect, 2.0, colours.danger.gamma_multiply(0.14));
                if ui.rect_contains_pointer(rect) {
                    output
                        .response
                        .response
                        .clone()
                        .on_hover_text_at_pointer(&mark.text);
                }
            }
        }
        begins = row.ends_with_newline;
        if begins {
            line += 1;
        }
    }
}

/// The line of a byte offset, counted from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        assert_eq!(
            (line_of("a\nb", 0), line_of("a\nb", 2), line_of("", 9)),
            (1, 2, 1)
        );
    }
}
