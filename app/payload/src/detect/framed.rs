//! Payloads that name their schema: believed when the schema is there and decodes to the end.

use std::sync::Arc;

use bytes::Bytes;

use crate::document::Document;
use crate::formats::{json, protobuf};
use crate::framing::{self, Frame};
use crate::recipe::Step;
use crate::report::{Layer, Note, Refusal};
use crate::schemas::{Parsed, Schema, SchemaKey};

use super::{Detector, Found, Strength, text};

/// Ids are given out one by one, so a first id above this is rather some other number.
const PLAUSIBLE_ID: u32 = 1 << 24;

impl Detector<'_> {
    /// Reads a payload whose headers or first bytes name a schema. Below `Structured` it is a guess
    /// that others may beat.
    pub(super) fn framed(&mut self, bytes: &Bytes, depth: usize) -> Option<Found> {
        let mut frames = Vec::new();
        if depth == 0 {
            frames = framing::in_headers(self.input, self.hints.content_type.as_deref());
        }
        frames.extend(framing::in_bytes(bytes, self.settings.prefix_ids));
        let mut fallback = None;
        for frame in frames {
            match self.in_frame(bytes, &frame) {
                Some(found) if found.strength >= Strength::Structured => return Some(found),
                Some(found) if fallback.is_none() => fallback = Some(found),
                _ => {}
            }
        }
        fallback
    }

    /// Reads a payload inside one frame.
    pub(super) fn in_frame(&mut self, bytes: &Bytes, frame: &Frame) -> Option<Found> {
        if is_some_other_number(frame) {
            return None;
        }
        let payload = bytes.slice(frame.length..);
        let layer = |length: usize| Layer {
            step: frame.step.clone(),
            detail: frame.key.to_string(),
            outside: bytes.clone(),
            frame: bytes.slice(..length),
        };
        let (outer, payload) = if frame.zlib {
            match self.peel(&Step::Zlib, &payload) {
                Ok((zlib, inner)) => (Some(zlib), inner),
                Err(refusal) => {
                    self.refused(&frame.step, &refusal);
                    return None;
                }
            }
        } else {
            (None, payload)
        };
        let found = match self.schema(&frame.key) {
            Some(schema) => self.with_frame_schema(&schema, &payload, frame),
            None => self.without_schema(&payload, frame),
        }?;
        // Message indexes belong to the frame; they lie before the bytes the format was read from.
        let indexes = payload.len() - found.inner.len();
        Some(match outer {
            Some(zlib) if indexes == 0 => found.inside(zlib).inside(layer(frame.length)),
            Some(zlib) => found
                .inside(Layer {
                    step: frame.step.clone(),
                    detail: "message indexes".into(),
                    outside: payload.clone(),
                    frame: payload.slice(..indexes),
                })
                .inside(zlib)
                .inside(layer(frame.length)),
            None => found.inside(layer(frame.length + indexes)),
        })
    }

    fn with_frame_schema(
        &mut self,
        schema: &Arc<Schema>,
        payload: &Bytes,
        frame: &Frame,
    ) -> Option<Found> {
        match self.with_schema(schema, payload, Some(frame)) {
            Ok(found) => Some(found),
            Err(refusal) => {
                self.notes.push(Note::warning(format!(
                    "{} does not decode it: {refusal}",
                    schema.label()
                )));
                let mut found = self.without_schema(payload, frame)?;
                found.schema = Some(Arc::clone(schema));
                Some(found)
            }
        }
    }

    /// Reads a payload with a schema, to its end.
    pub(super) fn with_schema(
        &mut self,
        schema: &Arc<Schema>,
        payload: &Bytes,
        frame: Option<&Frame>,
    ) -> Result<Found, Refusal> {
        let parsed = schema.parsed().map_err(Refusal::new)?;
        let mut found = match parsed {
            Parsed::Avro(avro) => {
                let document = self.budget.retry(|budget| avro.decode(payload, budget))?;
                Found::new(Step::Avro, payload, document, Strength::Confirmed)
            }
            Parsed::Json(_) => {
                let document = self
                    .budget
                    .retry(|budget| json::decode(text(payload)?, budget))?;
                Found::new(Step::Json, payload, document, Strength::Confirmed)
            }
            Parsed::Protobuf(proto) => self.with_proto(proto, payload, frame)?,
        };
        found.schema = Some(Arc::clone(schema));
        Ok(found)
    }

    fn with_proto(
        &mut self,
        proto: &protobuf::ProtoSchema,
        payload: &Bytes,
        frame: Option<&Frame>,
    ) -> Result<Found, Refusal> {
        let (message, length) = match frame {
            Some(frame) => proto.message_in_frame(payload, frame)?,
            None => (proto.message(self.settings.message_type.as_deref())?, 0),
        };
        let inner = payload.slice(length..);
        let decoded = self
            .budget
            .retry(|budget| protobuf::decode(&message, &inner, budget))?;
        if frame.is_none() && decoded.unknown * 2 > decoded.known {
            return Err(Refusal::new(format!(
                "{} knows {} of its fields and {} not",
                message.full_name(),
                decoded.known,
                decoded.unknown
            )));
        }
        let mut found = Found::new(
            Step::Protobuf,
            &inner,
            decoded.document,
            Strength::Confirmed,
        );
        found.message_type = Some(message.full_name().to_owned());
        if decoded.unknown > 0 {
            self.notes.push(Note::warning(format!(
                "{} fields are not in {}; they are shown by number",
                decoded.unknown,
                message.full_name()
            )));
        }
        Ok(found)
    }

    /// What a framed payload may be while its schema is missing: JSON says so itself, Protobuf can
    /// show its wire tree, Avro is bytes.
    fn without_schema(&mut self, payload: &Bytes, frame: &Frame) -> Option<Found> {
        if payload.is_empty() && !frame.certain {
            return None;
        }
        if std::str::from_utf8(payload).is_ok_and(json::could_be)
            && let Ok(found) = self.read_as(&Step::Json, payload)
            && (found.document.is_container() || frame.certain)
        {
            return Some(found.with_strength(Strength::Structured));
        }
        if let Some(found) = self.framed_wire(payload, frame) {
            return Some(found);
        }
        let found = Found::new(
            Step::Hex,
            payload,
            Document::Bytes(payload.to_vec()),
            Strength::Guess,
        );
        Some(if frame.certain {
            found.with_strength(Strength::Structured)
        } else {
            found
        })
    }

    fn framed_wire(&mut self, payload: &Bytes, frame: &Frame) -> Option<Found> {
        if !matches!(frame.step, Step::Confluent | Step::ConfluentGuid) {
            return None;
        }
        let length = if frame.indexes.is_some() {
            0
        } else {
            framing::message_indexes(payload).ok()?.1
        };
        let inner = payload.slice(length..);
        if !protobuf::looks_like_wire(&inner) {
            return None;
        }
        let found = self.read_as(&Step::Protobuf, &inner).ok()?;
        Some(found.with_strength(if frame.certain {
            Strength::Structured
        } else {
            Strength::Guess
        }))
    }
}

/// Whether an id is too large to be one, so that nobody need be asked about it.
fn is_some_other_number(frame: &Frame) -> bool {
    match frame.key {
        SchemaKey::Confluent(id) => id > PLAUSIBLE_ID && !frame.certain,
        _ => false,
    }
}
