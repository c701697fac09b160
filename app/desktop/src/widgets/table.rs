//! A table of any number of rows: header with widths that can be dragged, rows painted directly, one accessible node a row.
//!
//! Only rows in sight are asked for. Text is laid out by egui, which keeps what it laid out in the frame before.

use egui::{
    Align2, Color32, CursorIcon, FontId, Id, Modifiers, Rect, Response, Role, Sense, Stroke, Ui,
    WidgetInfo, pos2,
    text::{LayoutJob, TextWrapping},
    vec2,
};

use super::rows::{RowScroll, Window};
use crate::theme::{self, ROW, colours};

/// A column as it is first shown.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    pub width: f32,
    pub align: Side,
}

/// On which side of a cell its text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
    /// Left, and as wide as is left; the last column.
    Rest,
}

impl Column {
    pub const fn left(title: &'static str, width: f32) -> Self {
        Self {
            title,
            width,
            align: Side::Left,
        }
    }

    pub const fn right(title: &'static str, width: f32) -> Self {
        Self {
            title,
            width,
            align: Side::Right,
        }
    }

    pub const fn rest(title: &'static str) -> Self {
        Self {
            title,
            width: 160.0,
            align: Side::Rest,
        }
    }
}

/// One cell: text in a font and colour.
#[derive(Clone, Debug)]
pub struct Cell {
    pub text: String,
    pub font: FontId,
    pub colour: Color32,
}

impl Cell {
    pub fn new(text: impl Into<String>, colour: Color32) -> Self {
        Self {
            text: text.into(),
            font: theme::body_font(),
            colour,
        }
    }

    pub fn mono(text: impl Into<String>, colour: Color32) -> Self {
        Self {
            font: theme::mono_font(),
            ..Self::new(text, colour)
        }
    }

    pub fn bold(text: impl Into<String>, colour: Color32) -> Self {
        Self {
            font: theme::bold_font(13.0),
            ..Self::new(text, colour)
        }
    }
}

/// One row of this frame.
#[derive(Clone, Debug)]
pub struct RowContent {
    pub cells: Vec<Cell>,
    /// What a screen reader says.
    pub name: String,
    pub ground: Option<Color32>,
    pub state: Picked,
    pub shape: Shape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Picked {
    #[default]
    No,
    Yes,
}

/// How a row is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// One cell a column.
    #[default]
    Cells,
    /// A header over the whole width: the first cell on the left, the others from the right; with a triangle.
    Band(Fold),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    Open,
    Closed,
}

/// What a person did with the rows in this frame.
#[derive(Debug, Default)]
pub struct Touched {
    pub clicked: Option<Click>,
    pub menu: Option<u64>,
    /// Present when the table has the keyboard.
    pub focused: bool,
    pub hovered: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub struct Click {
    pub row: u64,
    pub modifiers: Modifiers,
    pub times: u8,
}

/// Position and widths of one table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub scroll: RowScroll,
    widths: Vec<f32>,
    /// The columns that the widths belong to.
    titles: Vec<&'static str>,
}

const PADDING: f32 = 8.0;
const HEADER: f32 = 26.0;

impl Table {
    /// Draws into the space that is left. `row` makes a row of this frame; `name` is the table's accessible name.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        name: &str,
        columns: &[Column],
        total: u64,
        mut row: impl FnMut(u64) -> RowContent,
    ) -> Touched {
        let id = ui.make_persistent_id(("table", name));
        let full = ui.available_rect_before_wrap();
        ui.allocate_rect(full, Sense::hover());
        if full.height() < HEADER + ROW {
            return Touched::default();
        }
        let colours = colours(ui);
        ui.painter().rect_filled(full, 0.0, colours.ground);
        self.fit_widths(columns, full.width());
        let header = full.with_max_y(full.min.y + HEADER);
        self.header(ui, id, header, columns);
        let body = full.with_min_y(header.max.y);
        let table = ui.interact(body, id, Sense::CLICK | Sense::FOCUSABLE);
        table.widget_info(|| {
            let mut info = WidgetInfo::labeled(Role::Table, true, name);
            info.value = Some(total as f64);
            info
        });
        let window = self.scroll.window(ui, id, body, total, ROW);
        let mut touched = Touched {
            focused: table.has_focus(),
            ..Touched::default()
        };
        if table.has_focus() {
            lock_arrows(ui, id);
        }
        for index in window.first..window.first + window.count {
            let content = row(index);
            let response = self.row(ui, id, &window, index, columns, &content);
            if response.clicked() || response.double_clicked() {
                table.request_focus();
                let times = if response.double_clicked() { 2 } else { 1 };
                touched.clicked = Some(Click {
                    row: index,
                    modifiers: ui.input(|input| input.modifiers),
                    times,
                });
            }
            if response.secondary_clicked() {
                touched.menu = Some(index);
            }
            if response.hovered() {
                touched.hovered = Some(index);
            }
        }
        touched
    }

    /// How wide each column is now.
    fn fit_widths(&mut self, columns: &[Column], full: f32) {
        let same = self.titles.len() == columns.len()
            && (self.titles.iter().zip(columns)).all(|(title, column)| *title == column.title);
        if !same {
            self.titles = columns.iter().map(|column| column.title).collect();
            self.widths = columns.iter().map(|column| column.width).collect();
        }
        let fixed: f32 = columns
            .iter()
            .zip(&self.widths)
            .filter(|(column, _)| column.align != Side::Rest)
            .map(|(_, width)| width)
            .sum();
        for (column, width) in columns.iter().zip(&mut self.widths) {
            if column.align == Side::Rest {
                *width = (full - fixed).max(120.0);
            }
        }
    }

    fn header(&mut self, ui: &Ui, id: Id, rect: Rect, columns: &[Column]) {
        let colours = colours(ui);
        let painter = ui.painter_at(rect);
        painter.rect_filled(rect, 0.0, colours.panel);
        painter.hline(
            rect.x_range(),
            rect.max.y - 0.5,
            Stroke::new(1.0, colours.line),
        );
        let mut x = rect.min.x;
        for (index, column) in columns.iter().enumerate() {
            let cell = Rect::from_min_size(pos2(x, rect.min.y), vec2(self.widths[index], HEADER));
            let text = Cell {
                text: column.title.to_owned(),
                font: theme::small_font(),
                colour: colours.weak,
            };
            paint_text(ui, cell, column.align, &text);
            x += self.widths[index];
            if column.align != Side::Rest {
                self.handle(ui, id.with(("edge", index)), x, rect, index);
            }
        }
    }

    /// The edge of a column, by which its width is dragged.
    fn handle(&mut self, ui: &Ui, id: Id, x: f32, header: Rect, index: usize) {
        let grip = Rect::from_x_y_ranges(x - 4.0..=x + 4.0, header.y_range());
        let response = ui
            .interact(grip, id, Sense::DRAG)
            .on_hover_cursor(CursorIcon::ResizeHorizontal);
        if response.dragged() {
            self.widths[index] = (self.widths[index] + response.drag_delta().x).max(36.0);
        }
        let colours = colours(ui);
        let line = if response.hovered() || response.dragged() {
            colours.accent
        } else {
            colours.line
        };
        let middle = header.shrink2(vec2(0.0, 7.0)).y_range();
        ui.painter_at(header)
            .vline(x - 0.5, middle, Stroke::new(1.0, line));
    }

    fn row(
        &self,
        ui: &Ui,
        id: Id,
        window: &Window,
        index: u64,
        columns: &[Column],
        content: &RowContent,
    ) -> Response {
        let colours = colours(ui);
        let rect = window.row(index, ROW);
        let seen = rect.intersect(window.area);
        let response = ui.interact(seen, id.with(index), Sense::CLICK);
        response.widget_info(|| {
            let picked = content.state == Picked::Yes;
            WidgetInfo::selected(Role::Row, true, picked, &content.name)
        });
        let painter = ui.painter_at(window.area);
        let ground = match content.state {
            Picked::Yes => Some(colours.selection),
            Picked::No if response.hovered() => Some(colours.hover),
            Picked::No => content.ground,
        };
        if let Some(ground) = ground {
            painter.rect_filled(rect, 0.0, ground);
        }
        match content.shape {
            Shape::Cells => {
                let mut x = rect.min.x;
                for (cell, (column, width)) in
                    content.cells.iter().zip(columns.iter().zip(&self.widths))
                {
                    let place = Rect::from_min_size(pos2(x, rect.min.y), vec2(*width, ROW));
                    let clip = place.intersect(window.area);
                    paint_clipped(ui, clip, place, column.align, cell);
                    x += width;
                }
            }
            Shape::Band(fold) => paint_band(ui, rect, window.area, fold, content),
        }
        response
    }
}

/// Keeps arrow keys for the widget with this id while it has the keyboard.
pub fn lock_arrows(ui: &Ui, id: Id) {
    let filter = egui::EventFilter {
        horizontal_arrows: true,
        vertical_arrows: true,
        ..egui::EventFilter::default()
    };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(id, filter));
}

fn paint_band(ui: &Ui, rect: Rect, clip: Rect, fold: Fold, content: &RowContent) {
    let colours = colours(ui);
    let painter = ui.painter_at(clip);
    painter.hline(
        rect.x_range(),
        rect.max.y - 0.5,
        Stroke::new(1.0, colours.line),
    );
    let middle = pos2(rect.min.x + PADDING + 5.0, rect.center().y);
    triangle(&painter, middle, fold, colours.weak);
    let mut right = rect.max.x - PADDING;
    for cell in content.cells.iter().skip(1).rev() {
        let galley = layout(ui, cell, (right - rect.min.x).max(0.0));
        right -= galley.size().x;
        let y = rect.center().y - galley.size().y / 2.0;
        painter.galley(pos2(right, y), galley, cell.colour);
        right -= 14.0;
    }
    if let Some(cell) = content.cells.first() {
        let left = rect.min.x + PADDING + 16.0;
        let galley = layout(ui, cell, (right - left).max(0.0));
        let y = rect.center().y - galley.size().y / 2.0;
        painter.galley(pos2(left, y), galley, cell.colour);
    }
}

/// A small triangle that points down when open.
pub fn triangle(painter: &egui::Painter, middle: egui::Pos2, fold: Fold, colour: Color32) {
    let points = match fold {
        Fold::Open => vec![
            middle + vec2(-4.0, -2.5),
            middle + vec2(4.0, -2.5),
            middle + vec2(0.0, 3.0),
        ],
        Fold::Closed => vec![
            middle + vec2(-2.5, -4.0),
            middle + vec2(3.0, 0.0),
            middle + vec2(-2.5, 4.0),
        ],
    };
    painter.add(egui::Shape::convex_polygon(points, colour, Stroke::NONE));
}

fn layout(ui: &Ui, cell: &Cell, width: f32) -> std::sync::Arc<egui::Galley> {
    let mut job = LayoutJob::simple_singleline(cell.text.clone(), cell.font.clone(), cell.colour);
    job.wrap = TextWrapping::truncate_at_width(width);
    ui.fonts_mut(|fonts| fonts.layout_job(job))
}

fn paint_text(ui: &Ui, rect: Rect, side: Side, cell: &Cell) {
    paint_clipped(ui, rect, rect, side, cell);
}

fn paint_clipped(ui: &Ui, clip: Rect, rect: Rect, side: Side, cell: &Cell) {
    if cell.text.is_empty() || !clip.is_positive() {
        return;
    }
    let inner = rect.shrink2(vec2(PADDING, 0.0));
    let galley = layout(ui, cell, inner.width().max(0.0));
    let align = match side {
        Side::Right => Align2::RIGHT_CENTER,
        Side::Left | Side::Rest => Align2::LEFT_CENTER,
    };
    let place = align.align_size_within_rect(galley.size(), inner);
    ui.painter_at(clip).galley(place.min, galley, cell.colour);
}
