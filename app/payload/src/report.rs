//! What a decoding answers: the layers it took off, the document inside, and the decode report.
//!
//! Nothing is refused silently: every attempt that was given up leaves a [`Note`] with its reason.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::document::Document;
use crate::recipe::{Recipe, Step};
use crate::schemas::{Schema, SchemaKey};

/// Why a decoder gave up, as half a sentence that follows "gzip refused: ".
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    text: String,
    limit: bool,
}

impl Refusal {
    /// A refusal because the bytes are not what the decoder reads.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            limit: false,
        }
    }

    /// A refusal because a limit was reached: the bytes may well be right.
    pub fn limit(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            limit: true,
        }
    }

    /// Whether a limit was the reason.
    pub fn is_limit(&self) -> bool {
        self.limit
    }
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// A fact worth knowing.
    Info,
    /// Something tried and given up.
    Refused,
    /// Something the person should know before trusting or editing the value.
    Warning,
}

/// One line of the decode report.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Note {
    pub weight: Weight,
    pub text: String,
}

impl Note {
    pub fn info(text: impl Into<String>) -> Self {
        Self {
            weight: Weight::Info,
            text: text.into(),
        }
    }

    pub fn refused(text: impl Into<String>) -> Self {
        Self {
            weight: Weight::Refused,
            text: text.into(),
        }
    }

    pub fn warning(text: impl Into<String>) -> Self {
        Self {
            weight: Weight::Warning,
            text: text.into(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// One layer that was taken off, as a chip shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub step: Step,
    /// What the chip's tooltip says, for example "id 12" or "1204 bytes in 340".
    pub detail: String,
    /// The bytes as they were with this layer still on.
    pub outside: Bytes,
    /// What stood before the inner bytes (magic, schema id, message indexes, byte order mark): put
    /// back as it is when the payload is encoded again.
    pub frame: Bytes,
}

/// A payload, decoded as far as it could be.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The layers that were taken off, outermost first.
    pub layers: Vec<Layer>,
    /// How the innermost bytes were read.
    pub format: Step,
    /// The innermost bytes: those of the format itself.
    pub inner: Bytes,
    pub document: Document,
    /// The schema that decoded it, or to which it says it belongs.
    pub schema: Option<Arc<Schema>>,
    /// The full name of the Protobuf message, where there is a schema.
    pub message_type: Option<String>,
    /// The schemas it would need and that are not loaded: fetch them and decode again.
    pub needs: Vec<SchemaKey>,
    pub notes: Vec<Note>,
    pub cloud_event: Option<CloudEvent>,
}

/// The attributes of a CloudEvent, in either mode.
/// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md>
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct CloudEvent {
    /// `binary` (attributes in headers) or `structured` (attributes around the data).
    pub mode: &'static str,
    pub id: String,
    #[serde(rename = "type")]
    pub event_type: String,
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_schema: Option<String>,
}

impl Decoded {
    /// The bytes as they are, with a warning.
    pub(crate) fn as_bytes(input: &crate::Input<'_>, warning: &str) -> Self {
        let inner = Bytes::copy_from_slice(input.bytes.unwrap_or_default());
        Self {
            layers: Vec::new(),
            format: Step::Hex,
            document: Document::Bytes(inner.to_vec()),
            inner,
            schema: None,
            message_type: None,
            needs: Vec::new(),
            notes: vec![Note::warning(warning)],
            cloud_event: None,
        }
    }

    /// The names of the layers and of the format, outermost first, for example `["confluent",
    /// "avro"]`.
    pub fn chips(&self) -> Vec<String> {
        self.recipe().0.iter().map(Step::to_string).collect()
    }

    /// The same as an override that decodes the next message alike.
    pub fn recipe(&self) -> Recipe {
        let mut steps: Vec<Step> = self.layers.iter().map(|layer| layer.step.clone()).collect();
        steps.push(self.format.clone());
        Recipe(steps)
    }

    /// Whether a person would call it decoded: it is neither raw bytes nor waiting for a schema.
    pub fn is_decoded(&self) -> bool {
        self.format != Step::Hex && self.needs.is_empty()
    }

    /// Everything the report says, one line each.
    pub fn report(&self) -> Vec<String> {
        self.notes.iter().map(Note::to_string).collect()
    }

    /// The `decoded` object of `look --decode --json` (design §11).
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "layers": self.chips(),
            "schema": self.schema.as_ref().map(|schema| schema.to_json(self.message_type.as_deref())),
            "value": self.document.to_json(),
            "notes": self.report(),
        });
        if !self.needs.is_empty() {
            object["needs"] = self
                .needs
                .iter()
                .map(|key| Value::String(key.to_string()))
                .collect();
        }
        if let Some(event) = &self.cloud_event {
            object["cloud_event"] = json!(event);
        }
        object
    }
}
