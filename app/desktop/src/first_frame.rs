//! Says when the first frame was on the screen, for `tests/desktop/first-frame`.
//!
//! A wrapper around any eframe app, so that a bare window is timed by the same hook as ours, and the app itself knows nothing of it.

use std::time::{SystemTime, UNIX_EPOCH};

use egui::Ui;

/// With this variable set, `first frame MICROSECONDS` (since 1970) is printed on standard output once the first frame was
/// presented.
pub const VARIABLE: &str = "DLO_FIRST_FRAME";

/// An app that tells of its first frame when [`VARIABLE`] is set, and is the app alone otherwise.
#[derive(Debug)]
pub struct Timed<A> {
    app: A,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    NothingDrawn,
    FirstDrawn,
    /// It was told, or nobody asked.
    Told,
}

impl<A> Timed<A> {
    /// Reads the variable.
    pub fn new(app: A) -> Self {
        let stage = match std::env::var_os(VARIABLE) {
            Some(_) => Stage::NothingDrawn,
            None => Stage::Told,
        };
        Self { app, stage }
    }

    /// eframe swaps the buffers after `ui`, so the second frame begins when the first was presented.
    fn begin_frame(&mut self) {
        if self.stage == Stage::FirstDrawn {
            self.stage = Stage::Told;
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            println!("first frame {}", now.unwrap_or_default().as_micros());
        }
    }

    fn end_frame(&mut self, ui: &Ui) {
        if self.stage == Stage::NothingDrawn {
            self.stage = Stage::FirstDrawn;
            ui.ctx().request_repaint();
        }
    }
}

impl<A: eframe::App> eframe::App for Timed<A> {
    fn logic(&mut self, ctx: &egui::Context, frame: &mut eframe::Frame) {
        self.begin_frame();
        self.app.logic(ctx, frame);
    }

    fn ui(&mut self, ui: &mut Ui, frame: &mut eframe::Frame) {
        self.app.ui(ui, frame);
        self.end_frame(ui);
    }
}
