//! Image snapshots: a widget is drawn in both themes and compared with the stored picture.
//!
//! `UPDATE_IMAGES=1 cargo test -p dlo-desktop-tests` stores what is drawn now.

use std::path::PathBuf;

use dead_letter_office::theme;
use egui::Theme;
use egui_kittest::Harness;
use image::RgbaImage;

use crate::renderer::Renderer;

/// The largest difference of one channel that is still the same picture: rounding differs between processors.
const TOLERANCE: u8 = 3;

/// Draws `add` in both themes, at this size in points, and compares.
///
/// # Panics
/// When a picture differs from the stored one, or none is stored; the new one then lies beside it as `NAME.new.png`.
pub fn check(name: &str, size: [f32; 2], add: impl Fn(&mut egui::Ui) + Clone + 'static) {
    let differing: Vec<String> = [(Theme::Dark, "dark"), (Theme::Light, "light")]
        .into_iter()
        .filter_map(|(theme, word)| {
            differs(&format!("{name}-{word}"), &draw(size, theme, add.clone()))
        })
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

fn draw(size: [f32; 2], theme: Theme, add: impl Fn(&mut egui::Ui) + 'static) -> RgbaImage {
    let renderer = Renderer::default();
    let mut harness = Harness::builder()
        .with_size(size)
        .with_theme(theme)
        .with_context_setup(theme::install)
        .renderer(renderer.clone())
        .build_ui(move |ui| {
            let frame = egui::Frame::new()
                .fill(theme::colours(ui).panel)
                .inner_margin(8);
            egui::CentralPanel::default()
                .frame(frame)
                .show(ui, |ui: &mut egui::Ui| add(ui));
        });
    harness.run_steps(4);
    renderer.draw(&harness.ctx, harness.output())
}

/// What is wrong with a picture, if something is.
fn differs(name: &str, drawn: &RgbaImage) -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("images");
    let stored = folder.join(format!("{name}.png"));
    let new = folder.join(format!("{name}.new.png"));
    if std::env::var_os("UPDATE_IMAGES").is_some() {
        return drawn
            .save(&stored)
            .err()
            .map(|error| format!("{name}: {error}"));
    }
    let wrong = match image::open(&stored) {
        Err(error) => Some(format!("{name}: no stored picture ({error})")),
        Ok(picture) => compare(name, &picture.into_rgba8(), drawn),
    };
    match &wrong {
        Some(_) => drop(drawn.save(&new)),
        None => drop(std::fs::remove_file(&new)),
    }
    wrong
}

fn compare(name: &str, stored: &RgbaImage, drawn: &RgbaImage) -> Option<String> {
    if stored.dimensions() != drawn.dimensions() {
        return Some(format!(
            "{name}: {:?} is stored, {:?} was drawn",
            stored.dimensions(),
            drawn.dimensions()
        ));
    }
    let pairs = stored.as_raw().iter().zip(drawn.as_raw());
    let differing = pairs.filter(|(a, b)| a.abs_diff(**b) > TOLERANCE).count();
    (differing > 0)
        .then(|| format!("{name}: {differing} channel values differ; see {name}.new.png"))
}
