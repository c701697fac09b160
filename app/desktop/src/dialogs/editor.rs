//! Editing one message before it is replayed: body as text, typed headers and properties, key; with a diff before it is kept.
//!
//! Encoding goes through the layers the body was decoded from and may take time, so it is done on a thread of its own.

use std::sync::Arc;

use bytes::Bytes;
use dlo_core::{Header, Message, Typed, Value};
use dlo_engine::event::Opened;
use egui::{Button, ComboBox, RichText, ScrollArea, Ui};

use super::{Then, finish_ui};
use crate::{
    intent::{Cx, Intent},
    payload::{self, Encoded},
    theme::colours,
    values::{self, Field, Form},
    widgets::{
        diff_view::{Diff, DiffView},
        parts::{
            Tone, callout, caption, chip, choice, primary_button, quiet_button, section, text_field,
        },
        text_editor::{Mark, text_editor},
    },
    work::Work,
};

/// A message while it is edited.
#[derive(Debug)]
pub struct EditorDialog {
    opened: Arc<Opened>,
    tab: Tab,
    body: Body,
    text: String,
    hex: String,
    headers: Vec<(String, Field)>,
    properties: Vec<(String, Field)>,
    key: KeyForm,
    key_text: String,
    encoded: Work<Result<Encoded, String>>,
    /// What the last encoding was asked for.
    asked: Option<(Body, String)>,
    diff: Work<(Message, Diff)>,
    diffed: Option<Message>,
    view: DiffView,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Body,
    Headers,
    Changes,
}

/// What becomes of the body. Null, empty and text are three things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// The bytes as they are.
    Kept,
    Text,
    Hex,
    Empty,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyForm {
    Kept,
    Text,
    Empty,
    Null,
}

impl EditorDialog {
    /// Begins with the draft when there is one.
    pub fn new(opened: &Arc<Opened>, draft: Option<Message>) -> Self {
        let original = &opened.delivery.message;
        let message = draft.as_ref().unwrap_or(original);
        let editable = payload::not_editable(opened).is_none();
        let changed = draft
            .as_ref()
            .is_some_and(|draft| draft.body != original.body);
        let (body, text) = match &message.body {
            None => (Body::Null, String::new()),
            Some(bytes) if bytes.is_empty() => (Body::Empty, String::new()),
            Some(_) if !changed && editable => (Body::Text, payload::text(opened)),
            Some(_) if !changed => (Body::Kept, String::new()),
            Some(bytes) => match std::str::from_utf8(bytes) {
                // A draft of a body with layers is shown again as it was typed only when it is plain text.
                Ok(text) if payload::is_plain(opened) => (Body::Text, text.to_owned()),
                _ => (Body::Hex, String::new()),
            },
        };
        Self {
            opened: opened.clone(),
            tab: Tab::Body,
            body,
            text,
            hex: hex_lines(message.body.as_deref().unwrap_or_default()),
            headers: message
                .headers
                .iter()
                .map(|header| (header.name.clone(), Field::new(&header.typed)))
                .collect(),
            properties: message
                .properties
                .iter()
                .map(|(name, value)| (name.clone(), Field::new(&Typed::new("", value.clone()))))
                .collect(),
            key: KeyForm::Kept,
            key_text: message
                .key
                .as_deref()
                .map(|key| String::from_utf8_lossy(key).into_owned())
                .unwrap_or_default(),
            encoded: Work::default(),
            asked: None,
            diff: Work::default(),
            diffed: None,
            view: DiffView::default(),
        }
    }

    pub fn title(&self) -> String {
        format!("Edit message {}", self.opened.row + 1)
    }

    pub fn ui(&mut self, ui: &mut Ui, cx: &mut Cx<'_>) -> Then {
        self.encode_again(ui);
        let made = self.message();
        self.diff_again(ui, made.as_ref().ok());
        ui.horizontal(|ui| {
            let changes = match &self.diff.answer {
                Some((_, diff)) if !diff.is_empty() => "Changes •",
                _ => "Changes",
            };
            for (tab, text) in [
                (Tab::Body, "Body"),
                (Tab::Headers, "Headers and key"),
                (Tab::Changes, changes),
            ] {
                if ui.add(Button::selectable(self.tab == tab, text)).clicked() {
                    self.tab = tab;
                }
            }
        });
        ui.separator();
        let height = (ui.ctx().content_rect().height() - 260.0).max(140.0);
        // Every tab has the same room, so that the dialog keeps its size.
        let size = egui::vec2(ui.available_width(), height);
        let (rect, _) = ui.allocate_exact_size(size, egui::Sense::hover());
        let mut inner = ui.new_child(egui::UiBuilder::new().max_rect(rect));
        inner.set_clip_rect(rect.intersect(ui.clip_rect()));
        self.tab_ui(&mut inner);
        self.remarks(ui);
        let unchanged = made
            .as_ref()
            .is_ok_and(|message| *message == self.opened.delivery.message);
        let blocked = match &made {
            Err(why) => Some(why.clone()),
            Ok(_) if self.encoded.is_running() => Some("The body is being encoded.".to_owned()),
            Ok(_) if unchanged => Some("Nothing is changed.".to_owned()),
            Ok(_) => None,
        };
        if let Err(why) = &made {
            ui.add(egui::Label::new(RichText::new(why).color(colours(ui).danger)).wrap());
        }
        let (acted, then) = finish_ui(ui, |ui| {
            primary_button(ui, "Keep the edit", blocked.as_deref())
                .on_hover_text(
                    "Nothing is sent yet: the edited message goes out when it is replayed",
                )
                .clicked()
        });
        match made {
            Ok(message) if acted => {
                cx.want(Intent::Draft(
                    self.opened.look,
                    self.opened.row,
                    Some(Box::new(message)),
                ));
                Then::Close
            }
            _ => then,
        }
    }

    fn tab_ui(&mut self, ui: &mut Ui) {
        match self.tab {
            Tab::Body => self.body_ui(ui),
            Tab::Headers => {
                ScrollArea::vertical()
                    .id_salt("edit headers")
                    .auto_shrink(false)
                    .show(ui, |ui| self.headers_ui(ui));
            }
            Tab::Changes => self.changes_ui(ui),
        }
    }

    fn body_ui(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            for (name, _) in payload::chips(&self.opened) {
                chip(ui, &name, Tone::Accent);
            }
            let forms = [
                (
                    Body::Text,
                    "text",
                    "As decoded; it is encoded through the same layers",
                ),
                (
                    Body::Hex,
                    "bytes (hex)",
                    "The bytes as they are at the broker",
                ),
                (Body::Kept, "as it is", "Keep every byte"),
                (Body::Empty, "empty", "A body with no bytes"),
                (
                    Body::Null,
                    "null",
                    "No body at all; on a compacted topic this deletes the key",
                ),
            ];
            choice(ui, &mut self.body, &forms);
        });
        match self.body {
            Body::Text => match payload::not_editable(&self.opened) {
                Some(why) => callout(ui, Tone::Warning, &why),
                None => {
                    let marks = self.marks();
                    let height = ui.available_height() - 4.0;
                    text_editor(ui, "Body", &mut self.text, &marks, height);
                }
            },
            Body::Hex => {
                let height = ui.available_height() - 4.0;
                text_editor(ui, "Body in hexadecimal", &mut self.hex, &[], height);
            }
            Body::Kept => {
                ui.weak("The body keeps every byte.");
            }
            Body::Empty => {
                ui.weak("The body has no bytes. That is not null.");
            }
            Body::Null => {
                ui.weak("The body is null. That is not empty.");
            }
        }
    }

    /// Where the text is wrong, when the error names a line.
    fn marks(&self) -> Vec<Mark> {
        let Some(Err(why)) = &self.encoded.answer else {
            return Vec::new();
        };
        let number = why.split("line ").nth(1).and_then(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        });
        number
            .map(|line| Mark {
                line,
                text: why.clone(),
            })
            .into_iter()
            .collect()
    }

    fn headers_ui(&mut self, ui: &mut Ui) {
        section(ui, "Key");
        ui.horizontal(|ui| {
            let forms = [
                (KeyForm::Kept, "as it is", ""),
                (KeyForm::Text, "text", ""),
                (KeyForm::Empty, "empty", ""),
                (KeyForm::Null, "null", ""),
            ];
            choice(ui, &mut self.key, &forms);
            if self.key == KeyForm::Text {
                text_field(ui, "Key", &mut self.key_text, "", 240.0);
            }
        });
        section(ui, "Headers");
        fields_ui(ui, "Header", &mut self.headers, Naming::Free);
        if quiet_button(ui, "Add a header", None).clicked() {
            let kind = self.headers.first().map_or_else(
                || "longstr".into(),
                |(_, field)| field.original.kind.clone(),
            );
            let kind = if self.opened.delivery.message.headers.is_empty() {
                "".into()
            } else {
                kind
            };
            let mut field = Field::new(&Typed::new(kind, Value::text("")));
            field.form = Form::Text;
            self.headers.push((String::new(), field));
        }
        if !self.properties.is_empty() {
            section(ui, "Properties");
            fields_ui(ui, "Property", &mut self.properties, Naming::Fixed);
        }
    }

    fn changes_ui(&mut self, ui: &mut Ui) {
        if let Some(Ok(encoded)) = &self.encoded.answer
            && !encoded.meaning.is_empty()
        {
            caption(ui, "In meaning");
            for line in encoded.meaning.iter().take(12) {
                ui.add(egui::Label::new(RichText::new(line).monospace()).wrap());
            }
            if encoded.meaning.len() > 12 {
                ui.weak(format!("and {} more", encoded.meaning.len() - 12));
            }
        }
        caption(ui, "In bytes, line by line");
        match &self.diff.answer {
            Some((_, diff)) => {
                let height = ui.available_height();
                self.view.show(ui, "Difference", diff, height);
            }
            None => {
                ui.weak("No difference");
            }
        }
    }

    fn remarks(&self, ui: &mut Ui) {
        if self.body != Body::Text {
            return;
        }
        if let Some(Ok(encoded)) = &self.encoded.answer {
            for remark in &encoded.remarks {
                callout(ui, Tone::Warning, remark);
            }
        }
    }

    /// Encodes the text when it changed.
    fn encode_again(&mut self, ui: &Ui) {
        self.encoded.poll();
        if self.body != Body::Text || payload::not_editable(&self.opened).is_some() {
            return;
        }
        let wanted = (self.body, self.text.clone());
        if self.asked.as_ref() == Some(&wanted) {
            return;
        }
        let (opened, text) = (self.opened.clone(), self.text.clone());
        self.encoded
            .start(ui.ctx(), move || payload::encode(&opened, &text));
        self.asked = Some(wanted);
    }

    fn diff_again(&mut self, ui: &Ui, made: Option<&Message>) {
        self.diff.poll();
        let Some(made) = made else {
            return;
        };
        if self.diffed.as_ref() == Some(made) || self.diff.is_running() {
            return;
        }
        self.diffed = Some(made.clone());
        let (opened, made) = (self.opened.clone(), made.clone());
        self.diff.start(ui.ctx(), move || {
            let before = whole(&opened.delivery.message);
            let after = whole(&made);
            (made, Diff::new(&before, &after))
        });
    }

    /// The message as edited.
    fn message(&self) -> Result<Message, String> {
        let original = &self.opened.delivery.message;
        let body = match self.body {
            Body::Kept => original.body.clone(),
            Body::Null => None,
            Body::Empty => Some(Bytes::new()),
            Body::Hex => Some(values::parse_hex(&self.hex)?.into()),
            Body::Text => match &self.encoded.answer {
                Some(Ok(encoded)) => Some(encoded.bytes.clone()),
                Some(Err(why)) => return Err(why.clone()),
                None => original.body.clone(),
            },
        };
        let key = match self.key {
            KeyForm::Kept => original.key.clone(),
            KeyForm::Null => None,
            KeyForm::Empty => Some(Bytes::new()),
            KeyForm::Text => Some(Bytes::from(self.key_text.clone())),
        };
        let headers = self
            .headers
            .iter()
            .map(|(name, field)| header(name, field))
            .collect::<Result<_, _>>()?;
        let properties = self
            .properties
            .iter()
            .map(|(name, field)| {
                field
                    .value()
                    .map(|value| (name.clone(), value))
                    .map_err(|why| format!("Property {name}: {why}."))
            })
            .collect::<Result<_, _>>()?;
        Ok(Message {
            key,
            headers,
            properties,
            body,
        })
    }
}

fn header(name: &str, field: &Field) -> Result<Header, String> {
    if name.trim().is_empty() {
        return Err("A header needs a name.".to_owned());
    }
    let value = field
        .value()
        .map_err(|why| format!("Header {name}: {why}."))?;
    let kept = std::mem::discriminant(&value) == std::mem::discriminant(&field.original.value);
    // The broker's type stays while the value is of the same kind; else the connector chooses one for it.
    let kind = if kept {
        field.original.kind.clone()
    } else {
        "".into()
    };
    Ok(Header {
        name: name.to_owned(),
        typed: Typed { kind, value },
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    Free,
    /// The protocol names them.
    Fixed,
}

fn fields_ui(ui: &mut Ui, noun: &str, fields: &mut Vec<(String, Field)>, naming: Naming) {
    let mut gone = None;
    egui::Grid::new(noun)
        .num_columns(4)
        .spacing([8.0, 4.0])
        .show(ui, |ui| {
            for (index, (name, field)) in fields.iter_mut().enumerate() {
                let number = index + 1;
                match naming {
                    Naming::Free => {
                        text_field(ui, &format!("{noun} {number} name"), name, "name", 190.0);
                    }
                    Naming::Fixed => {
                        ui.label(RichText::new(name.as_str()).color(colours(ui).key));
                    }
                }
                form_ui(ui, &format!("{noun} {number} type"), (noun, index), field);
                if field.form.has_text() {
                    text_field(
                        ui,
                        &format!("{noun} {number} value"),
                        &mut field.text,
                        "",
                        320.0,
                    );
                } else {
                    ui.weak(if field.form == Form::Kept {
                        values::show(&field.original.value)
                            .chars()
                            .take(60)
                            .collect()
                    } else {
                        field.form.word().to_owned()
                    });
                }
                if quiet_button(ui, "×", None)
                    .accessible_name(format!("Remove {} {number}", noun.to_lowercase()))
                    .clicked()
                {
                    gone = Some(index);
                }
                ui.end_row();
                if let Err(why) = field.value() {
                    ui.label("");
                    ui.label("");
                    ui.label(RichText::new(why).color(colours(ui).danger));
                    ui.end_row();
                }
            }
        });
    if let Some(index) = gone {
        fields.remove(index);
    }
}

fn form_ui(ui: &mut Ui, name: &str, salt: (&str, usize), field: &mut Field) {
    let kind = &field.original.kind;
    let text = if kind.is_empty() {
        field.form.word().to_owned()
    } else {
        format!("{} · {kind}", field.form.word())
    };
    let response = ComboBox::from_id_salt(salt)
        .width(150.0)
        .selected_text(text)
        .show_ui(ui, |ui| {
            if Field::new(&field.original).form == Form::Kept {
                ui.selectable_value(&mut field.form, Form::Kept, Form::Kept.word());
            }
            for form in Form::CHOICES {
                ui.selectable_value(&mut field.form, form, form.word());
            }
        });
    response.response.accessible_name(name);
}

fn hex_lines(bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes
        .chunks(16)
        .map(|chunk| {
            chunk
                .iter()
                .map(|byte| format!("{byte:02x} "))
                .collect::<String>()
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.join("\n")
}

fn whole(message: &Message) -> String {
    let body = match message.body.as_deref() {
        None => "null".to_owned(),
        Some(body) => std::str::from_utf8(body).map_or_else(|_| hex_lines(body), str::to_owned),
    };
    format!("{}\n{body}\n", values::lines(message))
}
