//! Payloads that are text: JSON, JSON Lines, XML, base64 around something, other charsets.

use bytes::Bytes;

use crate::document::Document;
use crate::formats::{self, json};
use crate::layers::{self, Marked};
use crate::recipe::{Step, charset};
use crate::report::{Layer, Note};

use super::{Detector, Found, Strength};

impl Detector<'_> {
    /// Text that a person would call text; other control characters leave it for later.
    pub(super) fn textual(&mut self, bytes: &Bytes, depth: usize) -> Option<Found> {
        if let Some(mark) = layers::byte_order_mark(bytes) {
            return self.marked(bytes, mark, depth);
        }
        if let Some(found) = self.other_charset(bytes, depth) {
            return Some(found);
        }
        let text = std::str::from_utf8(bytes).ok()?;
        if let Some(found) = self.structured(bytes, text, depth) {
            return Some(found);
        }
        if !formats::text::is_printable(text) {
            return None;
        }
        let plain = || Found::new(Step::Text, bytes, Document::text(text), Strength::Text);
        Some(self.in_base64(bytes, depth).unwrap_or_else(plain))
    }

    /// UTF-8 with control characters, once no binary format fits.
    pub(super) fn text_at_last(&mut self, bytes: &Bytes) -> Option<Found> {
        if let Ok(text) = std::str::from_utf8(bytes)
            && mostly_printable(text)
        {
            self.notes
                .push(Note::info("the text has control characters"));
            return Some(Found::new(
                Step::Text,
                bytes,
                Document::text(text),
                Strength::Text,
            ));
        }
        if !formats::text::looks_latin1(bytes) {
            return None;
        }
        self.notes.push(Note::info(
            "it is not UTF-8; it looks like Latin-1 (windows-1252)",
        ));
        self.in_charset(&Step::Charset("windows-1252"), bytes, usize::MAX)
    }

    fn marked(&mut self, bytes: &Bytes, mark: Marked, depth: usize) -> Option<Found> {
        if let Some(charset) = mark.charset {
            return self.in_charset(&Step::Charset(charset), bytes, depth);
        }
        let inner = bytes.slice(mark.length..);
        let layer = Layer {
            step: Step::Charset("utf-8"),
            detail: "with a byte order mark".into(),
            outside: bytes.clone(),
            frame: bytes.slice(..mark.length),
        };
        let found = self
            .textual(&inner, depth + 1)
            .unwrap_or_else(|| self.raw(&inner));
        Some(found.inside(layer))
    }

    /// A charset that a header, an XML declaration or the place of zero bytes names.
    fn other_charset(&mut self, bytes: &Bytes, depth: usize) -> Option<Found> {
        let guessed = layers::guess_without_mark(bytes);
        let named = if depth == 0 { self.hints.charset } else { None };
        let declared = formats::xml::declared_charset(bytes).and_then(charset);
        let name = guessed.or(named).or(declared)?;
        if guessed.is_none() && std::str::from_utf8(bytes).is_ok() && bytes.is_ascii() {
            return None;
        }
        let found = self.in_charset(&Step::Charset(name), bytes, depth)?;
        let printable = found
            .document
            .as_text()
            .is_none_or(formats::text::is_printable);
        printable.then_some(found)
    }

    fn in_charset(&mut self, step: &Step, bytes: &Bytes, depth: usize) -> Option<Found> {
        let (mut layer, inner) = match self.peel(step, bytes) {
            Ok(peeled) => peeled,
            Err(refusal) => {
                self.refused(step, &refusal);
                return None;
            }
        };
        if !layer.frame.is_empty() {
            layer.detail = "with a byte order mark".into();
        }
        let text = std::str::from_utf8(&inner).ok()?;
        let plain = || Found::new(Step::Text, &inner, Document::text(text), Strength::Text);
        let found = self
            .structured(&inner, text, depth.saturating_add(1))
            .unwrap_or_else(plain);
        Some(found.inside(layer))
    }

    /// JSON, JSON Lines or XML.
    fn structured(&mut self, bytes: &Bytes, text: &str, depth: usize) -> Option<Found> {
        if text.trim_ascii_start().starts_with('<') {
            return self.attempt(&Step::Xml, bytes);
        }
        if !json::could_be(text) {
            return None;
        }
        let certain = text.trim_ascii_start().starts_with(['{', '[', '"']);
        match self.read_as(&Step::Json, bytes) {
            Ok(found) => Some(self.json_in_json(found, bytes, depth)),
            Err(_) if !certain => None,
            Err(refusal) => self.lines(bytes).or_else(|| {
                self.refused(&Step::Json, &refusal);
                None
            }),
        }
    }

    fn lines(&mut self, bytes: &Bytes) -> Option<Found> {
        let found = self.read_as(&Step::JsonLines, bytes).ok()?;
        let Document::List(items) = &found.document else {
            return None;
        };
        items.iter().all(Document::is_container).then_some(found)
    }

    /// A JSON string that holds a JSON object or list is a layer of its own.
    fn json_in_json(&mut self, found: Found, bytes: &Bytes, depth: usize) -> Found {
        let holds_json = found
            .document
            .as_text()
            .is_some_and(|text| text.trim_ascii_start().starts_with(['{', '[']));
        if !holds_json || depth >= self.settings.limits.layers {
            return found;
        }
        let Ok((layer, inner)) = self.peel(&Step::JsonString, bytes) else {
            return found;
        };
        match self.read_as(&Step::Json, &inner) {
            Ok(inside) => inside.inside(layer),
            Err(_) => found,
        }
    }

    /// Base64 is believed only around something structured: many words are valid base64.
    fn in_base64(&mut self, bytes: &Bytes, depth: usize) -> Option<Found> {
        let step = layers::alphabet(bytes)?;
        let (layer, inner) = self.peel(&step, bytes).ok()?;
        let (notes, needs) = (self.notes.len(), self.needs.len());
        let found = self.look(&inner, depth + 1);
        if found.strength >= Strength::Structured || self.needs.len() > needs {
            return Some(found.inside(layer));
        }
        self.notes.truncate(notes);
        self.notes.push(Note::refused(format!(
            "{step} refused: it would be valid, but nothing structured is inside"
        )));
        None
    }
}

/// Text for a terminal has escapes; one control character in eight letters is binary.
fn mostly_printable(text: &str) -> bool {
    let controls = text
        .chars()
        .filter(|letter| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r'))
        .count();
    controls * 8 <= text.chars().count()
}
