//! A line back to its message, checked.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use bytes::Bytes;
use dlo_core::{Delivery, Header, Message, Millis, Position, Value};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    CaptureError, Captured, Problem, VERSION,
    value::{Entry, Form},
};
use crate::dead_letter::{Death, rfc3339};

/// Reads one line and checks the body against its hash.
///
/// # Errors
/// The error has no line number: the reader of a file adds it.
pub fn parse_line(line: &str) -> Result<Captured, CaptureError> {
    let parsed: Line = serde_json::from_str(line.trim())
        .map_err(|error| CaptureError::new(Problem::Malformed(without_line(&error))))?;
    parsed.into_captured().map_err(CaptureError::new)
}

/// The parser counts lines within its text, which is always one; the file's line is said elsewhere.
fn without_line(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}

#[derive(Default)]
struct Line {
    version: Option<u64>,
    summary: bool,
    broker: String,
    destination: Option<String>,
    position: Option<Position>,
    time: Option<Millis>,
    key: Option<Bytes>,
    headers: Vec<Header>,
    properties: BTreeMap<String, Value>,
    body: Option<Bytes>,
    sha256: Option<String>,
    facts: BTreeMap<String, Value>,
    delivery_count: Option<u64>,
    /// Parsed after the version is known, as a newer version may write it otherwise.
    death: Option<Box<RawValue>>,
    captured: Option<Millis>,
    extra: Vec<(String, Box<RawValue>)>,
}

impl Line {
    fn into_captured(self) -> Result<Captured, Problem> {
        match self.version {
            Some(version) if version > VERSION => return Err(Problem::Newer(version)),
            None if self.summary => return Err(Problem::Summary),
            None => {
                return Err(malformed(
                    "it has no \"dlo\" field with the format's version",
                ));
            }
            Some(_) => {}
        }
        let message = Message {
            key: self.key,
            headers: self.headers,
            properties: self.properties,
            body: self.body,
        };
        check_hash(&message, self.sha256)?;
        let death = self.death.map(|raw| read_death(&raw)).transpose()?;
        Ok(Captured {
            broker: self.broker,
            destination: self
                .destination
                .ok_or_else(|| malformed("it has no \"destination\""))?,
            delivery: Delivery {
                message,
                position: self
                    .position
                    .ok_or_else(|| malformed("it has no \"position\""))?,
                lock: None,
                time: self.time,
                delivery_count: self.delivery_count,
                facts: self.facts,
            },
            death: death.flatten(),
            captured: self.captured,
            extra: self.extra,
        })
    }
}

fn malformed(what: impl Into<String>) -> Problem {
    Problem::Malformed(what.into())
}

fn read_death(raw: &RawValue) -> Result<Option<Death>, Problem> {
    serde_json::from_str(raw.get()).map_err(|error| {
        malformed(format!(
            "its \"death\" cannot be read: {}",
            without_line(&error)
        ))
    })
}

/// A missing hash is accepted, as people write such lines by hand; a wrong one never is.
fn check_hash(message: &Message, written: Option<String>) -> Result<(), Problem> {
    let Some(written) = written else {
        return Ok(());
    };
    let found = message.sha256();
    if written.eq_ignore_ascii_case(&found) {
        Ok(())
    } else {
        Err(Problem::Hash { written, found })
    }
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor)
    }
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an object with \"dlo\", \"destination\", \"position\", \"headers\" and \"body\"",
        )
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
        let mut line = Line::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "dlo" => line.version = Some(map.next_value()?),
                "broker" => line.broker = map.next_value()?,
                "destination" => line.destination = Some(map.next_value()?),
                "position" => line.position = Some(map.next_value::<Place>()?.into_position()?),
                "time" => line.time = map.next_value::<Time>()?.0,
                "key" => line.key = map.next_value::<Payload>()?.0,
                "headers" => line.headers = map.next_value::<Headers>()?.0,
                "properties" => line.properties = map.next_value::<Values>()?.0,
                "body" => line.body = map.next_value::<Payload>()?.0,
                "sha256" => line.sha256 = Some(map.next_value()?),
                "facts" => line.facts = map.next_value::<Values>()?.0,
                "delivery_count" => line.delivery_count = map.next_value()?,
                "death" => line.death = Some(map.next_value()?),
                "captured" => line.captured = map.next_value::<Time>()?.0,
                other => {
                    line.summary |= other == "summary";
                    line.extra.push((other.to_owned(), map.next_value()?));
                }
            }
        }
        Ok(line)
    }
}

/// The three shapes of a position; fields decide, as numbers of any size must come through unchanged.
#[derive(Deserialize)]
struct Place {
    partition: Option<i32>,
    offset: Option<i64>,
    index: Option<u64>,
    id: Option<String>,
}

impl Place {
    fn into_position<E: de::Error>(self) -> Result<Position, E> {
        match (self.partition, self.offset, self.index, self.id) {
            (Some(partition), Some(offset), None, None) => {
                Ok(Position::Offset { partition, offset })
            }
            (None, None, Some(index), None) => Ok(Position::Index { index }),
            (None, None, None, Some(id)) => Ok(Position::Id { id }),
            _ => Err(E::custom(
                "a position is {\"partition\", \"offset\"}, {\"index\"} or {\"id\"}",
            )),
        }
    }
}

struct Time(Option<Millis>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        rfc3339::deserialize(deserializer).map(Self)
    }
}

/// Key or body.
struct Payload(Option<Bytes>);

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Form::deserialize(deserializer)?.into_value("") {
            Value::Null => Ok(Self(None)),
            Value::Bytes(bytes) => Ok(Self(Some(bytes))),
            _ => Err(de::Error::custom(
                "a key or body is null, {\"text\": …} or {\"base64\": …}",
            )),
        }
    }
}

struct Headers(Vec<Header>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(HeadersVisitor).map(Self)
    }
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Vec<Header>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of headers with \"name\", \"type\" and \"value\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Header>, A::Error> {
        let mut headers = Vec::new();
        while let Some(entry) = items.next_element::<Entry>()? {
            headers.push(entry.into_header()?);
        }
        Ok(headers)
    }
}

/// Properties or facts. A plain JSON number is taken as well, as people write it.
struct Values(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = BTreeMap::<String, &RawValue>::deserialize(deserializer)?;
        let values = raw
            .into_iter()
            .map(|(name, raw)| plain_value(raw).map(|value| (name, value)));
        values
            .collect::<Result<_, String>>()
            .map(Self)
            .map_err(de::Error::custom)
    }
}

fn plain_value(raw: &RawValue) -> Result<Value, String> {
    let text = raw.get();
    if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        let int = text.parse().map(Value::Int);
        return int
            .or_else(|_| text.parse().map(Value::Float))
            .map_err(|_| format!("{text} is no number"));
    }
    serde_json::from_str::<Form>(text)
        .map(|form| form.into_value(""))
        .map_err(|error| without_line(&error))
}
