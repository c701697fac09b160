//! Going to a row by its number.

use dlo_engine::command::LookId;
use egui::Ui;

use super::{Then, finish_ui};
use crate::{
    intent::{Cx, Intent},
    widgets::parts::{primary_button, text_field},
    words,
};

/// What was typed.
#[derive(Debug)]
pub struct GoToDialog {
    look: LookId,
    number: String,
    started: bool,
}

impl GoToDialog {
    pub fn new(look: LookId) -> Self {
        Self {
            look,
            number: String::new(),
            started: false,
        }
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        let rows = cx.state.look(self.look).map_or(0, |look| look.view.len());
        ui.weak(format!("1 to {}", words::count(u64::from(rows))));
        let width = ui.available_width();
        let field = text_field(ui, "Row number", &mut self.number, "1243", width);
        if !self.started {
            self.started = true;
            field.request_focus();
        }
        let number: Option<u32> = self.number.replace([',', ' '], "").parse().ok();
        let row = number
            .and_then(|number| number.checked_sub(1))
            .filter(|row| *row < rows);
        let missing = row.is_none().then_some("Type a number in this range");
        let enter = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        let (acted, then) = finish_ui(ui, |ui| primary_button(ui, "Go", missing).clicked());
        match row {
            Some(row) if acted || enter => {
                cx.want(Intent::GoToRow(self.look, row));
                Then::Close
            }
            _ => then,
        }
    }
}
