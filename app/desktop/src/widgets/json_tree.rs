//! A decoded value as a tree: fold, search, copy a value or its JSON Pointer. Only lines in sight are drawn.

use std::collections::HashSet;

use egui::{Role, Sense, Stroke, Ui, WidgetInfo, text::LayoutJob, vec2};

use super::{
    parts::{quiet_button, text_field},
    rows::RowScroll,
    table::{Fold, lock_arrows, triangle},
};
use crate::theme::{Colours, colours, mono_font};

/// A value that can be drawn as a tree.
pub trait Node {
    /// How many children it has; `None` when it is no container.
    fn children(&self) -> Option<usize>;
    /// A child with the text of its key and its step in a JSON Pointer.
    fn child(&self, index: usize) -> Option<(String, String, &Self)>;
    /// The value in one line, cut at about `limit` characters.
    fn text(&self, limit: usize) -> String;
    /// The whole value as text, for the clipboard.
    fn whole(&self) -> String;
    fn hue(&self) -> Hue;
}

/// What kind of value it is, and so its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    Quoted,
    Number,
    /// null, true, false.
    Word,
    /// Bytes, times, tags.
    Special,
    Container,
}

/// What is folded, found and selected in one tree.
#[derive(Clone, Debug, Default)]
pub struct JsonTree {
    scroll: RowScroll,
    /// Containers whose fold differs from the default.
    toggled: HashSet<String>,
    pub search: String,
    selected: Option<usize>,
    lines: Vec<TreeLine>,
    /// What the lines were made from.
    made_from: Option<(u64, String, usize)>,
    hits: Vec<usize>,
    hit: usize,
}

#[derive(Clone, Debug)]
struct TreeLine {
    depth: usize,
    key: String,
    pointer: String,
    text: String,
    hue: Hue,
    fold: Option<Fold>,
}

const HEIGHT: f32 = 20.0;
/// Containers deeper than this begin folded.
const OPEN_DEPTH: usize = 3;
/// Containers with more children than this begin folded, unless they are the root.
const OPEN_CHILDREN: usize = 60;
/// Lines that a tree shows at most; the rest is found by folding or in the text.
const MOST_LINES: usize = 200_000;
const VALUE: usize = 400;

impl JsonTree {
    /// Draws into the space that is left. `version` changes with the value.
    pub fn show<N: Node>(&mut self, ui: &mut Ui, name: &str, root: &N, version: u64) {
        self.bar(ui, name, root);
        self.refresh(root, version);
        let id = ui.make_persistent_id(("tree", name));
        let full = ui.available_rect_before_wrap();
        ui.allocate_rect(full, Sense::hover());
        let colours = colours(ui);
        ui.painter().rect_filled(full, 0.0, colours.ground);
        let tree = ui.interact(full, id, Sense::CLICK | Sense::FOCUSABLE);
        tree.widget_info(|| WidgetInfo::labeled(Role::Tree, true, name));
        if tree.has_focus() {
            lock_arrows(ui, id);
            self.keys(ui, root);
        }
        let window = self
            .scroll
            .window(ui, id, full, self.lines.len() as u64, HEIGHT);
        for index in window.first..window.first + window.count {
            let index = index as usize;
            let Some(line) = self.lines.get(index).cloned() else {
                break;
            };
            let rect = window.row(index as u64, HEIGHT);
            let seen = rect.intersect(window.area);
            let response = ui.interact(seen, id.with(index), Sense::CLICK);
            response.widget_info(|| {
                let text = format!("{} {}", line.key, line.text);
                WidgetInfo::selected(
                    Role::TreeItem,
                    true,
                    self.selected == Some(index),
                    text.trim(),
                )
            });
            let ground = if self.selected == Some(index) {
                Some(colours.selection)
            } else if response.hovered() {
                Some(colours.hover)
            } else if self.hits.binary_search(&index).is_ok() {
                Some(colours.warning_ground)
            } else {
                None
            };
            let painter = ui.painter_at(window.area);
            if let Some(ground) = ground {
                painter.rect_filled(rect, 0.0, ground);
            }
            let left = rect.left_center() + vec2(10.0 + line.depth as f32 * 16.0, 0.0);
            for depth in 0..line.depth {
                let x = rect.min.x + 10.0 + depth as f32 * 16.0;
                painter.vline(x, rect.y_range(), Stroke::new(1.0, colours.line));
            }
            if let Some(fold) = line.fold {
                triangle(&painter, left, fold, colours.weak);
            }
            let galley = ui.fonts_mut(|fonts| fonts.layout_job(job(&line, colours)));
            let at = left + vec2(10.0, -galley.size().y / 2.0);
            painter.galley(at, galley, colours.text);
            if response.clicked() {
                tree.request_focus();
                self.selected = Some(index);
                if line.fold.is_some() {
                    self.toggle(&line.pointer);
                }
            }
            response.context_menu(|ui| self.menu(ui, root, &line));
        }
    }

    fn bar<N: Node>(&mut self, ui: &mut Ui, name: &str, root: &N) {
        ui.horizontal(|ui| {
            let response = text_field(
                ui,
                &format!("Search in {name}"),
                &mut self.search,
                "Search",
                150.0,
            );
            let enter =
                response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
            if enter && !self.hits.is_empty() {
                self.hit = (self.hit + 1) % self.hits.len();
                self.selected = self.hits.get(self.hit).copied();
                self.scroll.reveal(self.hits[self.hit] as u64);
                response.request_focus();
            }
            if !self.search.is_empty() {
                let count = self.hits.len();
                let text = if count == 0 {
                    "none".to_owned()
                } else {
                    format!("{} of {count}", self.hit + 1)
                };
                ui.weak(text);
            }
            if quiet_button(ui, "Unfold all", None).clicked() {
                self.toggled.clear();
                self.toggled.insert(ALL.to_owned());
                self.made_from = None;
            }
            let chosen = self
                .selected
                .and_then(|index| self.lines.get(index))
                .cloned();
            let nothing = chosen.is_none().then_some("Select a line first");
            if quiet_button(ui, "Copy value", nothing).clicked()
                && let Some(line) = &chosen
            {
                copy_value(ui, root, &line.pointer);
            }
            if quiet_button(ui, "Copy path", nothing)
                .on_hover_text("The JSON Pointer of the selected line")
                .clicked()
                && let Some(line) = &chosen
            {
                ui.ctx().copy_text(line.pointer.clone());
            }
        });
    }

    fn menu<N: Node>(&mut self, ui: &mut Ui, root: &N, line: &TreeLine) {
        if ui.button("Copy value").clicked() {
            copy_value(ui, root, &line.pointer);
            ui.close();
        }
        if ui.button("Copy path").clicked() {
            ui.ctx().copy_text(line.pointer.clone());
            ui.close();
        }
    }

    fn keys<N: Node>(&mut self, ui: &Ui, root: &N) {
        let total = self.lines.len() as u64;
        if let Some(row) = self
            .scroll
            .keys(ui, self.selected.map(|index| index as u64), total)
        {
            self.selected = Some(row as usize);
            self.scroll.reveal(row);
        }
        let chosen = self
            .selected
            .and_then(|index| self.lines.get(index))
            .cloned();
        let Some(line) = chosen else {
            return;
        };
        let (left, right, copy) = ui.input(|input| {
            let copy = input
                .events
                .iter()
                .any(|event| matches!(event, egui::Event::Copy));
            (
                input.key_pressed(egui::Key::ArrowLeft),
                input.key_pressed(egui::Key::ArrowRight),
                copy,
            )
        });
        if left && line.fold == Some(Fold::Open) || right && line.fold == Some(Fold::Closed) {
            self.toggle(&line.pointer);
        }
        if copy {
            copy_value(ui, root, &line.pointer);
        }
    }

    fn toggle(&mut self, pointer: &str) {
        if !self.toggled.remove(pointer) {
            self.toggled.insert(pointer.to_owned());
        }
        self.made_from = None;
    }

    /// Makes the lines again when the value, the folds or the search changed.
    fn refresh<N: Node>(&mut self, root: &N, version: u64) {
        let wanted = (version, self.search.clone(), self.toggled.len());
        if self.made_from.as_ref() == Some(&wanted) {
            return;
        }
        if self
            .made_from
            .as_ref()
            .is_some_and(|(old, ..)| *old != version)
        {
            self.selected = None;
            self.scroll = RowScroll::default();
        }
        self.lines.clear();
        let search = self.search.to_lowercase();
        self.walk(root, String::new(), String::new(), 0, &search);
        self.hits = (0..self.lines.len())
            .filter(|index| !search.is_empty() && is_hit(&self.lines[*index], &search))
            .collect();
        self.hit = self.hit.min(self.hits.len().saturating_sub(1));
        self.made_from = Some(wanted);
    }

    fn walk<N: Node>(
        &mut self,
        node: &N,
        key: String,
        pointer: String,
        depth: usize,
        search: &str,
    ) {
        if self.lines.len() >= MOST_LINES {
            return;
        }
        let children = node.children();
        let open = children.is_some_and(|count| self.is_open(&pointer, depth, count, search));
        let fold = children
            .filter(|count| *count > 0)
            .map(|_| if open { Fold::Open } else { Fold::Closed });
        self.lines.push(TreeLine {
            depth,
            key,
            text: node.text(VALUE),
            hue: node.hue(),
            fold,
            pointer: pointer.clone(),
        });
        if !open {
            return;
        }
        for index in 0..children.unwrap_or(0) {
            if let Some((key, step, child)) = node.child(index) {
                self.walk(child, key, format!("{pointer}/{step}"), depth + 1, search);
            }
        }
    }

    fn is_open(&self, pointer: &str, depth: usize, children: usize, search: &str) -> bool {
        if !search.is_empty() || self.toggled.contains(ALL) {
            return true;
        }
        let default = depth < OPEN_DEPTH && (children <= OPEN_CHILDREN || depth == 0);
        default != self.toggled.contains(pointer)
    }
}

/// A mark among the toggled pointers: everything is open. No pointer looks like it.
const ALL: &str = "*";

fn is_hit(line: &TreeLine, search: &str) -> bool {
    line.key.to_lowercase().contains(search)
        || line.hue != Hue::Container && line.text.to_lowercase().contains(search)
}

fn copy_value<N: Node>(ui: &Ui, root: &N, pointer: &str) {
    if let Some(node) = find(root, pointer) {
        ui.ctx().copy_text(node.whole());
    }
}

fn find<'a, N: Node>(node: &'a N, pointer: &str) -> Option<&'a N> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return Some(node);
    };
    let (step, rest) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let count = node.children()?;
    let child = (0..count).find_map(|index| {
        let (_, own, child) = node.child(index)?;
        (own == step).then_some(child)
    })?;
    find(child, rest)
}

fn job(line: &TreeLine, colours: &Colours) -> LayoutJob {
    let mut job = LayoutJob::default();
    let mut add = |text: &str, colour| {
        let format = egui::TextFormat::simple(mono_font(), colour);
        job.append(text, 0.0, format);
    };
    if !line.key.is_empty() {
        add(&line.key, colours.key);
        add("  ", colours.weak);
    }
    let colour = match line.hue {
        Hue::Quoted => colours.quoted,
        Hue::Number => colours.number,
        Hue::Word => colours.accent,
        Hue::Special => colours.warning,
        Hue::Container => colours.weak,
    };
    add(&line.text, colour);
    job.wrap.max_rows = 1;
    job.wrap.max_width = f32::INFINITY;
    job
}

impl Node for serde_json::Value {
    fn children(&self) -> Option<usize> {
        match self {
            Self::Array(items) => Some(items.len()),
            Self::Object(entries) => Some(entries.len()),
            _ => None,
        }
    }

    fn child(&self, index: usize) -> Option<(String, String, &Self)> {
        match self {
            Self::Array(items) => items
                .get(index)
                .map(|item| (index.to_string(), index.to_string(), item)),
            Self::Object(entries) => entries
                .iter()
                .nth(index)
                .map(|(key, value)| (key.clone(), escape(key), value)),
            _ => None,
        }
    }

    fn text(&self, limit: usize) -> String {
        match self {
            Self::Array(items) => counted(items.len(), "item", '[', ']'),
            Self::Object(entries) => counted(entries.len(), "field", '{', '}'),
            other => cut(&other.to_string(), limit),
        }
    }

    fn whole(&self) -> String {
        match self {
            Self::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        }
    }

    fn hue(&self) -> Hue {
        match self {
            Self::String(_) => Hue::Quoted,
            Self::Number(_) => Hue::Number,
            Self::Null | Self::Bool(_) => Hue::Word,
            Self::Array(_) | Self::Object(_) => Hue::Container,
        }
    }
}

/// A key as a step of a JSON Pointer (RFC 6901).
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// `{ 3 fields }`, `[ ]`.
pub fn counted(count: usize, noun: &str, open: char, close: char) -> String {
    if count == 0 {
        return format!("{open} {close}");
    }
    format!(
        "{open} {} {close}",
        crate::words::counted(count as u64, noun)
    )
}

/// Text cut at about `limit` characters.
pub fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(json: &str) -> (JsonTree, serde_json::Value) {
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let mut tree = JsonTree::default();
        tree.refresh(&value, 1);
        (tree, value)
    }

    #[test]
    fn lines_have_pointers_that_find_their_value() {
        let (tree, value) = tree(r#"{"a/b":[1,{"c":null}],"id":9007199254740993}"#);
        let pointers: Vec<_> = tree
            .lines
            .iter()
            .map(|line| line.pointer.as_str())
            .collect();
        assert_eq!(
            pointers,
            ["", "/a~1b", "/a~1b/0", "/a~1b/1", "/a~1b/1/c", "/id"]
        );
        let found = find(&value, "/id").map(Node::whole);
        assert_eq!(found.as_deref(), Some("9007199254740993"));
    }

    #[test]
    fn folding_hides_and_searching_unfolds() {
        let (mut tree, value) = tree(r#"{"a":{"deep":"needle"},"b":1}"#);
        tree.toggle("/a");
        tree.refresh(&value, 1);
        assert_eq!(tree.lines.len(), 3);
        tree.search = "NEEDLE".to_owned();
        tree.refresh(&value, 1);
        assert_eq!((tree.lines.len(), tree.hits.as_slice()), (4, &[2][..]));
    }
}
