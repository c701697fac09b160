//! The detector: which layers a payload has, found by trying and believed only when confirmed.
//!
//! The order is that of certainty: headers that name the schema, magic bytes, prefixes, text, and
//! last the formats that have no mark at all. A guess without a mark is believed only if what is
//! inside is something structured, because plain text may well be valid base64.

mod binary;
mod forced;
mod framed;
mod hints;
#[cfg(test)]
mod tests;
mod textual;

use std::sync::Arc;

use bytes::Bytes;

use crate::document::Document;
use crate::formats;
use crate::input::{Input, Settings};
use crate::layers;
use crate::limits::Budget;
use crate::recipe::{Kind, Step};
use crate::report::{Decoded, Layer, Note, Refusal};
use crate::schemas::{Schema, SchemaKey, SchemaSource};

use hints::Hints;

/// How sure a reading is, the surest last.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Strength {
    /// Nothing fits: bytes.
    Raw,
    /// It could be, and nothing else fits better.
    Guess,
    /// Text, or a number or word of JSON.
    Text,
    /// Something with structure that is not there by chance.
    Structured,
    /// A schema or a checksum says so.
    Confirmed,
}

/// A reading of some bytes.
#[derive(Debug)]
pub(super) struct Found {
    pub layers: Vec<Layer>,
    pub format: Step,
    pub inner: Bytes,
    pub document: Document,
    pub schema: Option<Arc<Schema>>,
    pub message_type: Option<String>,
    pub strength: Strength,
}

impl Found {
    pub fn new(format: Step, inner: &Bytes, document: Document, strength: Strength) -> Self {
        Self {
            layers: Vec::new(),
            format,
            inner: inner.clone(),
            document,
            schema: None,
            message_type: None,
            strength,
        }
    }

    /// The same inside one more layer.
    pub fn inside(mut self, layer: Layer) -> Self {
        self.layers.insert(0, layer);
        self
    }

    pub fn with_strength(self, strength: Strength) -> Self {
        Self { strength, ..self }
    }
}

/// One decoding under way.
pub(super) struct Detector<'a> {
    pub input: &'a Input<'a>,
    pub settings: &'a Settings,
    pub schemas: &'a dyn SchemaSource,
    pub hints: Hints,
    pub budget: Budget,
    pub notes: Vec<Note>,
    pub needs: Vec<SchemaKey>,
}

/// Decodes one payload.
pub(crate) fn decode(
    input: &Input<'_>,
    settings: &Settings,
    schemas: &dyn SchemaSource,
) -> Decoded {
    let mut notes = Vec::new();
    let hints = hints::read(input, &mut notes);
    let mut detector = Detector {
        input,
        settings,
        schemas,
        hints,
        budget: Budget::new(&settings.limits),
        notes,
        needs: Vec::new(),
    };
    let found = match input.bytes {
        None => Found::new(
            Step::Null,
            &Bytes::new(),
            Document::Null,
            Strength::Confirmed,
        ),
        Some([]) => Found::new(
            Step::Empty,
            &Bytes::new(),
            Document::text(""),
            Strength::Confirmed,
        ),
        Some(bytes) => detector.start(&Bytes::copy_from_slice(bytes)),
    };
    detector.finish(found)
}

impl Detector<'_> {
    fn start(&mut self, bytes: &Bytes) -> Found {
        if let Some(recipe) = &self.settings.recipe {
            let recipe = recipe.clone();
            return self.forced(bytes, &recipe);
        }
        let encodings = std::mem::take(&mut self.hints.layers);
        self.encoded(bytes, &encodings, 0)
    }

    /// Takes off the layers that a content encoding names, as far as they are really there.
    fn encoded(&mut self, bytes: &Bytes, encodings: &[Step], depth: usize) -> Found {
        let Some((step, rest)) = encodings.split_first() else {
            return self.hinted(bytes, depth);
        };
        let step = if *step == Step::Zlib && layers::by_magic(bytes) != Some(Step::Zlib) {
            Step::Deflate
        } else {
            step.clone()
        };
        let step = if step == Step::Snappy && layers::by_magic(bytes) == Some(Step::SnappyFramed) {
            Step::SnappyFramed
        } else {
            step
        };
        match self.peel(&step, bytes) {
            Ok((layer, inner)) => self.encoded(&inner, rest, depth + 1).inside(layer),
            Err(refusal) => {
                self.notes.push(Note::warning(format!(
                    "the content encoding says {step}, but {refusal}"
                )));
                self.encoded(bytes, rest, depth)
            }
        }
    }

    /// Reads as the content type says, if that is a format which the bytes alone do not show.
    fn hinted(&mut self, bytes: &Bytes, depth: usize) -> Found {
        let Some(format) = self.hints.format.clone().filter(|format| {
            matches!(
                format,
                Step::MessagePack | Step::Cbor | Step::Protobuf | Step::JsonLines
            )
        }) else {
            return self.look(bytes, depth);
        };
        let named = self.framed(bytes, depth);
        match named {
            Some(found) if found.strength >= Strength::Structured => return found,
            _ => {}
        }
        match self.read_as(&format, bytes) {
            Ok(found) => found.with_strength(Strength::Structured),
            Err(refusal) => {
                self.notes.push(Note::warning(format!(
                    "the content type says {format}, but {refusal}"
                )));
                self.look(bytes, depth)
            }
        }
    }

    /// Reads bytes of which nothing is known.
    pub fn look(&mut self, bytes: &Bytes, depth: usize) -> Found {
        if bytes.is_empty() {
            return Found::new(Step::Empty, bytes, Document::text(""), Strength::Raw);
        }
        if depth > self.settings.limits.layers {
            self.notes.push(Note::warning(format!(
                "more than {} layers lie inside each other; the rest is shown as it is",
                self.settings.limits.layers
            )));
            return self.raw(bytes);
        }
        // The mark of UTF-32 begins with the zero byte of a frame, and is far more telling.
        if bytes.starts_with(&[0, 0, 0xfe, 0xff])
            && let Some(found) = self.textual(bytes, depth)
        {
            return found;
        }
        let framed = match self.framed(bytes, depth) {
            Some(found) if found.strength >= Strength::Structured => return found,
            weaker => weaker,
        };
        self.bound(bytes)
            .or_else(|| self.by_magic(bytes, depth))
            .or_else(|| self.integer(bytes))
            .or(framed)
            .or_else(|| self.textual(bytes, depth))
            .or_else(|| self.binary(bytes, depth))
            .or_else(|| self.text_at_last(bytes))
            .unwrap_or_else(|| self.raw(bytes))
    }

    /// Formats and compressions that begin with bytes of their own.
    fn by_magic(&mut self, bytes: &Bytes, depth: usize) -> Option<Found> {
        if let Some(name) = formats::java::name(bytes) {
            self.notes.push(Note::info(format!("a Java object is never deserialised, because that can run code; it begins with {name}")));
            let document = Document::Map(vec![
                ("java".into(), Document::text(name)),
                ("bytes".into(), Document::Bytes(bytes.to_vec())),
            ]);
            return Some(Found::new(
                Step::JavaSerialized,
                bytes,
                document,
                Strength::Confirmed,
            ));
        }
        if bytes.starts_with(b"Obj\x01") {
            return self.attempt(&Step::AvroFile, bytes);
        }
        let step = layers::by_magic(bytes)?;
        let (layer, inner) = match self.peel(&step, bytes) {
            Ok(peeled) => peeled,
            Err(refusal) => {
                self.refused(&step, &refusal);
                return None;
            }
        };
        let found = self.look(&inner, depth + 1);
        let strength = found.strength.max(Strength::Structured);
        Some(found.inside(layer).with_strength(strength))
    }

    /// The schema that a person bound to the destination.
    fn bound(&mut self, bytes: &Bytes) -> Option<Found> {
        let key = self.settings.bound.clone()?;
        let schema = self.schema(&key)?;
        match self.with_schema(&schema, bytes, None) {
            Ok(found) => Some(found),
            Err(refusal) => {
                self.notes.push(Note::refused(format!(
                    "{} ({}) refused: {refusal}",
                    schema.kind,
                    schema.label()
                )));
                None
            }
        }
    }

    /// Takes a transport layer off.
    pub fn peel(&mut self, step: &Step, bytes: &Bytes) -> Result<(Layer, Bytes), Refusal> {
        let frame = match step {
            Step::Charset(_) => layers::byte_order_mark(bytes).map_or(0, |mark| mark.length),
            _ => 0,
        };
        let inner = match step {
            Step::JsonString => formats::json::decode(text(bytes)?, &mut self.budget)?
                .as_text()
                .map(|text| text.as_bytes().to_vec())
                .ok_or_else(|| Refusal::new("it is no JSON string"))?,
            _ => layers::unpack(step, &bytes[frame..], &mut self.budget)?,
        };
        let layer = Layer {
            step: step.clone(),
            detail: format!("{} bytes in {}", inner.len(), bytes.len()),
            outside: bytes.clone(),
            frame: bytes.slice(..frame),
        };
        Ok((layer, Bytes::from(inner)))
    }

    /// Tries one format and notes the refusal.
    pub fn attempt(&mut self, format: &Step, bytes: &Bytes) -> Option<Found> {
        match self.read_as(format, bytes) {
            Ok(found) => Some(found),
            Err(refusal) => {
                self.refused(format, &refusal);
                None
            }
        }
    }

    pub fn refused(&mut self, step: &Step, refusal: &Refusal) {
        let text = format!("{step} refused: {refusal}");
        self.notes.push(if refusal.is_limit() {
            Note::warning(text)
        } else {
            Note::refused(text)
        });
    }

    /// Looks a schema up; what cannot be had is noted, and wanted if fetching may help.
    pub fn schema(&mut self, key: &SchemaKey) -> Option<Arc<Schema>> {
        use crate::schemas::Lookup;
        let note = match self.schemas.find(key) {
            Lookup::Found(schema) => return Some(schema),
            Lookup::NotAsked => {
                self.want(key);
                Note::info(format!("needs {key}"))
            }
            Lookup::Failed(reason) => {
                self.want(key);
                Note::warning(format!("needs {key}: {reason}"))
            }
            Lookup::Absent(reason) => Note::warning(format!("there is no {key}: {reason}")),
            Lookup::NoRegistry => Note::info(format!(
                "needs {key}, but no schema registry is set up for this profile"
            )),
        };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        None
    }

    fn want(&mut self, key: &SchemaKey) {
        if !self.needs.contains(key) {
            self.needs.push(key.clone());
        }
    }

    pub fn raw(&self, bytes: &Bytes) -> Found {
        Found::new(
            Step::Hex,
            bytes,
            Document::Bytes(bytes.to_vec()),
            Strength::Raw,
        )
    }

    fn finish(mut self, found: Found) -> Decoded {
        let structured = match found.format {
            Step::Json => hints::structured_cloud_event(&found.document),
            _ => None,
        };
        let cloud_event = self.hints.cloud_event.take().or(structured);
        if let Some(event) = &cloud_event {
            self.notes.push(Note::info(format!(
                "a CloudEvent in {} mode: {} from {}",
                event.mode, event.event_type, event.source
            )));
        }
        if found.strength == Strength::Guess
            && found.format.kind() == Kind::Format
            && found.format != Step::Hex
        {
            self.notes.push(Note::info(format!(
                "nothing says that this is {}: it was recognised by its bytes",
                found.format
            )));
        }
        // A schema that was wanted on a wrong track is of no use once the payload is understood.
        let framed = found
            .layers
            .iter()
            .any(|layer| layer.step.kind() == Kind::Framing);
        if found.strength == Strength::Confirmed
            || (found.strength == Strength::Structured && !framed)
        {
            self.needs.clear();
        }
        Decoded {
            layers: found.layers,
            format: found.format,
            inner: found.inner,
            document: found.document,
            schema: found.schema,
            message_type: found.message_type,
            needs: self.needs,
            notes: self.notes,
            cloud_event,
        }
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes)
        .map_err(|error| Refusal::new(format!("byte {} is not UTF-8", error.valid_up_to())))
}
