//! A native window around the app.

use std::sync::{Arc, OnceLock};

use dlo_engine::{EngineHandle, Settings, home::Home, registry::Registry};

use crate::{
    app::{App, Start},
    files::NativePicker,
    first_frame::Timed,
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
    let start = Start {
        link: Box::new(engine),
        brokers,
        picker: Arc::new(NativePicker::new()),
        notifier: Arc::new(crate::notify::NativeNotifier),
        open: place,
        clock: dlo_core::Millis::now,
    };
    let run = eframe::run_native(
        "Dead Letter Office",
        options(&home),
        Box::new(move |creation| {
            theme::install(&creation.egui_ctx);
            // Set once: there is one window.
            let _ = context.set(creation.egui_ctx.clone());
            close_when_told(creation.egui_ctx.clone())?;
            Ok(Box::new(Timed::new(App::new(start))))
        }),
    );
    run.map_err(|error| anyhow::anyhow!("could not open a window: {error}. Set DISPLAY or WAYLAND_DISPLAY, or use a subcommand (dlo --help)."))
}

/// How the window is made; it remembers its place in the home's configuration.
pub fn options(home: &Home) -> eframe::NativeOptions {
    eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title("Dead Letter Office")
            .with_app_id("dead-letter-office")
            .with_inner_size([1360.0, 860.0])
            .with_min_inner_size([720.0, 480.0]),
        persistence_path: Some(home.config.join("window.ron")),
        ..eframe::NativeOptions::default()
    }
}

/// A logout or a service's stop ends the program with a signal: the window then closes as by hand, so that everything that
/// is held is given back politely.
#[cfg(unix)]
#[expect(
    clippy::disallowed_methods,
    reason = "this thread does nothing but wait for a signal"
)]
fn close_when_told(ctx: egui::Context) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                let (Ok(mut end), Ok(mut interrupt)) = (
                    signal(SignalKind::terminate()),
                    signal(SignalKind::interrupt()),
                ) else {
                    return;
                };
                tokio::select! { _ = end.recv() => {}, _ = interrupt.recv() => {} }
                ctx.send_viewport_cmd(egui::ViewportCommand::Close);
                ctx.request_repaint();
            });
        })?;
    Ok(())
}

#[cfg(not(unix))]
fn close_when_told(_: egui::Context) -> std::io::Result<()> {
    Ok(())
}
