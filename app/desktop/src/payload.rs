//! What the window needs of a decoded body: chips, notes, a tree, text to edit, and the bytes of what was edited.
//!
//! Separate, so that panels and dialogs know the payload crate's words only through here.

use std::sync::Arc;

use bytes::Bytes;
use dlo_engine::event::Opened;
use dlo_payload::{
    Document, Input, Lookup, Schema, SchemaKey, SchemaSource, Settings, Step, Weight, diff, edit,
};

use crate::widgets::{
    json_tree::{Hue, JsonTree, Node, counted, cut, escape},
    parts::Tone,
};

/// A body after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    pub bytes: Bytes,
    /// What a person should know before saving.
    pub remarks: Vec<String>,
    /// The difference in meaning, a line each.
    pub meaning: Vec<String>,
}

/// The layers and the format, outermost first, with what their tooltip says.
pub fn chips(opened: &Opened) -> Vec<(String, String)> {
    let body = &opened.body;
    let layers = body
        .layers
        .iter()
        .map(|layer| (layer.step.name().to_owned(), layer.detail.clone()));
    let format = (
        body.format.name().to_owned(),
        "The format of the innermost bytes".to_owned(),
    );
    layers.chain([format]).collect()
}

/// The decode report: what was tried, and what to know before trusting or editing the value.
pub fn notes(opened: &Opened) -> Vec<(Tone, String)> {
    let body = &opened.body;
    let needs = body.needs.iter().map(|key| {
        (
            Tone::Warning,
            format!("The schema {key} is not here: set a schema registry in the profile."),
        )
    });
    let notes = body.notes.iter().map(|note| {
        let tone = match note.weight {
            Weight::Warning => Tone::Warning,
            Weight::Info | Weight::Refused => Tone::Plain,
        };
        (tone, note.text.clone())
    });
    needs.chain(notes).collect()
}

/// The schema in words, when there is one, and its text.
pub fn schema(opened: &Opened) -> Option<(String, String)> {
    let schema = opened.body.schema.as_ref()?;
    let kind = opened
        .body
        .message_type
        .as_ref()
        .map_or_else(String::new, |name| format!(" · {name}"));
    Some((
        format!("{}{kind}", schema.label()),
        format!("from {}\n{}", schema.origin, schema.text),
    ))
}

/// True when the value has a structure to unfold.
pub fn has_tree(opened: &Opened) -> bool {
    match &opened.body.document {
        Document::Tagged(tagged) => tagged.value.is_container(),
        document => document.is_container(),
    }
}

/// Draws the value as a tree.
pub fn tree_ui(ui: &mut egui::Ui, opened: &Opened, tree: &mut JsonTree, version: u64) {
    tree.show(ui, "Payload", &opened.body.document, version);
}

/// The text to edit.
pub fn text(opened: &Opened) -> String {
    edit::to_text(&opened.body)
}

/// The whole payload as a person reads it: indented where it has a structure.
pub fn readable(opened: &Opened) -> String {
    if has_tree(opened) {
        opened.body.document.to_pretty()
    } else {
        edit::to_text(&opened.body)
    }
}

/// Why the body cannot be edited as text.
pub fn not_editable(opened: &Opened) -> Option<String> {
    edit::can_edit(&opened.body)
        .err()
        .map(|why| crate::words::sentence(&why))
}

/// True when the body's bytes are its text, without layers around it.
pub fn is_plain(opened: &Opened) -> bool {
    let body = &opened.body;
    body.layers.is_empty()
        && matches!(
            body.format,
            Step::Json | Step::JsonLines | Step::Xml | Step::Text
        )
}

/// The bytes of an edited text, through the same layers. Takes time on large bodies: never call it in a frame.
///
/// # Errors
/// A sentence about what is wrong with the text.
pub fn encode(opened: &Opened, text: &str) -> Result<Encoded, String> {
    let edited = edit::encode_text(&opened.body, text)
        .map_err(|error| crate::words::sentence(&error.to_string()))?;
    Ok(Encoded {
        meaning: meaning(opened, &edited.bytes),
        bytes: edited.bytes.into(),
        remarks: edited.remarks,
    })
}

/// What changed in the value, place by place.
fn meaning(opened: &Opened, bytes: &[u8]) -> Vec<String> {
    if !has_tree(opened) {
        return Vec::new();
    }
    let settings = Settings {
        recipe: Some(opened.body.recipe()),
        ..Settings::default()
    };
    let known = Known(opened.body.schema.clone());
    let after = dlo_payload::decode(&Input::value(bytes), &settings, &known);
    if !after.is_decoded() {
        return Vec::new();
    }
    let changes = diff::documents(&opened.body.document, &after.document);
    changes.iter().map(ToString::to_string).collect()
}

/// The schema the body was decoded with, and no other.
struct Known(Option<Arc<Schema>>);

impl SchemaSource for Known {
    fn find(&self, key: &SchemaKey) -> Lookup {
        match &self.0 {
            Some(schema) if schema.key == *key => Lookup::Found(schema.clone()),
            _ => Lookup::NoRegistry,
        }
    }
}

impl Node for Document {
    fn children(&self) -> Option<usize> {
        match self {
            Self::List(items) => Some(items.len()),
            Self::Map(entries) => Some(entries.len()),
            Self::Pairs(entries) => Some(entries.len()),
            Self::Tagged(tagged) => tagged.value.children(),
            _ => None,
        }
    }

    fn child(&self, index: usize) -> Option<(String, String, &Self)> {
        match self {
            Self::List(items) => items
                .get(index)
                .map(|item| (index.to_string(), index.to_string(), item)),
            Self::Map(entries) => entries
                .get(index)
                .map(|(key, value)| (key.clone(), escape(key), value)),
            Self::Pairs(entries) => entries.get(index).map(|(key, value)| {
                let text = key.as_text().map_or_else(|| key.preview(60), str::to_owned);
                let step = escape(&text);
                (text, step, value)
            }),
            Self::Tagged(tagged) => tagged.value.child(index),
            _ => None,
        }
    }

    fn text(&self, limit: usize) -> String {
        match self {
            Self::List(items) => counted(items.len(), "item", '[', ']'),
            Self::Map(entries) => counted(entries.len(), "field", '{', '}'),
            Self::Pairs(entries) => format!(
                "{} keys repeat or are not text",
                counted(entries.len(), "field", '{', '}')
            ),
            Self::Bytes(bytes) => format!(
                "{} ({})",
                cut(&crate::values::hex(bytes), limit),
                crate::words::size(bytes.len() as u64)
            ),
            Self::Time(time) => format!("{}  ({})", time.text, time.raw),
            Self::Tagged(tagged) => format!("{} {}", tagged.tag, Node::text(&tagged.value, limit)),
            other => cut(&other.preview(limit), limit),
        }
    }

    fn whole(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.to_pretty(),
        }
    }

    fn hue(&self) -> Hue {
        match self {
            Self::Null | Self::Bool(_) => Hue::Word,
            Self::Number(_) | Self::Float(_) | Self::Decimal(_) => Hue::Number,
            Self::Text(_) | Self::Utf16(_) => Hue::Quoted,
            Self::Bytes(_) | Self::Time(_) => Hue::Special,
            Self::List(_) | Self::Map(_) | Self::Pairs(_) => Hue::Container,
            Self::Tagged(tagged) => tagged.value.hue(),
        }
    }
}
