//! A native window around the app.

use std::sync::{Arc, OnceLock};

use dlo_engine::{EngineHandle, Settings, home::Home, registry::Registry};

use crate::{
    app::{App, Start},
    files::NativePicker,
    theme,
};

/// Opens the window and comes back when it is closed and everything that was held is given back.
///
/// # Errors
/// When no window can be opened (no display, a missing library) or the engine cannot start.
pub fn open(
    registry: Registry,
    home: Home,
    who: String,
    place: Option<String>,
) -> anyhow::Result<()> {
    let brokers = registry.infos();
    let context: Arc<OnceLock<egui::Context>> = Arc::default();
    let waker = context.clone();
    let settings = Settings {
        registry,
        home: home.clone(),
        who,
        wake: Arc::new(move || {
            if let Some(ctx) = waker.get() {
                ctx.request_repaint();
            }
        }),
    };
    let engine = EngineHandle::start(settings)?;
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title("Dead Letter Office")
            .with_app_id("dead-letter-office")
            .with_inner_size([1360.0, 860.0])
            .with_min_inner_size([720.0, 480.0]),
        persistence_path: Some(home.config.join("window.ron")),
        ..eframe::NativeOptions::default()
    };
    let start = Start {
        link: Box::new(engine),
        brokers,
        picker: Arc::new(NativePicker::new()),
        open: place,
        clock: dlo_core::Millis::now,
    };
    let run = eframe::run_native(
        "Dead Letter Office",
        options,
        Box::new(move |creation| {
            theme::install(&creation.egui_ctx);
            // Set once: there is one window.
            let _ = context.set(creation.egui_ctx.clone());
            Ok(Box::new(App::new(start)))
        }),
    );
    run.map_err(|error| anyhow::anyhow!("could not open a window: {error}. Set DISPLAY or WAYLAND_DISPLAY, or use a subcommand (dlo --help)."))
}
