//! A bare eframe window with the renderer and options of ours, for `tests/desktop/first-frame` to measure beside.

use dead_letter_office::{first_frame::Timed, window};
use dlo_engine::home::Home;
use egui::{CentralPanel, Ui};

#[derive(Debug)]
struct Bare;

impl eframe::App for Bare {
    fn ui(&mut self, ui: &mut Ui, _: &mut eframe::Frame) {
        CentralPanel::default().show(ui, |ui| ui.label("A bare window"));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = window::options(&Home::from_environment()?);
    eframe::run_native(
        "A bare window",
        options,
        Box::new(|_| Ok(Box::new(Timed::new(Bare)))),
    )?;
    Ok(())
}
