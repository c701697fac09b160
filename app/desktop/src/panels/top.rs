//! The bar at the top: profiles, mode, the palette, and the way to jobs, alerts, runs, audit and saved copies.

use dlo_core::Secrets;
use dlo_engine::profile::Mode;
use egui::{Align, Button, Layout, Ui};

use crate::{
    action::Action,
    dialogs::{Dialog, profile::ProfileDialog},
    intent::{Cx, Intent},
    state::{AppState, Center},
    theme,
    widgets::parts::{Tone, badge, quiet_button},
};

/// Draws the bar.
pub fn top_ui(ui: &mut Ui, cx: &mut Cx<'_>) {
    ui.horizontal_centered(|ui| {
        menu(ui, cx);
        profile_menu(ui, cx);
        mode_badge(ui, cx.state);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            theme_button(ui, cx);
            let places = [
                (Action::Captures, Center::Captures, "Saved"),
                (Action::Audit, Center::Audit, "Audit"),
                (Action::Runs, Center::Runs, "Runs"),
            ];
            for (action, center, text) in places {
                let chosen = cx.state.center == center;
                let response = ui
                    .add(Button::selectable(chosen, text))
                    .on_hover_text(hint(ui, action));
                if response.clicked() {
                    cx.want(Intent::Perform(action));
                }
            }
            alerts(ui, cx);
            jobs(ui, cx);
            ui.add_space(6.0);
            search(ui, cx);
        });
    });
}

/// An action's tooltip with its key.
pub fn hint(ui: &Ui, action: Action) -> String {
    match action.shortcut() {
        Some(shortcut) => format!(
            "{} ({})",
            action.tooltip(),
            ui.ctx().format_shortcut(&shortcut)
        ),
        None => action.tooltip().to_owned(),
    }
}

fn menu(ui: &mut Ui, cx: &mut Cx<'_>) {
    let response = ui.menu_button("Menu", |ui| {
        ui.set_min_width(230.0);
        for action in Action::ALL {
            let mut button = Button::new(action.text());
            if let Some(shortcut) = action.shortcut() {
                button = button.shortcut_text(ui.ctx().format_shortcut(&shortcut));
            }
            let scene = crate::action::Scene {
                state: cx.state,
                selected: u64::MAX,
            };
            let blocked = action.blocked(&scene);
            let response = ui.add_enabled(blocked.is_none(), button);
            let response = match &blocked {
                Some(why) => response.on_disabled_hover_text(why),
                None => response.on_hover_text(action.tooltip()),
            };
            if response.clicked() {
                cx.want(Intent::Perform(action));
                ui.close();
            }
        }
    });
    response.response.on_hover_text("All actions");
}

fn profile_menu(ui: &mut Ui, cx: &mut Cx<'_>) {
    let label = match cx.state.active_connection() {
        Some(connection) => connection.label.clone(),
        None if cx.state.connections.is_empty() => "Not connected".to_owned(),
        None => "All connections".to_owned(),
    };
    let text = egui::RichText::new(format!("{label}  ▾")).family(theme::bold());
    let response = ui.menu_button(text, |ui| {
        ui.set_min_width(240.0);
        let profiles = cx.state.profiles.value().cloned().unwrap_or_default();
        for profile in profiles.iter() {
            ui.horizontal(|ui| {
                let open = cx
                    .state
                    .connections
                    .iter()
                    .any(|connection| connection.label == profile.name);
                let mark = if open { "●" } else { "○" };
                let button =
                    Button::new(format!("{mark}  {}", profile.name)).frame_when_inactive(false);
                let blocked = open.then_some("Connected already");
                let response = ui.add_enabled(blocked.is_none(), button);
                let response = response
                    .on_disabled_hover_text("Connected already")
                    .on_hover_text(&profile.url);
                if response.clicked() {
                    cx.want(Intent::Connect(profile.name.clone(), Secrets::default()));
                    ui.close();
                }
                ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                    if quiet_button(ui, "Edit", None).clicked() {
                        cx.dialog(Dialog::Profile(ProfileDialog::of(profile)));
                        ui.close();
                    }
                });
            });
        }
        if profiles.is_empty() {
            ui.weak("No profiles yet");
        }
        cx.state.profiles.status_ui(ui);
        ui.separator();
        for action in [Action::Connect, Action::NewProfile] {
            if ui
                .button(action.text())
                .on_hover_text(action.tooltip())
                .clicked()
            {
                cx.want(Intent::Perform(action));
                ui.close();
            }
        }
    });
    response.response.on_hover_text("Profiles and connections");
}

fn mode_badge(ui: &mut Ui, state: &AppState) {
    let Some(connection) = state.active_connection() else {
        return;
    };
    match connection.mode {
        Mode::Normal => {}
        Mode::Production => {
            badge(ui, "PRODUCTION", Tone::Danger)
                .on_hover_text("Changes need a reason and the destination's name, typed");
        }
        Mode::ReadOnly => {
            badge(ui, "READ-ONLY", Tone::Accent).on_hover_text("Changes are refused");
        }
    }
}

fn search(ui: &mut Ui, cx: &mut Cx<'_>) {
    let room = ui.available_width();
    if room < 60.0 {
        return;
    }
    let key = Action::Palette
        .shortcut()
        .map(|shortcut| ui.ctx().format_shortcut(&shortcut))
        .unwrap_or_default();
    let button = Button::new(Action::Palette.text())
        .shortcut_text(key)
        .min_size(egui::vec2(room.min(230.0), 0.0));
    if ui
        .add(button)
        .on_hover_text(Action::Palette.tooltip())
        .clicked()
    {
        cx.want(Intent::Perform(Action::Palette));
    }
}

fn jobs(ui: &mut Ui, cx: &Cx<'_>) {
    let active = cx.state.jobs.iter().filter(|job| job.is_active()).count();
    if active > 0 {
        badge(
            ui,
            &crate::words::counted(active as u64, "job"),
            Tone::Accent,
        )
        .on_hover_text("Running now; see the strip at the bottom");
    }
}

fn alerts(ui: &mut Ui, cx: &mut Cx<'_>) {
    let alerts = cx.state.alerts();
    if alerts.is_empty() {
        return;
    }
    let text = egui::RichText::new(format!(
        "alerts {}",
        crate::words::count(alerts.len() as u64)
    ))
    .color(Tone::Warning.text(theme::colours(ui)));
    let response = ui.menu_button(text, |ui| {
        ui.set_min_width(300.0);
        for alert in &alerts {
            if ui.button(&alert.text).clicked() {
                cx.want(Intent::Visit(alert.connection, alert.address.clone()));
                ui.close();
            }
        }
    });
    response
        .response
        .on_hover_text("Destinations past a threshold, and dead letters that grow or expire soon. Thresholds are set with a destination's owner and notes.");
}

fn theme_button(ui: &mut Ui, cx: &mut Cx<'_>) {
    let text = if ui.visuals().dark_mode {
        "Light"
    } else {
        "Dark"
    };
    if quiet_button(ui, text, None)
        .on_hover_text(hint(ui, Action::ToggleTheme))
        .clicked()
    {
        cx.want(Intent::Perform(Action::ToggleTheme));
    }
}
