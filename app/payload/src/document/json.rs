//! A document as JSON text and back, in the form the command line promises (design §11).
//!
//! Numbers keep their digits. What JSON cannot say is an object with one key: `bytes`, `float`,
//! `decimal`, `pairs`; a time is `{"time": text, "raw": number}`, a tagged value
//! `{"tag": mark, "value": …}`. An object of the message that looks like one of these is written
//! as `pairs`, so that reading back is never a guess.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde_json::{Map, Value};

use super::{Document, Number, Tagged, Time};

const MARKS: [&str; 5] = ["bytes", "float", "decimal", "pairs", "utf16"];

impl Document {
    /// The document as a JSON value; give it to any serialiser of JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(json_number(number)),
            Self::Text(text) => Value::String(text.clone()),
            Self::Utf16(units) => marked("utf16", Value::String(units_text(units))),
            Self::Bytes(bytes) => marked("bytes", Value::String(BASE64.encode(bytes))),
            Self::Float(value) => marked("float", Value::String(float_text(*value).into())),
            Self::Decimal(text) => marked("decimal", Value::String(text.clone())),
            Self::Time(time) => time_json(time),
            Self::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Self::Map(entries) if looks_marked(entries) => pairs_json(
                entries
                    .iter()
                    .map(|(key, value)| (Value::String(key.clone()), value)),
            ),
            Self::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.clone(), value.to_json()))
                    .collect(),
            ),
            Self::Pairs(entries) => {
                pairs_json(entries.iter().map(|(key, value)| (key.to_json(), value)))
            }
            Self::Tagged(tagged) => tagged_json(tagged),
        }
    }

    /// The inverse of [`Document::to_json`].
    pub fn from_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(Number::from_checked(number.as_str())),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Value::Object(entries) => from_marked(entries).unwrap_or_else(|| from_entries(entries)),
        }
    }

    /// The document as indented JSON text for reading and editing.
    pub fn to_pretty(&self) -> String {
        let mut out = String::new();
        write_pretty(&self.to_json(), 0, &mut out);
        out
    }

    /// One line of JSON, cut at about `limit` bytes with an ellipsis; for a table's cell.
    pub fn preview(&self, limit: usize) -> String {
        let mut out = String::new();
        write_preview(self, limit, &mut out);
        if out.len() > limit {
            let mut end = limit;
            while !out.is_char_boundary(end) {
                end -= 1;
            }
            out.truncate(end);
            out.push('…');
        }
        out
    }
}

impl serde::Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::List(items) => {
                let mut list = to.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Map(entries) if !looks_marked(entries) => {
                let mut map = to.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
            other => other.to_json().serialize(to),
        }
    }
}

/// The name of a special float as the command line writes it.
pub(crate) fn float_text(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn json_number(number: &Number) -> serde_json::Number {
    serde_json::Number::from_string_unchecked(number.to_string())
}

fn marked(mark: &str, value: Value) -> Value {
    let mut object = Map::with_capacity(1);
    object.insert(mark.to_owned(), value);
    Value::Object(object)
}

fn time_json(time: &Time) -> Value {
    let mut object = Map::with_capacity(2);
    object.insert("time".into(), Value::String(time.text.clone()));
    object.insert("raw".into(), Value::Number(json_number(&time.raw)));
    Value::Object(object)
}

fn tagged_json(tagged: &Tagged) -> Value {
    let mut object = Map::with_capacity(2);
    object.insert("tag".into(), Value::String(tagged.tag.clone()));
    object.insert("value".into(), tagged.value.to_json());
    Value::Object(object)
}

fn pairs_json<'a>(entries: impl Iterator<Item = (Value, &'a Document)>) -> Value {
    let pairs = entries.map(|(key, value)| Value::Array(vec![key, value.to_json()]));
    marked("pairs", Value::Array(pairs.collect()))
}

fn units_text(units: &[u16]) -> String {
    let units: Vec<String> = units.iter().map(|unit| format!("{unit:04x}")).collect();
    units.join(" ")
}

/// Whether an object of the message could be taken for one of our marks.
fn looks_marked(entries: &[(String, Document)]) -> bool {
    match entries {
        [(key, _)] => MARKS.contains(&key.as_str()),
        [(one, _), (two, _)] => (one == "time" && two == "raw") || (one == "tag" && two == "value"),
        _ => false,
    }
}

fn from_entries(entries: &Map<String, Value>) -> Document {
    Document::Map(
        entries
            .iter()
            .map(|(key, value)| (key.clone(), Document::from_json(value)))
            .collect(),
    )
}

fn from_marked(entries: &Map<String, Value>) -> Option<Document> {
    if entries.len() == 2 {
        return from_two(entries);
    }
    let (mark, value) = entries.iter().next().filter(|_| entries.len() == 1)?;
    match mark.as_str() {
        "bytes" => BASE64.decode(value.as_str()?).ok().map(Document::Bytes),
        "float" => special(value.as_str()?),
        "decimal" => Some(Document::Decimal(value.as_str()?.to_owned())),
        "utf16" => value
            .as_str()?
            .split_whitespace()
            .map(|unit| u16::from_str_radix(unit, 16).ok())
            .collect::<Option<_>>()
            .map(Document::Utf16),
        "pairs" => value
            .as_array()?
            .iter()
            .map(pair)
            .collect::<Option<Vec<_>>>()
            .map(Document::pairs),
        _ => None,
    }
}

fn from_two(entries: &Map<String, Value>) -> Option<Document> {
    if let (Some(text), Some(Value::Number(raw))) = (entries.get("time"), entries.get("raw")) {
        let time = Time {
            text: text.as_str()?.to_owned(),
            raw: Number::from_checked(raw.as_str()),
        };
        return Some(Document::Time(Box::new(time)));
    }
    let (tag, value) = (
        entries.get("tag")?.as_str()?.to_owned(),
        entries.get("value")?,
    );
    Some(Document::Tagged(Box::new(Tagged {
        tag,
        value: Document::from_json(value),
    })))
}

fn special(text: &str) -> Option<Document> {
    match text {
        "NaN" => Some(Document::Float(f64::NAN)),
        "Infinity" => Some(Document::Float(f64::INFINITY)),
        "-Infinity" => Some(Document::Float(f64::NEG_INFINITY)),
        _ => None,
    }
}

fn pair(value: &Value) -> Option<(Document, Document)> {
    match value.as_array()?.as_slice() {
        [key, value] => Some((Document::from_json(key), Document::from_json(value))),
        _ => None,
    }
}

fn write_pretty(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let lines = items.iter().map(|item| (None, item));
            write_lines('[', ']', lines, depth, out);
        }
        Value::Object(entries) if !entries.is_empty() => {
            let lines = entries
                .iter()
                .map(|(key, value)| (Some(key.as_str()), value));
            write_lines('{', '}', lines, depth, out);
        }
        other => out.push_str(&other.to_string()),
    }
}

fn write_lines<'a>(
    open: char,
    close: char,
    lines: impl Iterator<Item = (Option<&'a str>, &'a Value)>,
    depth: usize,
    out: &mut String,
) {
    out.push(open);
    for (at, (key, value)) in lines.enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n("  ", depth + 1));
        if let Some(key) = key {
            out.push_str(&Value::String(key.to_owned()).to_string());
            out.push_str(": ");
        }
        write_pretty(value, depth + 1, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
    out.push(close);
}

/// Stops soon after the limit, so that a cell of a 20 MB message costs as little as a small one.
fn write_preview(document: &Document, limit: usize, out: &mut String) {
    if out.len() > limit {
        return;
    }
    match document {
        Document::Text(text) => write_start(text, limit, out),
        Document::Bytes(bytes) => {
            let start = &bytes[..bytes.len().min(limit)];
            out.push_str(&crate::formats::hex::spaced(start));
        }
        Document::Time(time) => out.push_str(&time.text),
        Document::Decimal(text) => out.push_str(text),
        Document::Float(value) => out.push_str(float_text(*value)),
        Document::Tagged(tagged) => write_preview(&tagged.value, limit, out),
        Document::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if out.len() > limit {
                    return;
                }
                if at > 0 {
                    out.push(',');
                }
                write_preview(item, limit, out);
            }
            out.push(']');
        }
        Document::Map(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                if out.len() > limit {
                    return;
                }
                if at > 0 {
                    out.push(',');
                }
                write_start(key, limit, out);
                out.push(':');
                write_preview(value, limit, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_json().to_string()),
    }
}

fn write_start(text: &str, limit: usize, out: &mut String) {
    let start: String = text.chars().take(limit + 1).collect();
    out.push_str(&Value::String(start).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: Document, expected: &str) {
        let json = document.to_json();
        assert_eq!(json.to_string(), expected);
        assert_eq!(
            serde_json::to_string(&document).unwrap(),
            expected,
            "the serialiser says the same"
        );
        let back = Document::from_json(&serde_json::from_str(expected).unwrap());
        assert_eq!(
            back.to_json().to_string(),
            expected,
            "reading back keeps it"
        );
    }

    #[test]
    fn what_json_cannot_say() {
        check(Document::Bytes(vec![0, 255]), r#"{"bytes":"AP8="}"#);
        check(Document::Float(f64::NAN), r#"{"float":"NaN"}"#);
        check(
            Document::Float(f64::NEG_INFINITY),
            r#"{"float":"-Infinity"}"#,
        );
        check(Document::Decimal("12.30".into()), r#"{"decimal":"12.30"}"#);
        check(
            Document::pairs(vec![(Document::int(1), Document::Null)]),
            r#"{"pairs":[[1,null]]}"#,
        );
        check(
            Document::Utf16(vec![0xd800, 0x61]),
            r#"{"utf16":"d800 0061"}"#,
        );
        let time = Time {
            text: "2026-11-30T03:10:00.123Z".into(),
            raw: Number::from(1796008200123i64),
        };
        check(
            Document::Time(Box::new(time)),
            r#"{"time":"2026-11-30T03:10:00.123Z","raw":1796008200123}"#,
        );
    }

    #[test]
    fn numbers_keep_their_digits() {
        let number = Number::parse("23958446825181076828.10").unwrap();
        check(
            Document::List(vec![Document::Number(number)]),
            "[23958446825181076828.10]",
        );
    }

    #[test]
    fn an_object_that_looks_like_a_mark_is_told_apart() {
        let object = Document::Map(vec![("bytes".into(), Document::text("AP8="))]);
        check(object.clone(), r#"{"pairs":[["bytes","AP8="]]}"#);
        assert_eq!(Document::from_json(&object.to_json()), object);
    }

    #[test]
    fn previews_are_cut() {
        let long = Document::Map(vec![("a".into(), Document::text("x".repeat(1000)))]);
        let preview = long.preview(20);
        assert!(preview.len() < 30 && preview.ends_with('…'), "{preview}");
    }
}
