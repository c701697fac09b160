//! A vertical list of any length. The position is kept in rows as `f64`, never in pixels: with pixels in `f32` a table of ten
//! million rows jumps and never reaches its last row.

use egui::{Id, Key, Rect, Sense, Ui, WidgetInfo, pos2, vec2};

/// Where a list of rows is scrolled to.
#[derive(Clone, Debug, Default)]
pub struct RowScroll {
    /// The row at the top edge, with its hidden part as the fraction.
    pub top: f64,
    /// Where the thumb was seized: the position then, and the pointer.
    drag: Option<(f64, f32)>,
    /// A row to bring into sight in the next frame.
    wanted: Option<u64>,
    /// Rows that fitted in the last frame.
    pub visible: f64,
}

/// The rows of this frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub first: u64,
    pub count: u64,
    /// Where the first row begins; above the area when it is partly hidden.
    pub y: f32,
    /// The area without the scroll bar.
    pub area: Rect,
}

impl Window {
    /// Where a row lies.
    pub fn row(&self, index: u64, height: f32) -> Rect {
        let y = self.y + (index - self.first) as f32 * height;
        Rect::from_min_size(pos2(self.area.min.x, y), vec2(self.area.width(), height))
    }
}

const BAR: f32 = 11.0;

impl RowScroll {
    /// Brings a row into sight with the next frame.
    pub fn reveal(&mut self, row: u64) {
        self.wanted = Some(row);
    }

    /// Reads wheel and scroll bar, draws the bar, and says which rows are to be drawn where.
    pub fn window(&mut self, ui: &mut Ui, id: Id, area: Rect, total: u64, height: f32) -> Window {
        let visible = f64::from((area.height() / height).max(0.0));
        self.visible = visible;
        let end = (total as f64 - visible).max(0.0);
        self.wheel(ui, area, height);
        self.follow_wanted(visible);
        if end > 0.0 {
            let bar = area.with_min_x(area.max.x - BAR);
            self.bar(ui, id, bar, total, end);
        }
        self.top = self.top.clamp(0.0, end);
        let first = self.top.floor() as u64;
        let hidden = (self.top - first as f64) as f32;
        let count = ((visible + f64::from(hidden)).ceil() as u64).min(total - first.min(total));
        let right = if end > 0.0 { BAR } else { 0.0 };
        Window {
            first,
            count,
            y: area.min.y - hidden * height,
            area: area.with_max_x(area.max.x - right),
        }
    }

    /// Moves a cursor by the usual keys. Returns the new row when one was pressed.
    pub fn keys(&self, ui: &Ui, cursor: Option<u64>, total: u64) -> Option<u64> {
        let last = total.checked_sub(1)?;
        let page = (self.visible.floor() as u64).saturating_sub(1).max(1);
        let from = cursor.unwrap_or(0);
        ui.input(|input| {
            let pressed = |key| input.key_pressed(key);
            if pressed(Key::ArrowDown) {
                Some(cursor.map_or(0, |row| row.saturating_add(1)))
            } else if pressed(Key::ArrowUp) {
                Some(from.saturating_sub(1))
            } else if pressed(Key::PageDown) {
                Some(from.saturating_add(page))
            } else if pressed(Key::PageUp) {
                Some(from.saturating_sub(page))
            } else if pressed(Key::Home) {
                Some(0)
            } else if pressed(Key::End) {
                Some(last)
            } else {
                None
            }
        })
        .map(|row| row.min(last))
    }

    fn wheel(&mut self, ui: &Ui, area: Rect, height: f32) {
        if ui.rect_contains_pointer(area) {
            // Taken, so that no scroll area around moves too.
            let dy = ui.input_mut(|input| std::mem::take(&mut input.smooth_scroll_delta.y));
            self.top -= f64::from(dy / height);
        }
    }

    fn follow_wanted(&mut self, visible: f64) {
        let Some(row) = self.wanted.take() else {
            return;
        };
        let row = row as f64;
        if row < self.top {
            self.top = row;
        } else if row + 1.0 > self.top + visible {
            self.top = row + 1.0 - visible;
        }
    }

    fn bar(&mut self, ui: &Ui, id: Id, bar: Rect, total: u64, end: f64) {
        let response = ui.interact(bar, id.with("bar"), Sense::DRAG | Sense::CLICK);
        let share = (self.visible / total as f64) as f32;
        let length = (share * bar.height()).clamp(28.0_f32.min(bar.height()), bar.height());
        let track = (bar.height() - length).max(1.0);
        let offset = |top: f64| (top / end).clamp(0.0, 1.0) as f32 * track;
        if let Some(pointer) = response.interact_pointer_pos() {
            let thumb = bar.min.y + offset(self.top);
            match self.drag {
                Some((top, y)) => {
                    self.top = top + f64::from((pointer.y - y) / track) * end;
                }
                None => {
                    if !(thumb..=thumb + length).contains(&pointer.y) {
                        let middle = pointer.y - bar.min.y - length / 2.0;
                        self.top = f64::from(middle / track) * end;
                    }
                    self.drag = Some((self.top, pointer.y));
                }
            }
            self.top = self.top.clamp(0.0, end);
        } else {
            self.drag = None;
        }
        let visuals = ui.style().interact(&response);
        let strength = if response.hovered() || self.drag.is_some() {
            0.7
        } else {
            0.35
        };
        let thumb = Rect::from_min_size(
            pos2(bar.min.x + 3.0, bar.min.y + offset(self.top)),
            vec2(BAR - 5.0, length),
        );
        let colour = visuals.fg_stroke.color.gamma_multiply(strength);
        ui.painter().rect_filled(thumb, 3.0, colour);
        response.widget_info(|| WidgetInfo::slider(true, self.top, "Scroll bar of the rows"));
    }
}

#[cfg(test)]
mod tests {
    use egui::{Context, Event, MouseWheelUnit, RawInput};

    use super::*;

    fn frame(context: &Context, scroll: &mut RowScroll, total: u64, events: Vec<Event>) -> Window {
        let area = Rect::from_min_size(pos2(0.0, 0.0), vec2(400.0, 240.0));
        let mut window = None;
        let input = RawInput {
            screen_rect: Some(area),
            events,
            ..RawInput::default()
        };
        context
            .run_ui(input, |ui| {
                window = Some(scroll.window(ui, Id::unique("rows"), area, total, 24.0));
            })
            .drop_without_applying_deltas();
        window.expect("a frame was drawn")
    }

    #[test]
    fn the_last_of_ten_billion_rows_is_reached_exactly() {
        let context = Context::default();
        let mut scroll = RowScroll::default();
        let total = 10_000_000_000;
        scroll.reveal(total - 1);
        frame(&context, &mut scroll, total, Vec::new());
        let window = frame(&context, &mut scroll, total, Vec::new());
        assert_eq!(window.first + window.count, total);
        assert_eq!(scroll.top, 10_000_000_000.0 - 10.0);
        assert_eq!(window.row(total - 1, 24.0).max.y, 240.0);
    }

    #[test]
    fn a_small_step_near_the_end_moves_by_that_step() {
        let context = Context::default();
        let mut scroll = RowScroll {
            top: 9_999_000.5,
            ..RowScroll::default()
        };
        let over = Event::PointerMoved(pos2(10.0, 10.0));
        frame(&context, &mut scroll, 10_000_000, vec![over]);
        let wheel = Event::MouseWheel {
            unit: MouseWheelUnit::Point,
            delta: vec2(0.0, -6.0),
            phase: egui::TouchPhase::Move,
            modifiers: egui::Modifiers::NONE,
            source: egui::MouseWheelSource::Wheel,
        };
        frame(&context, &mut scroll, 10_000_000, vec![wheel]);
        for _ in 0..60 {
            frame(&context, &mut scroll, 10_000_000, Vec::new());
        }
        assert!((scroll.top - 9_999_000.75).abs() < 0.01, "{}", scroll.top);
    }

    #[test]
    fn a_list_that_fits_does_not_scroll() {
        let context = Context::default();
        let mut scroll = RowScroll::default();
        scroll.reveal(4);
        let window = frame(&context, &mut scroll, 5, Vec::new());
        assert_eq!((window.first, window.count, window.y), (0, 5, 0.0));
    }
}
