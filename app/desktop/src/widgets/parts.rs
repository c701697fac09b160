//! Small pieces that every panel uses: buttons that say why they are disabled, chips, fields with names.

use egui::{
    Button, Color32, CornerRadius, Frame, Margin, Response, RichText, Role, Sense, Stroke,
    TextEdit, Ui, WidgetInfo, vec2,
};

use crate::theme::{self, Colours, colours};

/// How much something matters, and therefore its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Accent,
    Fine,
    Warning,
    Danger,
}

impl Tone {
    pub fn text(self, colours: &Colours) -> Color32 {
        match self {
            Self::Plain => colours.text,
            Self::Accent => colours.accent,
            Self::Fine => colours.fine,
            Self::Warning => colours.warning,
            Self::Danger => colours.danger,
        }
    }

    pub fn ground(self, colours: &Colours) -> Color32 {
        match self {
            Self::Plain => colours.raised,
            Self::Accent => colours.selection,
            Self::Fine => colours.fine_ground,
            Self::Warning => colours.warning_ground,
            Self::Danger => colours.danger_ground,
        }
    }
}

/// A button. When `blocked` says why, it is disabled and says so under the pointer.
pub fn button(ui: &mut Ui, text: &str, blocked: Option<&str>) -> Response {
    add_button(ui, Button::new(text), blocked)
}

/// The button for what is most likely wanted.
pub fn primary_button(ui: &mut Ui, text: &str, blocked: Option<&str>) -> Response {
    let colours = colours(ui);
    let label = RichText::new(text)
        .color(colours.on_accent)
        .family(theme::bold());
    let button = Button::new(label)
        .fill(colours.accent)
        .stroke(Stroke::new(1.0, colours.accent));
    if blocked.is_some() {
        return add_button(ui, Button::new(text), blocked);
    }
    add_button(ui, button, blocked)
}

/// The button for what removes or changes something; its text names the object and its count.
pub fn danger_button(ui: &mut Ui, text: &str, blocked: Option<&str>) -> Response {
    let colours = colours(ui);
    if blocked.is_some() {
        return add_button(ui, Button::new(text), blocked);
    }
    let label = RichText::new(text)
        .color(colours.danger)
        .family(theme::bold());
    let button = Button::new(label)
        .fill(colours.danger_ground)
        .stroke(Stroke::new(1.0, colours.danger.gamma_multiply(0.6)));
    add_button(ui, button, blocked)
}

fn add_button(ui: &mut Ui, button: Button<'_>, blocked: Option<&str>) -> Response {
    let response = ui.add_enabled(blocked.is_none(), button);
    match blocked {
        Some(why) => response.on_disabled_hover_text(why),
        None => response,
    }
}

/// A small word on a coloured ground.
pub fn chip(ui: &mut Ui, text: &str, tone: Tone) -> Response {
    let colours = colours(ui);
    let frame = Frame::new()
        .fill(tone.ground(colours))
        .corner_radius(CornerRadius::same(4))
        .inner_margin(Margin::symmetric(6, 1));
    let response = frame
        .show(ui, |ui| {
            let text = RichText::new(text).size(11.5).color(tone.text(colours));
            ui.add(egui::Label::new(text).wrap_mode(egui::TextWrapMode::Extend))
        })
        .response;
    let response = ui.interact(response.rect, response.id, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text));
    response
}

/// A word in capitals that nobody may overlook, such as PRODUCTION.
pub fn badge(ui: &mut Ui, text: &str, tone: Tone) -> Response {
    let colours = colours(ui);
    let frame = Frame::new()
        .fill(tone.ground(colours))
        .stroke(Stroke::new(1.0, tone.text(colours).gamma_multiply(0.7)))
        .corner_radius(CornerRadius::same(4))
        .inner_margin(Margin::symmetric(7, 1));
    frame
        .show(ui, |ui| {
            let label = RichText::new(text)
                .size(11.0)
                .family(theme::bold())
                .color(tone.text(colours));
            ui.add(egui::Label::new(label).wrap_mode(egui::TextWrapMode::Extend))
        })
        .response
}

/// A box with a sentence that a person should read.
pub fn callout(ui: &mut Ui, tone: Tone, text: &str) {
    callout_ui(ui, tone, |ui| {
        let colour = if tone == Tone::Plain {
            colours(ui).text
        } else {
            tone.text(colours(ui))
        };
        ui.add(egui::Label::new(RichText::new(text).color(colour)).wrap());
    });
}

/// The same with anything in it.
pub fn callout_ui<R>(ui: &mut Ui, tone: Tone, add: impl FnOnce(&mut Ui) -> R) -> R {
    let colours = colours(ui);
    Frame::new()
        .fill(tone.ground(colours))
        .corner_radius(CornerRadius::same(6))
        .inner_margin(Margin::symmetric(10, 7))
        .show(ui, |ui| {
            ui.set_width(ui.available_width());
            add(ui)
        })
        .inner
}

/// A line of text to type into, with a name for screen readers.
pub fn text_field(ui: &mut Ui, name: &str, text: &mut String, hint: &str, width: f32) -> Response {
    let edit = TextEdit::singleline(text)
        .hint_text(hint.to_owned())
        .desired_width(width)
        .margin(Margin::symmetric(7, 4));
    ui.add(edit).accessible_name(name)
}

/// A secret to type, never shown.
pub fn secret_field(
    ui: &mut Ui,
    name: &str,
    text: &mut String,
    hint: &str,
    width: f32,
) -> Response {
    let edit = TextEdit::singleline(text)
        .password(true)
        .hint_text(hint.to_owned())
        .desired_width(width)
        .margin(Margin::symmetric(7, 4));
    ui.add(edit).accessible_name(name)
}

/// A field label above or beside an input.
pub fn caption(ui: &mut Ui, text: &str) -> Response {
    ui.label(RichText::new(text).color(colours(ui).weak))
}

/// A heading inside a panel or dialog.
pub fn section(ui: &mut Ui, text: &str) {
    ui.add_space(6.0);
    ui.label(
        RichText::new(text)
            .family(theme::bold())
            .color(colours(ui).strong),
    );
}

/// One fact: its name in grey, its value beside it.
pub fn fact(ui: &mut Ui, name: &str, value: &str) -> Response {
    caption(ui, name);
    let response = ui.add(egui::Label::new(value).selectable(true).wrap());
    ui.end_row();
    response
}

/// Two columns of facts.
pub fn facts<R>(ui: &mut Ui, salt: &str, add: impl FnOnce(&mut Ui) -> R) -> R {
    let widest = (ui.available_width() - 120.0).max(120.0);
    egui::Grid::new(salt)
        .num_columns(2)
        .spacing(vec2(14.0, 3.0))
        .min_col_width(92.0)
        .max_col_width(widest)
        .min_row_height(18.0)
        .show(ui, add)
        .inner
}

/// Choices of which one is chosen, side by side.
pub fn choice<T: PartialEq + Copy>(
    ui: &mut Ui,
    value: &mut T,
    choices: &[(T, &str, &str)],
) -> bool {
    let before = *value;
    ui.horizontal_wrapped(|ui| {
        for (choice, text, tooltip) in choices {
            let chosen = *value == *choice;
            let response = ui.add(Button::selectable(chosen, *text));
            let response = if tooltip.is_empty() {
                response
            } else {
                response.on_hover_text(*tooltip)
            };
            if response.clicked() {
                *value = *choice;
            }
        }
    });
    before != *value
}

/// A button that looks like a word.
pub fn quiet_button(ui: &mut Ui, text: &str, blocked: Option<&str>) -> Response {
    add_button(ui, Button::new(text).frame_when_inactive(false), blocked)
}

/// What is shown where there is nothing to show: why, and what to do.
pub fn empty(ui: &mut Ui, title: &str, text: &str) {
    ui.vertical_centered(|ui| {
        ui.add_space((ui.available_height() * 0.28).min(160.0));
        ui.label(
            RichText::new(title)
                .size(15.0)
                .family(theme::bold())
                .color(colours(ui).strong),
        );
        ui.add_space(2.0);
        ui.label(RichText::new(text).color(colours(ui).weak));
    });
}
