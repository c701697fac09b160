//! Payloads without a mark: MessagePack, CBOR, bare compressions, Protobuf without a schema,
//! integers of exact length.

use bytes::Bytes;

use crate::document::Document;
use crate::formats::{self, protobuf};
use crate::recipe::Step;
use crate::report::Note;

use super::{Detector, Found, Strength};

impl Detector<'_> {
    pub(super) fn binary(&mut self, bytes: &Bytes, depth: usize) -> Option<Found> {
        self.self_describing(bytes)
            .or_else(|| self.bare_compression(bytes, depth))
            .or_else(|| self.wire_tree(bytes))
    }

    /// Exactly four or eight bytes that are a small number: what LongSerializer and its kin write.
    pub(super) fn integer(&mut self, bytes: &Bytes) -> Option<Found> {
        let small = matches!(bytes[..], [0, 0, ..] | [0xff, 0xff, ..])
            || (bytes.len() == 8 && bytes[0] == 0);
        let (step, value) = match bytes.len() {
            _ if !small => return None,
            4 => (
                Step::Int32,
                i64::from(i32::from_be_bytes(bytes[..].try_into().ok()?)),
            ),
            8 => (Step::Int64, i64::from_be_bytes(bytes[..].try_into().ok()?)),
            _ => return None,
        };
        self.notes.push(Note::info(format!(
            "{} bytes that are a small big-endian number",
            bytes.len()
        )));
        Some(Found::new(
            step,
            bytes,
            Document::int(value),
            Strength::Guess,
        ))
    }

    /// MessagePack and CBOR: both are tried to the end; an object with text keys is more than
    /// chance, a list of a few numbers is not.
    fn self_describing(&mut self, bytes: &Bytes) -> Option<Found> {
        let mut best: Option<Found> = None;
        for step in [Step::MessagePack, Step::Cbor] {
            let found = match self.read_as(&step, bytes) {
                Ok(found) => found,
                Err(refusal) => {
                    self.refused(&step, &refusal);
                    continue;
                }
            };
            let Some(strength) = plausible(&found.document, bytes.len()) else {
                if found.document.is_container() {
                    self.notes.push(Note::refused(format!(
                        "it could be {step}, but so could any {} bytes; choose {step} to see it",
                        bytes.len()
                    )));
                }
                continue;
            };
            if best.as_ref().is_none_or(|best| strength > best.strength) {
                best = Some(found.with_strength(strength));
            }
        }
        best
    }

    /// Compressions without magic bytes are believed only around something structured.
    fn bare_compression(&mut self, bytes: &Bytes, depth: usize) -> Option<Found> {
        if depth >= self.settings.limits.layers || bytes.len() < 8 {
            return None;
        }
        for step in [Step::Snappy, Step::Deflate, Step::Brotli] {
            let Ok((layer, inner)) = self.peel(&step, bytes) else {
                continue;
            };
            if inner.is_empty() {
                continue;
            }
            let notes = self.notes.len();
            let found = self.look(&inner, depth + 1);
            if found.strength >= Strength::Structured {
                return Some(found.inside(layer));
            }
            self.notes.truncate(notes);
        }
        None
    }

    /// Protobuf without a schema: the wire tree, if the fields look like those of a real message.
    fn wire_tree(&mut self, bytes: &Bytes) -> Option<Found> {
        if !protobuf::looks_like_wire(bytes) {
            return None;
        }
        let found = self.attempt(&Step::Protobuf, bytes)?;
        Some(found.with_strength(Strength::Guess))
    }
}

/// How sure a document of a format without a mark is, or `None` if it may well be chance.
fn plausible(document: &Document, length: usize) -> Option<Strength> {
    match document {
        Document::Map(entries) if !entries.is_empty() => {
            let readable = entries
                .iter()
                .all(|(key, _)| !key.is_empty() && formats::text::is_printable(key));
            match (readable, length) {
                (true, 12..) => Some(Strength::Structured),
                (true, _) => Some(Strength::Guess),
                (false, _) => None,
            }
        }
        Document::List(items) if length >= 4 => {
            let telling = items.iter().any(|item| item.is_container() || matches!(item, Document::Text(text) if text.len() > 2 && formats::text::is_printable(text)));
            telling.then_some(Strength::Guess)
        }
        Document::Tagged(tagged) if tagged.tag == "55799" => Some(Strength::Confirmed),
        _ => None,
    }
}
