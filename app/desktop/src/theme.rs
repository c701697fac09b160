//! Colours, fonts and spacing by role; nowhere else in this crate is a colour written down.
//!
//! Two palettes, dark and light, with the same roles. Text on its ground keeps a contrast of at least 4.5 : 1.

use std::sync::Arc;

use egui::{
    Color32, CornerRadius, FontData, FontDefinitions, FontFamily, FontId, Margin, Shadow, Stroke,
    Style, TextStyle, Theme, Vec2, Visuals,
};

/// What each colour is for.
#[derive(Clone, Copy, Debug)]
pub struct Colours {
    /// Behind tables, trees and text.
    pub ground: Color32,
    /// Behind panels and bars.
    pub panel: Color32,
    /// Buttons, chips, headers.
    pub raised: Color32,
    /// Buttons under the pointer.
    pub lifted: Color32,
    pub line: Color32,
    pub text: Color32,
    pub weak: Color32,
    pub strong: Color32,
    /// What can be clicked or is in use.
    pub accent: Color32,
    /// On top of `accent` as a fill.
    pub on_accent: Color32,
    pub selection: Color32,
    pub hover: Color32,
    pub danger: Color32,
    pub danger_ground: Color32,
    pub warning: Color32,
    pub warning_ground: Color32,
    pub fine: Color32,
    pub fine_ground: Color32,
    /// Names of fields, numbers and text in payloads.
    pub key: Color32,
    pub number: Color32,
    pub quoted: Color32,
}

const fn rgb(hex: u32) -> Color32 {
    let [_, r, g, b] = hex.to_be_bytes();
    Color32::from_rgb(r, g, b)
}

const DARK: Colours = Colours {
    ground: rgb(0x0f1318),
    panel: rgb(0x161b22),
    raised: rgb(0x222932),
    lifted: rgb(0x2d3641),
    line: rgb(0x2a323c),
    text: rgb(0xd3dae3),
    weak: rgb(0x8d98a7),
    strong: rgb(0xf3f6fa),
    accent: rgb(0x62aef5),
    on_accent: rgb(0x07121d),
    selection: rgb(0x1d3b5a),
    hover: rgb(0x1c232c),
    danger: rgb(0xf47c7c),
    danger_ground: rgb(0x3d1c20),
    warning: rgb(0xe7b65a),
    warning_ground: rgb(0x372b13),
    fine: rgb(0x6fcf97),
    fine_ground: rgb(0x16321f),
    key: rgb(0x8fc6ff),
    number: rgb(0xe0b07a),
    quoted: rgb(0x9ed6a4),
};

const LIGHT: Colours = Colours {
    ground: rgb(0xffffff),
    panel: rgb(0xf4f6f8),
    raised: rgb(0xe6eaef),
    lifted: rgb(0xd9dfe6),
    line: rgb(0xd5dbe2),
    text: rgb(0x222a33),
    weak: rgb(0x5c6876),
    strong: rgb(0x0a0e13),
    accent: rgb(0x1763b6),
    on_accent: rgb(0xffffff),
    selection: rgb(0xcde2f8),
    hover: rgb(0xeef2f6),
    danger: rgb(0xb3261e),
    danger_ground: rgb(0xfbe3e1),
    warning: rgb(0x7d5200),
    warning_ground: rgb(0xfbefd2),
    fine: rgb(0x156b3d),
    fine_ground: rgb(0xdcf3e4),
    key: rgb(0x0b5aa6),
    number: rgb(0x8a4b08),
    quoted: rgb(0x1a6b2d),
};

/// The colours of the present theme.
pub fn colours(ui: &egui::Ui) -> &'static Colours {
    of(ui.visuals().dark_mode)
}

/// The colours of the present theme, where there is only a context.
pub fn context_colours(ctx: &egui::Context) -> &'static Colours {
    of(ctx.theme() == Theme::Dark)
}

fn of(dark: bool) -> &'static Colours {
    if dark { &DARK } else { &LIGHT }
}

/// The height of a row in tables and trees, in points.
pub const ROW: f32 = 24.0;
/// The height of bars at the edges of a panel.
pub const BAR: f32 = 34.0;

/// The family of strong text: a real bold, not a brighter grey.
pub fn bold() -> FontFamily {
    FontFamily::Name("bold".into())
}

/// Strong text of the normal size.
pub fn bold_font(size: f32) -> FontId {
    FontId::new(size, bold())
}

/// Text of fixed width, as large as the text around it looks.
pub fn mono_font() -> FontId {
    FontId::monospace(12.5)
}

pub fn body_font() -> FontId {
    FontId::proportional(13.0)
}

pub fn small_font() -> FontId {
    FontId::proportional(11.5)
}

/// Sets fonts and both styles. Call it once per context.
pub fn install(ctx: &egui::Context) {
    ctx.set_fonts(fonts());
    ctx.set_style_of(Theme::Dark, style(&DARK, Visuals::dark()));
    ctx.set_style_of(Theme::Light, style(&LIGHT, Visuals::light()));
}

fn fonts() -> FontDefinitions {
    let mut fonts = FontDefinitions::default();
    let inter: &'static [u8] = include_bytes!("../../../assets/fonts/Inter-Regular.otf");
    let strong: &'static [u8] = include_bytes!("../../../assets/fonts/Inter-SemiBold.otf");
    fonts
        .font_data
        .insert("Inter".to_owned(), Arc::new(FontData::from_static(inter)));
    fonts.font_data.insert(
        "Inter SemiBold".to_owned(),
        Arc::new(FontData::from_static(strong)),
    );
    let fallbacks = fonts
        .families
        .get(&FontFamily::Proportional)
        .cloned()
        .unwrap_or_default();
    // Hack has the small triangles and bars that Inter lacks.
    let with = |first: &str| {
        let mut names = vec![first.to_owned(), "Hack".to_owned()];
        names.extend(fallbacks.iter().filter(|name| *name != "Hack").cloned());
        names
    };
    fonts
        .families
        .insert(FontFamily::Proportional, with("Inter"));
    fonts.families.insert(bold(), with("Inter SemiBold"));
    if let Some(mono) = fonts.families.get_mut(&FontFamily::Monospace) {
        mono.push("Inter".to_owned());
    }
    fonts
}

fn style(colours: &Colours, visuals: Visuals) -> Style {
    let mut style = Style {
        visuals: paint(colours, visuals),
        ..Style::default()
    };
    style.text_styles = [
        (TextStyle::Small, small_font()),
        (TextStyle::Body, body_font()),
        (TextStyle::Button, body_font()),
        (TextStyle::Heading, bold_font(17.0)),
        (TextStyle::Monospace, mono_font()),
    ]
    .into();
    let spacing = &mut style.spacing;
    spacing.item_spacing = Vec2::new(7.0, 5.0);
    spacing.button_padding = Vec2::new(9.0, 3.0);
    spacing.interact_size.y = 24.0;
    spacing.window_margin = Margin::same(14);
    spacing.menu_margin = Margin::same(6);
    spacing.indent = 16.0;
    spacing.tooltip_width = 420.0;
    spacing.combo_width = 120.0;
    style.interaction.selectable_labels = false;
    style.interaction.tooltip_delay = 0.35;
    style
}

fn paint(colours: &Colours, mut visuals: Visuals) -> Visuals {
    let radius = CornerRadius::same(5);
    visuals.panel_fill = colours.panel;
    visuals.window_fill = colours.panel;
    visuals.window_stroke = Stroke::new(1.0, colours.line);
    visuals.window_corner_radius = CornerRadius::same(9);
    visuals.menu_corner_radius = CornerRadius::same(7);
    visuals.window_shadow = Shadow {
        offset: [0, 10],
        blur: 32,
        spread: 0,
        color: Color32::from_black_alpha(110),
    };
    visuals.popup_shadow = Shadow {
        offset: [0, 4],
        blur: 16,
        spread: 0,
        color: Color32::from_black_alpha(90),
    };
    visuals.extreme_bg_color = colours.ground;
    visuals.faint_bg_color = colours.hover;
    visuals.code_bg_color = colours.raised;
    visuals.hyperlink_color = colours.accent;
    visuals.warn_fg_color = colours.warning;
    visuals.error_fg_color = colours.danger;
    visuals.weak_text_color = Some(colours.weak);
    visuals.selection.bg_fill = colours.selection;
    visuals.selection.stroke = Stroke::new(1.0, colours.accent);
    visuals.striped = false;
    let widgets = &mut visuals.widgets;
    for widget in [
        &mut widgets.noninteractive,
        &mut widgets.inactive,
        &mut widgets.hovered,
        &mut widgets.active,
        &mut widgets.open,
    ] {
        widget.corner_radius = radius;
        widget.expansion = 0.0;
        widget.bg_stroke = Stroke::new(1.0, colours.line);
    }
    widgets.noninteractive.fg_stroke = Stroke::new(1.0, colours.text);
    widgets.noninteractive.bg_fill = colours.panel;
    widgets.inactive.fg_stroke = Stroke::new(1.0, colours.text);
    widgets.inactive.bg_fill = colours.raised;
    widgets.inactive.weak_bg_fill = colours.raised;
    widgets.hovered.fg_stroke = Stroke::new(1.0, colours.strong);
    widgets.hovered.bg_fill = colours.lifted;
    widgets.hovered.weak_bg_fill = colours.lifted;
    widgets.active.fg_stroke = Stroke::new(1.0, colours.strong);
    widgets.active.bg_fill = colours.lifted;
    widgets.active.weak_bg_fill = colours.lifted;
    widgets.open.fg_stroke = Stroke::new(1.0, colours.strong);
    widgets.open.bg_fill = colours.lifted;
    widgets.open.weak_bg_fill = colours.lifted;
    visuals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: Color32) -> f32 {
        let linear = |channel: u8| {
            let value = f32::from(channel) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(colour.r()) + 0.7152 * linear(colour.g()) + 0.0722 * linear(colour.b())
    }

    fn contrast(a: Color32, b: Color32) -> f32 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_text_can_be_read_on_every_ground_it_stands_on() {
        for colours in [&DARK, &LIGHT] {
            let grounds = [colours.ground, colours.panel, colours.selection];
            for ground in grounds {
                for text in [colours.text, colours.strong] {
                    assert!(contrast(text, ground) >= 4.5, "{text:?} on {ground:?}");
                }
            }
            for ground in [colours.ground, colours.panel] {
                for text in [
                    colours.weak,
                    colours.accent,
                    colours.danger,
                    colours.warning,
                    colours.fine,
                    colours.key,
                    colours.number,
                    colours.quoted,
                ] {
                    assert!(contrast(text, ground) >= 4.5, "{text:?} on {ground:?}");
                }
            }
            for (text, ground) in [
                (colours.danger, colours.danger_ground),
                (colours.warning, colours.warning_ground),
                (colours.fine, colours.fine_ground),
                (colours.on_accent, colours.accent),
            ] {
                assert!(contrast(text, ground) >= 4.5, "{text:?} on {ground:?}");
            }
        }
    }
}
