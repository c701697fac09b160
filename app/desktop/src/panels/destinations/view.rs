//! Draws the list of destinations. Only lines in sight are drawn, so that thousands of queues cost nothing.

use dlo_core::Secrets;
use dlo_engine::{Ask, command::ConnectionId, profile::Mode};
use egui::{
    Align2, Color32, Rect, RichText, Role, ScrollArea, Sense, Stroke, Ui, WidgetInfo, pos2,
    text::{LayoutJob, TextWrapping},
    vec2,
};

use super::model::{self, DestinationItem, Item, Narrowing, Urgency};
use crate::{
    dialogs::{Dialog, secrets::SecretsDialog},
    intent::{Cx, Intent},
    state::Center,
    theme::{self, ROW, colours},
    widgets::{
        parts::{Tone, badge, quiet_button, text_field},
        table::{Fold, triangle},
    },
};

const TALL: f32 = 42.0;

pub fn panel_ui(ui: &mut Ui, cx: &mut Cx<'_>, narrowing: &mut Narrowing) {
    ui.horizontal(|ui| {
        ui.label(
            RichText::new("Destinations")
                .family(theme::bold())
                .color(colours(ui).strong),
        );
        let width = (ui.available_width() - 4.0).max(60.0);
        text_field(
            ui,
            "Filter destinations",
            &mut narrowing.text,
            "Filter by name",
            width,
        );
    });
    ui.add_space(2.0);
    let items = model::items(cx.state, narrowing);
    let heights: Vec<f32> = items.iter().map(height).collect();
    let full: f32 = heights.iter().sum();
    ScrollArea::vertical()
        .auto_shrink(false)
        .show_viewport(ui, |ui, viewport| {
            ui.set_height(full);
            let left = ui.max_rect().min;
            let width = ui.max_rect().width();
            let mut y = 0.0;
            for (item, height) in items.iter().zip(heights) {
                if y + height >= viewport.min.y && y <= viewport.max.y {
                    let rect = Rect::from_min_size(pos2(left.x, left.y + y), vec2(width, height));
                    item_ui(ui, cx, narrowing, rect, item);
                }
                y += height;
            }
        });
    if items.is_empty() {
        ui.weak("No connection yet");
    }
}

fn height(item: &Item) -> f32 {
    match item {
        Item::Destination(item) if item.dead => TALL,
        Item::ConnectFailed(..) | Item::ListFailed(..) => 112.0,
        Item::Connection { .. } => 32.0,
        _ => ROW,
    }
}

fn item_ui(ui: &mut Ui, cx: &mut Cx<'_>, narrowing: &mut Narrowing, rect: Rect, item: &Item) {
    match item {
        Item::Connection {
            id,
            label,
            broker,
            mode,
            loading,
        } => {
            connection_ui(
                ui,
                cx,
                rect,
                *id,
                label,
                broker,
                *mode,
                if *loading { "…" } else { "" },
            );
        }
        Item::ListFailed(id, why) => failed_ui(ui, rect, why, |ui| {
            if quiet_button(ui, "Try again", None).clicked() {
                cx.ask(Ask::List { connection: *id });
            }
        }),
        Item::Section {
            id,
            title,
            count,
            open,
        } => section_ui(ui, narrowing, rect, *id, title, *count, *open),
        Item::Destination(item) => destination_ui(ui, cx, rect, item),
        Item::Connecting(place) => inside(ui, rect, |ui| {
            ui.add(egui::Spinner::new().size(12.0));
            ui.weak(format!("Connecting to {place}"));
        }),
        Item::ConnectFailed(place, why, ask_secret) => {
            let why = format!("{place}: {why}");
            failed_ui(ui, rect, &why, |ui| {
                if quiet_button(ui, "Try again", None).clicked() {
                    cx.want(Intent::Connect(place.clone(), Secrets::default()));
                }
                if *ask_secret && quiet_button(ui, "Type the password…", None).clicked() {
                    cx.dialog(Dialog::Secrets(SecretsDialog::new(place)));
                }
                if quiet_button(ui, "Forget", None).clicked() {
                    cx.want(Intent::ForgetAttempt(place.clone()));
                }
            });
        }
        Item::Profile(name, url) => {
            let response = ui.interact(rect, ui.scope_id().with(("profile", name)), Sense::click());
            response.widget_info(|| {
                WidgetInfo::labeled(Role::Button, true, format!("Connect to {name}"))
            });
            if response.hovered() {
                ui.painter().rect_filled(rect, 4.0, colours(ui).hover);
            }
            let colours = colours(ui);
            paint(
                ui,
                rect.with_min_x(rect.min.x + 8.0),
                &format!("○  {name}"),
                theme::body_font(),
                colours.text,
            );
            if response
                .on_hover_text(format!("{url}\nClick to connect"))
                .clicked()
            {
                cx.want(Intent::Connect(name.clone(), Secrets::default()));
            }
        }
    }
}

fn inside(ui: &mut Ui, rect: Rect, add: impl FnOnce(&mut Ui)) {
    ui.scope_builder(
        egui::UiBuilder::new().max_rect(rect.shrink2(vec2(8.0, 0.0))),
        |ui| {
            ui.horizontal_centered(add);
        },
    );
}

fn failed_ui(ui: &mut Ui, rect: Rect, why: &str, buttons: impl FnOnce(&mut Ui)) {
    let inner = rect.shrink2(vec2(8.0, 4.0));
    ui.painter()
        .rect_filled(rect.shrink2(vec2(2.0, 2.0)), 5.0, colours(ui).danger_ground);
    ui.scope_builder(egui::UiBuilder::new().max_rect(inner), |ui| {
        ui.set_clip_rect(inner.intersect(ui.clip_rect()));
        let text = RichText::new(why).size(11.5).color(colours(ui).danger);
        let room = inner.height() - 26.0;
        ScrollArea::vertical()
            .id_salt(why)
            .max_height(room)
            .show(ui, |ui| {
                ui.add(egui::Label::new(text).wrap()).on_hover_text(why);
            });
        ui.horizontal(buttons);
    });
}

#[allow(
    clippy::too_many_arguments,
    reason = "one line of the list, taken apart"
)]
fn connection_ui(
    ui: &mut Ui,
    cx: &mut Cx<'_>,
    rect: Rect,
    id: ConnectionId,
    label: &str,
    broker: &str,
    mode: Mode,
    loading: &str,
) {
    let colours = colours(ui);
    ui.painter().hline(
        rect.x_range(),
        rect.min.y + 0.5,
        Stroke::new(1.0, colours.line),
    );
    let inner = rect.shrink2(vec2(6.0, 0.0));
    ui.scope_builder(egui::UiBuilder::new().max_rect(inner), |ui| {
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if quiet_button(ui, "×", None)
                .accessible_name(format!("Disconnect {label}"))
                .on_hover_text("Give everything back and disconnect")
                .clicked()
            {
                cx.ask(Ask::Disconnect { connection: id });
            }
            if quiet_button(ui, "↻", None)
                .accessible_name(format!("Refresh {label}"))
                .on_hover_text("Ask the broker again")
                .clicked()
            {
                cx.ask(Ask::List { connection: id });
            }
            match mode {
                Mode::Production => {
                    badge(ui, "PROD", Tone::Danger).on_hover_text("Production");
                }
                Mode::ReadOnly => {
                    badge(ui, "R/O", Tone::Accent).on_hover_text("Read-only");
                }
                Mode::Normal => {}
            }
            ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                let name = RichText::new(format!("●  {label}"))
                    .family(theme::bold())
                    .color(colours.strong);
                let server = cx
                    .state
                    .connection(id)
                    .map(|connection| server_text(&connection.server))
                    .unwrap_or_default();
                ui.add(egui::Label::new(name).truncate())
                    .on_hover_text(server);
                ui.add(
                    egui::Label::new(
                        RichText::new(format!("{broker}{loading}"))
                            .size(11.5)
                            .color(colours.weak),
                    )
                    .truncate(),
                );
            });
        });
    });
}

fn server_text(server: &dlo_core::ServerInfo) -> String {
    let mut text = server.product.clone();
    if let Some(version) = &server.version {
        text.push_str(&format!(" {version}"));
    }
    for (name, value) in &server.facts {
        text.push_str(&format!("\n{name}: {value}"));
    }
    text
}

fn section_ui(
    ui: &Ui,
    narrowing: &mut Narrowing,
    rect: Rect,
    id: ConnectionId,
    title: &'static str,
    count: usize,
    open: bool,
) {
    let response = ui.interact(rect, ui.scope_id().with((id.0, title)), Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::DisclosureTriangle, true, open, title));
    let colours = colours(ui);
    let fold = if open { Fold::Open } else { Fold::Closed };
    triangle(
        ui.painter(),
        rect.left_center() + vec2(12.0, 0.0),
        fold,
        colours.weak,
    );
    let text = format!("{title}  {count}");
    paint(
        ui,
        rect.with_min_x(rect.min.x + 22.0),
        &text,
        theme::small_font(),
        colours.weak,
    );
    if response.clicked() && !narrowing.folded.remove(&(id, title)) {
        narrowing.folded.insert((id, title));
    }
}

fn destination_ui(ui: &Ui, cx: &mut Cx<'_>, rect: Rect, item: &DestinationItem) {
    let id = ui
        .scope_id()
        .with((item.connection.0, item.address.kind as u8, &item.name));
    let response = ui.interact(rect, id, Sense::click());
    let chosen = is_chosen(cx, item);
    response.widget_info(|| WidgetInfo::selected(Role::ListItem, true, chosen, &item.name));
    let colours = colours(ui);
    let ground = if chosen {
        Some(colours.selection)
    } else {
        response.hovered().then_some(colours.hover)
    };
    if let Some(ground) = ground {
        ui.painter()
            .rect_filled(rect.shrink2(vec2(2.0, 1.0)), 4.0, ground);
    }
    let inner = rect.shrink2(vec2(10.0, 4.0));
    let line = if item.dead {
        inner.with_max_y(inner.min.y + 17.0)
    } else {
        inner
    };
    let depth_colour = if item.empty {
        colours.weak
    } else {
        colours.strong
    };
    let depth = galley(
        ui,
        &item.depth,
        if item.empty {
            theme::body_font()
        } else {
            theme::bold_font(13.0)
        },
        depth_colour,
        120.0,
    );
    let depth_at = Align2::RIGHT_CENTER.align_size_within_rect(depth.size(), line);
    ui.painter().galley(depth_at.min, depth, depth_colour);
    let mut left = line.min.x + 8.0;
    if item.dead {
        let tint = if item.empty {
            colours.weak
        } else {
            colours.danger
        };
        envelope(ui, pos2(left + 4.0, line.center().y), tint);
        left += 18.0;
    } else {
        left += 4.0;
    }
    let name_colour = if item.dead && !item.empty {
        colours.strong
    } else {
        colours.text
    };
    let name = galley(
        ui,
        &item.name,
        theme::body_font(),
        name_colour,
        (depth_at.min.x - left - 8.0).max(10.0),
    );
    let name_at = pos2(left, line.center().y - name.size().y / 2.0);
    ui.painter().galley(name_at, name, name_colour);
    if item.dead {
        let below = Rect::from_min_max(pos2(left, line.max.y), inner.max);
        facts_ui(ui, below, &item.facts);
    }
    let mut tooltip = format!(
        "{}: {}\nLooking: {}",
        item.kind,
        item.name,
        if item.cost.is_empty() {
            "cost not known yet"
        } else {
            &item.cost
        }
    );
    if let Some(why) = item.oldest_unknown {
        tooltip.push_str(&format!("\nOldest: not known. {why}"));
    }
    let response = response.on_hover_text(tooltip);
    if response.double_clicked() {
        cx.want(Intent::Look(
            item.connection,
            item.address.clone(),
            dlo_core::Consent::Unasked,
        ));
    } else if response.clicked() {
        cx.want(Intent::Visit(item.connection, item.address.clone()));
    }
}

fn is_chosen(cx: &Cx<'_>, item: &DestinationItem) -> bool {
    match &cx.state.center {
        Center::Destination(connection, address) => {
            *connection == item.connection && *address == item.address
        }
        Center::Look(look) => cx
            .state
            .look(*look)
            .is_some_and(|look| look.connection == item.connection && look.address == item.address),
        _ => false,
    }
}

fn facts_ui(ui: &Ui, rect: Rect, facts: &[(String, Urgency)]) {
    let colours = colours(ui);
    let mut job = LayoutJob::default();
    for (index, (text, urgency)) in facts.iter().enumerate() {
        let colour = match urgency {
            Urgency::Calm => colours.weak,
            Urgency::Notice => colours.warning,
            Urgency::Urgent => colours.danger,
        };
        if index > 0 {
            job.append(
                "  ·  ",
                0.0,
                egui::TextFormat::simple(theme::small_font(), colours.weak),
            );
        }
        job.append(
            text,
            0.0,
            egui::TextFormat::simple(theme::small_font(), colour),
        );
    }
    job.wrap = TextWrapping::truncate_at_width(rect.width());
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    ui.painter().galley(
        pos2(rect.min.x, rect.center().y - galley.size().y / 2.0),
        galley,
        colours.weak,
    );
}

fn galley(
    ui: &Ui,
    text: &str,
    font: egui::FontId,
    colour: Color32,
    width: f32,
) -> std::sync::Arc<egui::Galley> {
    let mut job = LayoutJob::simple_singleline(text.to_owned(), font, colour);
    job.wrap = TextWrapping::truncate_at_width(width);
    ui.fonts_mut(|fonts| fonts.layout_job(job))
}

fn paint(ui: &Ui, rect: Rect, text: &str, font: egui::FontId, colour: Color32) {
    let galley = galley(ui, text, font, colour, rect.width());
    let at = Align2::LEFT_CENTER.align_size_within_rect(galley.size(), rect);
    ui.painter().galley(at.min, galley, colour);
}

/// The mark of dead letters: an envelope, drawn, as no bundled font has one that reads well at this size.
fn envelope(ui: &Ui, middle: egui::Pos2, colour: Color32) {
    let rect = Rect::from_center_size(middle, vec2(13.0, 10.0));
    let stroke = Stroke::new(1.2, colour);
    let painter = ui.painter();
    painter.rect_stroke(rect, 2.0, stroke, egui::StrokeKind::Inside);
    let flap = vec![
        rect.left_top() + vec2(1.0, 1.0),
        middle + vec2(0.0, 1.0),
        rect.right_top() + vec2(-1.0, 1.0),
    ];
    painter.add(egui::Shape::line(flap, stroke));
}
