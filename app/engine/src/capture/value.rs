//! Values of headers, properties and facts as the capture format writes them, read again.

use std::{borrow::Cow, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use dlo_core::{Header, Typed, Value};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::flat;
use crate::dead_letter::rfc3339;

/// True for types whose empty array is a table: AMQP's `table`, and `map`.
pub(super) fn is_table_kind(kind: &str) -> bool {
    matches!(kind, "table" | "map")
}

/// A value that may still need its type to be understood.
pub(super) enum Form {
    Value(Value),
    EmptyArray,
}

impl Form {
    /// The value, which has that type.
    pub(super) fn into_value(self, kind: &str) -> Value {
        match self {
            Self::Value(value) => value,
            Self::EmptyArray if is_table_kind(kind) => Value::Table(Vec::new()),
            Self::EmptyArray => Value::List(Vec::new()),
        }
    }
}

impl<'de> Deserialize<'de> for Form {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FormVisitor)
    }
}

struct FormVisitor;

impl<'de> Visitor<'de> for FormVisitor {
    type Value = Form;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, an array, or an object such as {\"text\": …}, {\"base64\": …} or {\"int\": \"…\"}")
    }

    fn visit_unit<E>(self) -> Result<Form, E> {
        Ok(Form::Value(Value::Null))
    }

    fn visit_str<E>(self, text: &str) -> Result<Form, E> {
        Ok(Form::Value(Value::text(text)))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Form, E> {
        Ok(Form::Value(Value::Bool(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Form, A::Error> {
        let Some(first) = items.next_element::<Entry>()? else {
            return Ok(Form::EmptyArray);
        };
        if first.name.is_some() {
            let mut table = vec![first.into_header()?];
            while let Some(entry) = items.next_element::<Entry>()? {
                table.push(entry.into_header()?);
            }
            return Ok(Form::Value(Value::Table(table)));
        }
        let mut list = vec![first.into_item()?];
        while let Some(entry) = items.next_element::<Entry>()? {
            list.push(entry.into_item()?);
        }
        Ok(Form::Value(Value::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Form, A::Error> {
        let Some(key) = map.next_key::<Cow<'de, str>>()? else {
            return Err(de::Error::custom(
                "an empty object is no value; write null, {\"text\": …} or another form",
            ));
        };
        let mut form = read_form(&key, &mut map)?;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let raw = map.next_value::<&RawValue>()?;
            if key == "bits" {
                form = Form::Value(Value::Float(bits(raw).map_err(de::Error::custom)?));
            }
        }
        Ok(form)
    }
}

fn read_form<'de, A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<Form, A::Error> {
    let value = match key {
        "text" => Value::Bytes(Bytes::from(map.next_value::<String>()?)),
        "base64" => {
            Value::Bytes(decode(&map.next_value::<Cow<'de, str>>()?).map_err(de::Error::custom)?)
        }
        "bool" => Value::Bool(map.next_value()?),
        "int" | "float" | "decimal" | "time" => {
            let raw = map.next_value::<&RawValue>()?;
            scalar(key, bare(raw)).map_err(de::Error::custom)?
        }
        "table" | "list" => {
            let kind = if key == "table" { "table" } else { "" };
            map.next_value::<Form>()?.into_value(kind)
        }
        "flat" => flat::read(&map.next_value::<Vec<&RawValue>>()?).map_err(de::Error::custom)?,
        other => {
            return Err(de::Error::custom(format!(
                "\"{other}\" is no form of a value; use text, base64, int, float, decimal, bool or time"
            )));
        }
    };
    Ok(Form::Value(value))
}

fn scalar(form: &str, text: &str) -> Result<Value, String> {
    let value = match form {
        "int" => text.parse().ok().map(Value::Int),
        "float" => text.parse().ok().map(Value::Float),
        "decimal" => decimal(text),
        _ => rfc3339::parse(text)
            .map(|time| Value::Time(i128::from(time.0)))
            .or_else(|| text.parse().ok().map(Value::Time)),
    };
    value.ok_or_else(|| format!("\"{text}\" is no {form}"))
}

/// A decimal: the digits after the point are its scale.
pub(super) fn decimal(text: &str) -> Option<Value> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = u8::try_from(fraction.len()).ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unscaled = format!("{whole}{fraction}").parse().ok()?;
    Some(Value::Decimal { unscaled, scale })
}

/// The text of a number or of a string that needs no escapes.
fn bare(raw: &RawValue) -> &str {
    raw.get().trim_matches('"')
}

fn bits(raw: &RawValue) -> Result<f64, String> {
    u64::from_str_radix(bare(raw), 16)
        .map(f64::from_bits)
        .map_err(|_| format!("{} are no bits of a float", raw.get()))
}

pub(super) fn decode(text: &str) -> Result<Bytes, String> {
    STANDARD
        .decode(text)
        .map(Bytes::from)
        .map_err(|error| format!("the base64 text is damaged: {error}"))
}

/// One header of the message, or one entry of a table or list.
pub(super) struct Entry {
    name: Option<String>,
    kind: Cow<'static, str>,
    value: Form,
}

impl Entry {
    pub(super) fn into_header<E: de::Error>(self) -> Result<Header, E> {
        let value = self.value.into_value(&self.kind);
        let name = self
            .name
            .ok_or_else(|| E::custom("an entry has no \"name\", but those before it have one"))?;
        Ok(Header::new(name, self.kind, value))
    }

    fn into_item<E: de::Error>(self) -> Result<Typed, E> {
        if self.name.is_some() {
            return Err(E::custom(
                "an entry has a \"name\", but those before it have none",
            ));
        }
        let value = self.value.into_value(&self.kind);
        Ok(Typed::new(self.kind, value))
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"name\", \"type\" and \"value\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let (mut name, mut kind, mut value) = (None, Cow::Borrowed(""), None);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "name" => name = Some(map.next_value()?),
                "type" => kind = known_kind(&map.next_value::<Cow<'de, str>>()?),
                "value" => value = Some(map.next_value::<Form>()?),
                _ => {
                    map.next_value::<de::IgnoredAny>()?;
                }
            }
        }
        let value = value.ok_or_else(|| de::Error::missing_field("value"))?;
        Ok(Entry { name, kind, value })
    }
}

/// Names of types that brokers use all the time need no memory of their own.
fn known_kind(kind: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 10] = [
        "bytes",
        "longstr",
        "String",
        "long",
        "int",
        "table",
        "array",
        "timestamp",
        "Number",
        "boolean",
    ];
    match KNOWN.iter().find(|known| **known == kind) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(kind.to_owned()),
    }
}
