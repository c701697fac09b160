//! The reader: one pass over the text, values or only their places.

use std::ops::Range;

use crate::document::{Document, Number};
use crate::limits::Budget;
use crate::report::Refusal;

/// A place in JSON text from which values are read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// A key or text value as it was written.
enum Written {
    Text(String),
    Units(Vec<u16>),
}

impl From<Written> for Document {
    fn from(written: Written) -> Self {
        match written {
            Written::Text(text) => Self::Text(text),
            Written::Units(units) => Self::Utf16(units),
        }
    }
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Reads the next value.
    pub fn value(&mut self, budget: &mut Budget) -> Result<Document, Refusal> {
        self.space();
        budget.node()?;
        match self.peek() {
            Some(b'{') => self.object(budget),
            Some(b'[') => self.list(budget),
            Some(b'"') => Ok(self.string()?.into()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Document::Bool(true)),
            Some(b'f') => self.word("false", Document::Bool(false)),
            Some(b'n') => self.word("null", Document::Null),
            Some(_) => Err(self.wrong("expected a value")),
            None => Err(self.wrong("a value is missing at the end")),
        }
    }

    /// Checks that only white space is left.
    pub fn end(&mut self) -> Result<(), Refusal> {
        self.space();
        if self.at < self.text.len() {
            Err(self.wrong("there is something after the value"))
        } else {
            Ok(())
        }
    }

    /// Where the next value lies; the reader passes it. The text must have been read before.
    pub fn span(&mut self, budget: &mut Budget) -> Result<Range<usize>, Refusal> {
        self.space();
        let start = self.at;
        self.value(budget)?;
        Ok(start..self.at)
    }

    /// The places of the items of a list or of the values of an object that begins here.
    pub fn children(&mut self, budget: &mut Budget) -> Result<Vec<Range<usize>>, Refusal> {
        self.space();
        let object = self.peek() == Some(b'{');
        let close = if object { b'}' } else { b']' };
        self.at += 1;
        let mut spans = Vec::new();
        self.space();
        if self.take(close) {
            return Ok(spans);
        }
        loop {
            self.space();
            if object {
                self.key()?;
            }
            spans.push(self.span(budget)?);
            self.space();
            if !self.take(b',') {
                return Ok(spans);
            }
        }
    }

    fn object(&mut self, budget: &mut Budget) -> Result<Document, Refusal> {
        self.at += 1;
        budget.enter()?;
        let mut entries: Vec<(String, Document)> = Vec::new();
        let mut odd: Option<Vec<(Document, Document)>> = None;
        self.space();
        if !self.take(b'}') {
            loop {
                self.space();
                let key = self.key()?;
                let value = self.value(budget)?;
                match (key, &mut odd) {
                    (Written::Text(key), None) => entries.push((key, value)),
                    (key, Some(pairs)) => pairs.push((key.into(), value)),
                    (key, None) => {
                        let mut pairs: Vec<_> = entries
                            .drain(..)
                            .map(|(key, value)| (Document::Text(key), value))
                            .collect();
                        pairs.push((key.into(), value));
                        odd = Some(pairs);
                    }
                }
                self.space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.wrong("expected ',' or '}' after an entry"));
                }
            }
        }
        budget.leave();
        Ok(odd.map_or_else(|| Document::object(entries), Document::Pairs))
    }

    /// A key with its colon.
    fn key(&mut self) -> Result<Written, Refusal> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("expected a key in double quotes"));
        }
        let key = self.string()?;
        self.space();
        if !self.take(b':') {
            return Err(self.wrong("expected ':' after a key"));
        }
        Ok(key)
    }

    fn list(&mut self, budget: &mut Budget) -> Result<Document, Refusal> {
        self.at += 1;
        budget.enter()?;
        let mut items = Vec::new();
        self.space();
        if !self.take(b']') {
            loop {
                items.push(self.value(budget)?);
                self.space();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.wrong("expected ',' or ']' after an item"));
                }
            }
        }
        budget.leave();
        Ok(Document::List(items))
    }

    /// Text without escapes is taken whole.
    fn string(&mut self) -> Result<Written, Refusal> {
        let start = self.at + 1;
        let length = self.plain(start);
        if self.text.as_bytes().get(start + length) == Some(&b'"') {
            self.at = start + length + 1;
            return Ok(Written::Text(self.text[start..start + length].to_owned()));
        }
        self.escaped(start)
    }

    /// How many bytes from here need no attention.
    fn plain(&self, from: usize) -> usize {
        let bytes = &self.text.as_bytes()[from..];
        bytes
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
            .unwrap_or(bytes.len())
    }

    fn escaped(&mut self, start: usize) -> Result<Written, Refusal> {
        self.at = start;
        let mut text = String::new();
        let mut units: Option<Vec<u16>> = None;
        loop {
            let length = self.plain(self.at);
            add_text(&mut text, &mut units, &self.text[self.at..self.at + length]);
            self.at += length;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape(&mut text, &mut units)?,
                Some(_) => return Err(self.wrong("a control character in text must be escaped")),
                None => return Err(self.wrong("text is not closed")),
            }
        }
        self.at += 1;
        Ok(units.map_or(Written::Text(text), Written::Units))
    }

    fn escape(&mut self, text: &mut String, units: &mut Option<Vec<u16>>) -> Result<(), Refusal> {
        let letter = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match letter {
            Some(b'"' | b'\\' | b'/') => letter.map(char::from),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            Some(b'u') => None,
            _ => return Err(self.wrong("there is no such escape")),
        };
        if let Some(plain) = plain {
            self.at += 2;
            add_text(text, units, plain.encode_utf8(&mut [0; 4]));
            return Ok(());
        }
        let unit = self.unit()?;
        match self.character(unit)? {
            Ok(letter) => add_text(text, units, letter.encode_utf8(&mut [0; 4])),
            Err(lone) => units
                .get_or_insert_with(|| text.encode_utf16().collect())
                .push(lone),
        }
        Ok(())
    }

    /// The character of a code unit, with its second half if it is the first of a pair; the unit
    /// itself if it stands alone.
    fn character(&mut self, unit: u16) -> Result<Result<char, u16>, Refusal> {
        if let Some(letter) = char::from_u32(u32::from(unit)) {
            return Ok(Ok(letter));
        }
        let before = self.at;
        if unit < 0xdc00 && self.text[self.at..].starts_with("\\u") {
            let second = self.unit()?;
            if let Some(Ok(letter)) = char::decode_utf16([unit, second]).next() {
                return Ok(Ok(letter));
            }
            self.at = before;
        }
        Ok(Err(unit))
    }

    fn unit(&mut self) -> Result<u16, Refusal> {
        let digits = self
            .text
            .as_bytes()
            .get(self.at + 2..self.at + 6)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.wrong("\\u needs four hexadecimal digits"))?;
        self.at += 6;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Document, Refusal> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        let number = Number::parse(&self.text[self.at..self.at + length])
            .ok_or_else(|| self.wrong("this is no number of JSON"))?;
        self.at += length;
        Ok(Document::Number(number))
    }

    fn word(&mut self, word: &str, value: Document) -> Result<Document, Refusal> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wrong("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn wrong(&self, what: &str) -> Refusal {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Refusal::new(format!("line {line}, column {column}: {what}"))
    }
}

fn add_text(text: &mut String, units: &mut Option<Vec<u16>>, more: &str) {
    match units {
        Some(units) => units.extend(more.encode_utf16()),
        None => text.push_str(more),
    }
}
