//! Typed header values as text and back. Null, empty and text stay three different things.

use bytes::Bytes;
use dlo_core::{Header, Message, Typed, Value};

use crate::widgets::json_tree::{Hue, cut};

/// A value in one line.
pub fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Decimal { unscaled, scale } => decimal(*unscaled, *scale),
        Value::Bytes(bytes) if bytes.is_empty() => "empty".to_owned(),
        Value::Bytes(bytes) => text(bytes).unwrap_or_else(|| hex(bytes)),
        Value::Time(millis) => time(*millis),
        Value::Table(entries) => {
            let parts: Vec<_> = entries
                .iter()
                .map(|entry| format!("{}: {}", entry.name, show(entry.value())))
                .collect();
            format!("{{{}}}", parts.join(", "))
        }
        Value::List(items) => {
            let parts: Vec<_> = items.iter().map(|item| show(&item.value)).collect();
            format!("[{}]", parts.join(", "))
        }
    }
}

/// The colour of a value.
pub fn hue(value: &Value) -> Hue {
    match value {
        Value::Null | Value::Bool(_) => Hue::Word,
        Value::Int(_) | Value::Float(_) | Value::Decimal { .. } => Hue::Number,
        Value::Bytes(bytes) if bytes.is_empty() => Hue::Word,
        Value::Bytes(bytes) if text(bytes).is_some() => Hue::Quoted,
        Value::Bytes(_) | Value::Time(_) => Hue::Special,
        Value::Table(_) | Value::List(_) => Hue::Container,
    }
}

/// Text with visible escapes for what cannot be seen; `None` when the bytes are not text.
pub fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let odd = text
        .chars()
        .filter(|c| c.is_control() && !c.is_whitespace())
        .count();
    if odd > 0 && odd * 4 > text.chars().count() {
        return None;
    }
    Some(
        text.chars()
            .map(|c| match c {
                '\n' => "⏎".to_owned(),
                '\t' => "→".to_owned(),
                c if c.is_control() => c.escape_default().to_string(),
                c => c.to_string(),
            })
            .collect(),
    )
}

/// Bytes in hexadecimal, `0x` first, cut after 64.
pub fn hex(bytes: &[u8]) -> String {
    let pairs: String = bytes
        .iter()
        .take(64)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let more = if bytes.len() > 64 { "…" } else { "" };
    format!("0x{pairs}{more}")
}

fn time(millis: i128) -> String {
    match i64::try_from(millis) {
        Ok(millis) => dlo_core::Millis(millis).to_string(),
        Err(_) => format!("{millis} ms"),
    }
}

fn decimal(unscaled: i128, scale: u8) -> String {
    let digits = unscaled.unsigned_abs().to_string();
    let scale = usize::from(scale);
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, part) = padded.split_at(padded.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    if part.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{part}")
    }
}

/// What kind of value stands in the editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Null,
    Empty,
    Text,
    Hex,
    Int,
    Float,
    Bool,
    Decimal,
    Time,
    /// Tables and lists are kept as they are.
    Kept,
}

impl Form {
    pub const CHOICES: [Self; 9] = [
        Self::Null,
        Self::Empty,
        Self::Text,
        Self::Hex,
        Self::Int,
        Self::Float,
        Self::Bool,
        Self::Decimal,
        Self::Time,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Empty => "empty",
            Self::Text => "text",
            Self::Hex => "bytes (hex)",
            Self::Int => "integer",
            Self::Float => "float",
            Self::Bool => "true/false",
            Self::Decimal => "decimal",
            Self::Time => "time",
            Self::Kept => "as it is",
        }
    }

    /// True when there is text to type.
    pub fn has_text(self) -> bool {
        !matches!(self, Self::Null | Self::Empty | Self::Kept)
    }
}

/// A value while it is edited.
#[derive(Clone, Debug)]
pub struct Field {
    pub form: Form,
    pub text: String,
    /// What it was, with the broker's word for its type.
    pub original: Typed,
}

impl Field {
    pub fn new(typed: &Typed) -> Self {
        let (form, text) = match &typed.value {
            Value::Null => (Form::Null, String::new()),
            Value::Bytes(bytes) if bytes.is_empty() => (Form::Empty, String::new()),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => (Form::Text, text.to_owned()),
                Err(_) => (
                    Form::Hex,
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                ),
            },
            Value::Int(value) => (Form::Int, value.to_string()),
            Value::Float(value) => (Form::Float, format!("{value:?}")),
            Value::Bool(value) => (Form::Bool, value.to_string()),
            Value::Decimal { unscaled, scale } => (Form::Decimal, decimal(*unscaled, *scale)),
            Value::Time(millis) => (Form::Time, time(*millis)),
            Value::Table(_) | Value::List(_) => (Form::Kept, show(&typed.value)),
        };
        Self {
            form,
            text,
            original: typed.clone(),
        }
    }

    /// The value as edited; what was not touched comes back exactly as it was.
    ///
    /// # Errors
    /// A sentence about the text that cannot be read.
    pub fn value(&self) -> Result<Value, String> {
        let untouched = Self::new(&self.original);
        if untouched.form == self.form && untouched.text == self.text {
            return Ok(self.original.value.clone());
        }
        let text = self.text.trim();
        match self.form {
            Form::Null => Ok(Value::Null),
            Form::Empty => Ok(Value::Bytes(Bytes::new())),
            Form::Text => Ok(Value::text(self.text.clone())),
            Form::Hex => parse_hex(text).map(|bytes| Value::Bytes(bytes.into())),
            Form::Int => text
                .parse()
                .map(Value::Int)
                .map_err(|_| format!("{text:?} is no whole number")),
            Form::Float => text
                .parse()
                .map(Value::Float)
                .map_err(|_| format!("{text:?} is no number")),
            Form::Bool => text
                .parse()
                .map(Value::Bool)
                .map_err(|_| "write true or false".to_owned()),
            Form::Decimal => parse_decimal(text),
            Form::Time => dlo_core::Millis::parse(text)
                .map(|time| Value::Time(i128::from(time.0)))
                .ok_or_else(|| format!("{text:?} is no time; write 2026-11-30T03:10:00Z")),
            Form::Kept => Ok(self.original.value.clone()),
        }
    }
}

/// Bytes from hexadecimal digits; spaces and a leading `0x` are allowed.
///
/// # Errors
/// A sentence about what is wrong.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: String = text
        .trim_start_matches("0x")
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect();
    if !digits.len().is_multiple_of(2) {
        return Err("hexadecimal bytes need two digits each".to_owned());
    }
    let pair = |at: usize| {
        digits
            .get(at..at + 2)
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    (0..digits.len() / 2)
        .map(|index| {
            pair(index * 2).ok_or_else(|| format!("byte {} is not hexadecimal", index + 1))
        })
        .collect()
}

fn parse_decimal(text: &str) -> Result<Value, String> {
    let wrong = || format!("{text:?} is no decimal such as 12.30");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let unscaled = format!("{whole}{part}").parse().map_err(|_| wrong())?;
    let scale = u8::try_from(part.len()).map_err(|_| wrong())?;
    Ok(Value::Decimal { unscaled, scale })
}

/// A message as lines of text for a diff: properties, headers in order, key, body.
pub fn lines(message: &Message) -> String {
    let mut out = String::new();
    for (name, value) in &message.properties {
        out.push_str(&format!("{name} = {}\n", show(value)));
    }
    for header in &message.headers {
        out.push_str(&header_line(header));
    }
    out.push_str(&format!("key = {}\n", bytes_line(message.key.as_deref())));
    out
}

fn header_line(header: &Header) -> String {
    format!(
        "{} ({}) = {}\n",
        header.name,
        header.typed.kind,
        cut(&show(header.value()), 2_000)
    )
}

/// Null, empty, text or hexadecimal.
pub fn bytes_line(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "null".to_owned(),
        Some([]) => "empty".to_owned(),
        Some(bytes) => text(bytes).unwrap_or_else(|| hex(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(form: Form, text: &str) -> Field {
        Field {
            form,
            text: text.to_owned(),
            original: Typed::new("longstr", Value::text("old")),
        }
    }

    #[test]
    fn null_empty_and_text_stay_three_things() {
        assert_eq!(field(Form::Null, "").value(), Ok(Value::Null));
        assert_eq!(field(Form::Empty, "").value(), Ok(Value::text("")));
        assert_eq!(field(Form::Text, "null").value(), Ok(Value::text("null")));
        assert_eq!(
            [show(&Value::Null), show(&Value::text(""))],
            ["null", "empty"]
        );
    }

    #[test]
    fn what_was_not_touched_comes_back_exactly() {
        for value in [
            Value::Float(f64::NAN),
            Value::Decimal {
                unscaled: -5,
                scale: 3,
            },
            Value::Bytes(Bytes::from_static(&[0, 255])),
            Value::Time(i128::MAX),
            Value::Int(i128::from(i64::MIN)),
            Value::List(vec![Typed::new("void", Value::Null)]),
        ] {
            let field = Field::new(&Typed::new("x", value.clone()));
            assert_eq!(field.value(), Ok(value));
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert!(field(Form::Int, "1.5").value().is_err());
        assert!(field(Form::Hex, "abc").value().is_err());
        assert_eq!(
            field(Form::Hex, "0x00 ff").value(),
            Ok(Value::Bytes(Bytes::from_static(&[0, 255])))
        );
        assert_eq!(
            field(Form::Decimal, "-0.30").value(),
            Ok(Value::Decimal {
                unscaled: -30,
                scale: 2
            })
        );
        assert_eq!(decimal(-30, 2), "-0.30");
    }
}
