//! Layers and format chosen by a person, and each format by its name.

use bytes::Bytes;

use crate::document::Document;
use crate::formats::{self, avro, cbor, json, msgpack, protobuf};
use crate::framing;
use crate::recipe::{Kind, Recipe, Step};
use crate::report::{Layer, Note, Refusal};

use super::{Detector, Found, Strength, text};

impl Detector<'_> {
    /// Takes off the layers a person chose. One that is not there ends the choice with a warning,
    /// and the rest is detected.
    pub(super) fn forced(&mut self, bytes: &Bytes, recipe: &Recipe) -> Found {
        let (layers, format) = recipe.parts();
        self.forced_layers(bytes, layers, format, 0)
    }

    fn forced_layers(
        &mut self,
        bytes: &Bytes,
        layers: &[Step],
        format: Option<&Step>,
        depth: usize,
    ) -> Found {
        let Some((step, rest)) = layers.split_first() else {
            return self.forced_format(bytes, format, depth);
        };
        let result = if step.kind() == Kind::Framing {
            self.forced_frame(bytes, step, rest, format, depth)
        } else {
            self.peel(step, bytes).map(|(layer, inner)| {
                self.forced_layers(&inner, rest, format, depth + 1)
                    .inside(layer)
            })
        };
        result.unwrap_or_else(|refusal| {
            self.notes.push(Note::warning(format!(
                "{step} was chosen, but {refusal}; what is left was detected"
            )));
            self.look(bytes, depth)
        })
    }

    fn forced_frame(
        &mut self,
        bytes: &Bytes,
        step: &Step,
        rest: &[Step],
        format: Option<&Step>,
        depth: usize,
    ) -> Result<Found, Refusal> {
        let mut frames = framing::in_headers(self.input, self.hints.content_type.as_deref());
        frames.extend(framing::in_bytes(bytes, self.settings.prefix_ids));
        let frame = frames
            .into_iter()
            .find(|frame| frame.step == *step)
            .ok_or_else(|| Refusal::new("there is no such prefix or header"))?;
        let by_schema = matches!(format, None | Some(Step::Avro | Step::Protobuf));
        if by_schema && rest.iter().all(|step| *step == Step::Zlib) {
            return self
                .in_frame(bytes, &frame)
                .ok_or_else(|| Refusal::new("the payload does not decode"));
        }
        let layer = Layer {
            step: step.clone(),
            detail: frame.key.to_string(),
            outside: bytes.clone(),
            frame: bytes.slice(..frame.length),
        };
        let found = self.forced_layers(&bytes.slice(frame.length..), rest, format, depth + 1);
        Ok(found.inside(layer))
    }

    fn forced_format(&mut self, bytes: &Bytes, format: Option<&Step>, depth: usize) -> Found {
        let Some(format) = format else {
            return self.look(bytes, depth);
        };
        match self.read_as(format, bytes) {
            Ok(found) => found.with_strength(Strength::Confirmed),
            Err(refusal) => {
                self.notes.push(Note::warning(format!(
                    "{format} was chosen, but {refusal}; what is left was detected"
                )));
                self.look(bytes, depth)
            }
        }
    }

    /// Reads bytes as one format, to the end.
    pub(super) fn read_as(&mut self, format: &Step, bytes: &Bytes) -> Result<Found, Refusal> {
        if matches!(format, Step::Avro | Step::Protobuf)
            && let Some(key) = self.settings.bound.clone()
            && let Some(schema) = self.schema(&key)
        {
            return self.with_schema(&schema, bytes, None);
        }
        let document = self.budget.retry(|budget| match format {
            Step::Json => json::decode(text(bytes)?, budget),
            Step::JsonLines => json::decode_lines(text(bytes)?, budget),
            Step::Xml => formats::xml::check(text(bytes)?, budget)
                .and_then(|()| Ok(Document::text(text(bytes)?))),
            Step::Text => Ok(Document::text(text(bytes)?)),
            Step::MessagePack => msgpack::decode(bytes, budget),
            Step::Cbor => cbor::decode(bytes, budget),
            Step::Protobuf => protobuf::decode_wire(bytes, budget),
            Step::AvroFile => avro::decode_file(bytes, budget),
            Step::Avro => Err(Refusal::new(
                "Avro needs a schema: bind one to this destination, or set up the registry",
            )),
            Step::Int32 => {
                exact(bytes).map(|value| Document::int(i64::from(i32::from_be_bytes(value))))
            }
            Step::Int64 => exact(bytes).map(|value| Document::int(i64::from_be_bytes(value))),
            Step::JavaSerialized => formats::java::name(bytes)
                .map(Document::text)
                .ok_or_else(|| Refusal::new("it is no serialised Java object")),
            _ => Ok(Document::Bytes(bytes.to_vec())),
        })?;
        let strength = match format {
            Step::AvroFile => Strength::Confirmed,
            Step::Json | Step::JsonLines if document.is_container() => Strength::Structured,
            Step::Xml => Strength::Structured,
            Step::Json | Step::Text => Strength::Text,
            _ => Strength::Guess,
        };
        Ok(Found::new(format.clone(), bytes, document, strength))
    }
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Refusal> {
    bytes
        .try_into()
        .map_err(|_| Refusal::new(format!("it has {} bytes, not {N}", bytes.len())))
}
