//! Editing: an edited document goes back through the same layers, with the same schema id.
//!
//! What nobody edited keeps its bytes where the format allows it. What cannot be kept byte for byte
//! is said in [`Edited::remarks`] before anything is saved.

mod reconcile;

use bytes::Bytes;

use crate::diff;
use crate::document::Document;
use crate::formats::{avro, cbor, hex, json, msgpack, protobuf, xml};
use crate::layers;
use crate::limits::{Budget, Limits};
use crate::recipe::{Kind, Step};
use crate::report::{Decoded, Layer, Refusal};
use crate::schemas::Parsed;

/// A payload that was encoded again.
#[derive(Clone, Debug, PartialEq)]
pub struct Edited {
    pub bytes: Vec<u8>,
    /// What is not the same byte for byte although nobody edited it, and other things to know
    /// before saving. Empty when only the edit differs.
    pub remarks: Vec<String>,
}

/// Why an edit cannot be encoded, with the place where there is one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EditError {
    #[error("{format}: {reason}")]
    Format { format: Step, reason: String },
    #[error("{layer}: {reason}")]
    Layer { layer: Step, reason: String },
}

/// Encodes an edited document through the layers of the payload it was decoded from.
pub fn encode(decoded: &Decoded, new: &Document) -> Result<Edited, EditError> {
    let new = reconcile::times(&decoded.document, new).map_err(|reason| EditError::Format {
        format: decoded.format.clone(),
        reason,
    })?;
    if new == decoded.document {
        return Ok(Edited {
            bytes: original(decoded).to_vec(),
            remarks: Vec::new(),
        });
    }
    let inner = inner(decoded, &new).map_err(|refusal| EditError::Format {
        format: decoded.format.clone(),
        reason: refusal.to_string(),
    })?;
    let mut remarks = read_back(decoded, &inner, &new);
    let bytes = wrap(decoded, inner, &mut remarks)?;
    Ok(Edited { bytes, remarks })
}

/// Encodes text as a person typed it into the editor: [`to_text`] gives what to begin with. For JSON,
/// XML and plain text the text is the payload; for other formats it is read as a document.
pub fn encode_text(decoded: &Decoded, text: &str) -> Result<Edited, EditError> {
    let wrong = |refusal: Refusal| EditError::Format {
        format: decoded.format.clone(),
        reason: refusal.to_string(),
    };
    let mut budget = Budget::new(&Limits::default());
    match decoded.format {
        Step::Json => drop(json::decode(text, &mut budget).map_err(wrong)?),
        Step::JsonLines => drop(
            json::decode_lines(text, &mut budget)
                .or_else(|_| json::decode(text, &mut budget))
                .map_err(wrong)?,
        ),
        Step::Xml => xml::check(text, &mut budget).map_err(wrong)?,
        Step::Text | Step::Empty | Step::Null => {}
        Step::Hex => {
            return encode(
                decoded,
                &Document::Bytes(hex::parse(text).map_err(|reason| wrong(Refusal::new(reason)))?),
            );
        }
        _ => {
            let json = json::decode(text, &mut budget).map_err(wrong)?;
            return encode(decoded, &Document::from_json(&json.to_json()));
        }
    }
    let mut remarks = Vec::new();
    let bytes = if text.as_bytes() == &decoded.inner[..] {
        original(decoded).to_vec()
    } else {
        wrap(decoded, text.as_bytes().to_vec(), &mut remarks)?
    };
    Ok(Edited { bytes, remarks })
}

/// The text to edit: the payload's own text, or the document as JSON, or hexadecimal bytes.
pub fn to_text(decoded: &Decoded) -> String {
    match decoded.format {
        Step::Json | Step::JsonLines | Step::Xml | Step::Text | Step::Empty | Step::Null => {
            String::from_utf8_lossy(&decoded.inner).into_owned()
        }
        Step::Hex => hex::spaced(&decoded.inner),
        _ => decoded.document.to_pretty(),
    }
}

/// Whether the payload can be edited as a document at all; the error says why not.
pub fn can_edit(decoded: &Decoded) -> Result<(), String> {
    match decoded.format {
        Step::AvroFile => Err("an Avro container file can be shown but not written; edit its bytes or send it unchanged".into()),
        Step::JavaSerialized => Err("a Java object is never read or written here; edit its bytes or send it unchanged".into()),
        _ => Ok(()),
    }
}

/// The bytes before any layer was taken off.
pub fn original(decoded: &Decoded) -> &Bytes {
    decoded
        .layers
        .first()
        .map_or(&decoded.inner, |layer| &layer.outside)
}

/// Writes the document in its format, over the bytes it was read from.
fn inner(decoded: &Decoded, new: &Document) -> Result<Vec<u8>, Refusal> {
    can_edit(decoded).map_err(Refusal::new)?;
    let (bytes, old) = (&decoded.inner, &decoded.document);
    let text = || std::str::from_utf8(bytes).map_err(|_| Refusal::new("the payload is not UTF-8"));
    let must_be = |what: &str| Refusal::new(format!("expected {what}, found {}", new.kind()));
    match (&decoded.format, new) {
        (Step::Json, _) => json::encode(text()?, old, new).map(String::into_bytes),
        (Step::JsonLines, _) => json::encode_lines(text()?, old, new).map(String::into_bytes),
        (Step::MessagePack, _) => msgpack::encode(bytes, old, new),
        (Step::Cbor, _) => cbor::encode(bytes, old, new),
        (Step::Avro, _) => avro_schema(decoded)?.encode(bytes, old, new),
        (Step::Protobuf, _) => protobuf::encode(message(decoded)?.as_ref(), bytes, old, new),
        (Step::Xml, Document::Text(text)) => xml::check(text, &mut Budget::new(&Limits::default()))
            .map(|()| text.clone().into_bytes()),
        (Step::Text | Step::Empty | Step::Null, Document::Text(text)) => {
            Ok(text.clone().into_bytes())
        }
        (Step::Hex | Step::Empty | Step::Null, Document::Bytes(bytes)) => Ok(bytes.clone()),
        (Step::Int32, Document::Number(number)) => {
            let value = number.as_i64().and_then(|value| i32::try_from(value).ok());
            value
                .map(|value| value.to_be_bytes().to_vec())
                .ok_or_else(|| must_be("a number of 32 bits"))
        }
        (Step::Int64, Document::Number(number)) => number
            .as_i64()
            .map(|value| value.to_be_bytes().to_vec())
            .ok_or_else(|| must_be("a number of 64 bits")),
        (Step::Int32 | Step::Int64, _) => Err(must_be("a number")),
        (Step::Hex, _) => Err(must_be("bytes")),
        _ => Err(must_be("text")),
    }
}

fn avro_schema(decoded: &Decoded) -> Result<&avro::AvroSchema, Refusal> {
    match decoded.schema.as_ref().map(|schema| schema.parsed()) {
        Some(Ok(Parsed::Avro(schema))) => Ok(schema),
        _ => Err(Refusal::new("its schema is not there any more")),
    }
}

fn message(decoded: &Decoded) -> Result<Option<prost_reflect::MessageDescriptor>, Refusal> {
    let Some(name) = &decoded.message_type else {
        return Ok(None);
    };
    match decoded.schema.as_ref().map(|schema| schema.parsed()) {
        Some(Ok(Parsed::Protobuf(schema))) => schema.message(Some(name)).map(Some),
        _ => Err(Refusal::new("its schema is not there any more")),
    }
}

/// Puts the layers back on, innermost first.
fn wrap(
    decoded: &Decoded,
    inner: Vec<u8>,
    remarks: &mut Vec<String>,
) -> Result<Vec<u8>, EditError> {
    let mut bytes = inner;
    let mut before = decoded.inner.clone();
    for layer in decoded.layers.iter().rev() {
        let wrong = |refusal: Refusal| EditError::Layer {
            layer: layer.step.clone(),
            reason: refusal.to_string(),
        };
        if !same_again(layer, &before) {
            remarks.push(spelled_anew(&layer.step));
        }
        bytes = put_on(layer, &bytes).map_err(wrong)?;
        before = layer.outside.clone();
    }
    Ok(bytes)
}

fn put_on(layer: &Layer, inner: &[u8]) -> Result<Vec<u8>, Refusal> {
    let body = match (&layer.step, layer.step.kind()) {
        (Step::JsonString, _) => {
            let text = std::str::from_utf8(inner).map_err(|_| Refusal::new("it is not UTF-8"))?;
            serde_json::Value::String(text.to_owned())
                .to_string()
                .into_bytes()
        }
        (Step::Charset("utf-8"), _) | (_, Kind::Framing) => inner.to_vec(),
        (step, _) => layers::pack(step, inner)?,
    };
    Ok([&layer.frame[..], &body[..]].concat())
}

/// Whether the layer, put back on the bytes it was taken from, gives what was there.
fn same_again(layer: &Layer, inner: &[u8]) -> bool {
    put_on(layer, inner).is_ok_and(|again| again == layer.outside)
}

fn spelled_anew(step: &Step) -> String {
    match step {
        Step::Base64 | Step::Base64Url => {
            format!("{step} is written in its usual form; line breaks and padding may differ")
        }
        Step::JsonString => "the JSON string is written with the usual escapes".into(),
        _ => format!(
            "{step} is packed anew; its bytes differ from those of the producer, what is inside does not"
        ),
    }
}

/// Reads the encoded bytes again: what they say must be what was meant.
fn read_back(decoded: &Decoded, inner: &[u8], new: &Document) -> Vec<String> {
    match read(decoded, inner) {
        Err(refusal) => vec![format!("it does not read back: {refusal}")],
        Ok(again) if again == *new => Vec::new(),
        Ok(again) => {
            let changes = diff::documents(new, &again);
            let changes = changes.iter().filter(|change| !change.is_spelling());
            changes
                .take(20)
                .map(|change| format!("it will read back differently at {change}"))
                .collect()
        }
    }
}

fn read(decoded: &Decoded, inner: &[u8]) -> Result<Document, Refusal> {
    let mut budget = Budget::new(&Limits::default());
    match &decoded.format {
        Step::Json => json::decode(&String::from_utf8_lossy(inner), &mut budget),
        Step::JsonLines => json::decode_lines(&String::from_utf8_lossy(inner), &mut budget),
        Step::MessagePack => msgpack::decode(inner, &mut budget),
        Step::Cbor => cbor::decode(inner, &mut budget),
        Step::Avro => avro_schema(decoded)?.decode(inner, &mut budget),
        Step::Protobuf => match message(decoded)? {
            Some(message) => {
                protobuf::decode(&message, inner, &mut budget).map(|message| message.document)
            }
            None => protobuf::decode_wire(inner, &mut budget),
        },
        Step::Int32 | Step::Int64 => Ok(Document::int(inner.iter().fold(
            if inner.first().is_some_and(|byte| byte & 0x80 != 0) {
                -1
            } else {
                0
            },
            |value, byte| value << 8 | i64::from(*byte),
        ))),
        Step::Hex => Ok(Document::Bytes(inner.to_vec())),
        _ => Ok(Document::text(String::from_utf8_lossy(inner))),
    }
}

#[cfg(test)]
mod tests;
