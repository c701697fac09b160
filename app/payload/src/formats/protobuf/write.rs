//! Documents into messages, anew or over the bytes they were read from.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::document::{Document, Tagged, path};
use crate::report::Refusal;
use crate::time;

use super::read::is_packable;
use super::wire::{self, Value, write_tag, write_varint};

/// Writes `new` over the bytes that `old` was read from: fields that are equal keep their bytes and
/// their place, unknown ones too. Without a descriptor the document is a wire tree.
pub fn encode(
    descriptor: Option<&MessageDescriptor>,
    bytes: &[u8],
    old: &Document,
    new: &Document,
) -> Result<Vec<u8>, Refusal> {
    if old == new {
        return Ok(bytes.to_vec());
    }
    if !matches!((old, new), (Document::Map(_), Document::Map(_)))
        || descriptor.is_some_and(is_special)
    {
        return write(descriptor, new);
    }
    let records = wire::records(bytes)?;
    let mut out = Vec::with_capacity(bytes.len() + 64);
    let mut written: Vec<u32> = Vec::new();
    for record in &records {
        let field = descriptor.and_then(|descriptor| descriptor.get_field(record.number));
        let by_number = record.number.to_string();
        let name = field
            .as_ref()
            .map_or(by_number.as_str(), |field| field.name());
        let name = if new.get(name).is_none() && old.get(name).is_none() {
            by_number.as_str()
        } else {
            name
        };
        match (old.get(name), new.get(name)) {
            (old, new) if old == new => out.extend_from_slice(&bytes[record.raw.clone()]),
            (_, None) => {}
            _ if written.contains(&record.number) => {}
            (before, Some(value)) => {
                written.push(record.number);
                let alone = records
                    .iter()
                    .filter(|other| other.number == record.number)
                    .count()
                    == 1;
                match (
                    field.as_ref().map(|field| (field.kind(), field.is_list())),
                    &record.value,
                    before,
                    value,
                ) {
                    (
                        Some((Kind::Message(inner), false)),
                        Value::Bytes(range),
                        Some(before),
                        Document::Map(_),
                    ) if alone => {
                        let inside = encode(Some(&inner), &bytes[range.clone()], before, value)
                            .map_err(|refusal| within(name, &refusal))?;
                        write_bytes(record.number, &inside, &mut out);
                    }
                    (
                        None,
                        Value::Bytes(range),
                        Some(before @ Document::Map(_)),
                        Document::Map(_),
                    ) if alone => {
                        let inside = encode(None, &bytes[range.clone()], before, value)
                            .map_err(|refusal| within(name, &refusal))?;
                        write_bytes(record.number, &inside, &mut out);
                    }
                    _ => named(descriptor, name, value, &mut out)?,
                }
            }
        }
    }
    if let Document::Map(entries) = new {
        for (name, value) in entries.iter().filter(|(name, _)| old.get(name).is_none()) {
            named(descriptor, name, value, &mut out)?;
        }
    }
    Ok(out)
}

/// Writes a message anew.
pub fn write(
    descriptor: Option<&MessageDescriptor>,
    document: &Document,
) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::new();
    let name = descriptor.map_or("", |descriptor| descriptor.full_name());
    match (name, document) {
        ("google.protobuf.Timestamp", _) => write_timestamp(document, &mut out)?,
        ("google.protobuf.Any", Document::Map(_)) if document.get("@type").is_some() => {
            write_any(descriptor, document, &mut out)?
        }
        (_, Document::Map(entries)) => entries
            .iter()
            .try_for_each(|(name, value)| named(descriptor, name, value, &mut out))?,
        _ => {
            return Err(Refusal::new(format!(
                "expected an object, found {}",
                document.kind()
            )));
        }
    }
    Ok(out)
}

/// Messages that are shown as something else than their fields.
fn is_special(descriptor: &MessageDescriptor) -> bool {
    matches!(
        descriptor.full_name(),
        "google.protobuf.Timestamp" | "google.protobuf.Any"
    )
}

fn within(name: &str, refusal: &Refusal) -> Refusal {
    let (name, text) = (path::escape(name), refusal.to_string());
    Refusal::new(if text.starts_with('/') {
        format!("/{name}{text}")
    } else {
        format!("/{name}: {text}")
    })
}

/// Writes a field by its name, its JSON name, or its number.
fn named(
    descriptor: Option<&MessageDescriptor>,
    name: &str,
    value: &Document,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let field = descriptor.and_then(|descriptor| {
        descriptor
            .get_field_by_name(name)
            .or_else(|| descriptor.get_field_by_json_name(name))
    });
    let result = match (field, name.parse()) {
        (Some(field), _) => self::field(&field, value, out),
        (None, Ok(number)) if (1..1 << 29).contains(&number) => wire_field(number, value, out),
        _ => Err(Refusal::new(match descriptor {
            Some(descriptor) => format!("{} has no such field", descriptor.full_name()),
            None => "without a schema a field is called by its number".to_owned(),
        })),
    };
    result.map_err(|refusal| within(name, &refusal))
}

fn field(field: &FieldDescriptor, value: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (number, kind) = (field.number(), field.kind());
    if field.is_map() {
        return map(&kind, number, value, out);
    }
    match value {
        Document::Null => Ok(()),
        Document::List(items) if field.is_list() && field.is_packed() && is_packable(&kind) => {
            let mut packed = Vec::new();
            for (at, item) in items.iter().enumerate() {
                scalar(&kind, item, &mut packed)
                    .map_err(|refusal| within(&at.to_string(), &refusal))?;
            }
            if !items.is_empty() {
                write_bytes(number, &packed, out);
            }
            Ok(())
        }
        Document::List(items) if field.is_list() => {
            items.iter().enumerate().try_for_each(|(at, item)| {
                single(&kind, number, field.is_group(), item, out)
                    .map_err(|refusal| within(&at.to_string(), &refusal))
            })
        }
        _ if field.is_list() => Err(Refusal::new(format!(
            "expected a list, found {}",
            value.kind()
        ))),
        _ => single(&kind, number, field.is_group(), value, out),
    }
}

fn single(
    kind: &Kind,
    number: u32,
    group: bool,
    value: &Document,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    match (kind, value) {
        (Kind::Message(message), _) if group => {
            write_tag(number, 3, out);
            out.extend(write(Some(message), value)?);
            write_tag(number, 4, out);
        }
        (Kind::Message(message), _) => write_bytes(number, &write(Some(message), value)?, out),
        (Kind::String, Document::Text(text)) => write_bytes(number, text.as_bytes(), out),
        (Kind::String | Kind::Bytes, Document::Bytes(bytes)) => write_bytes(number, bytes, out),
        _ => {
            let wire = match kind {
                Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => 1,
                Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => 5,
                _ => 0,
            };
            let mut written = Vec::new();
            scalar(kind, value, &mut written)?;
            write_tag(number, wire, out);
            out.extend(written);
        }
    }
    Ok(())
}

/// Writes a number, a boolean or an enum, without a tag.
fn scalar(kind: &Kind, value: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let wrong = || {
        Refusal::new(format!(
            "expected {}, found {} {}",
            describe(kind),
            value.kind(),
            value.preview(40)
        ))
    };
    let integer = || match value {
        Document::Number(number) => number.as_i128().ok_or_else(wrong),
        _ => Err(wrong()),
    };
    let signed = |bits: u32| {
        integer().and_then(|value| {
            if value >= -(1 << (bits - 1)) && value < 1 << (bits - 1) {
                Ok(value as i64)
            } else {
                Err(wrong())
            }
        })
    };
    let unsigned = |bits: u32| {
        integer().and_then(|value| {
            if value >= 0 && value < 1 << bits {
                Ok(value as u64)
            } else {
                Err(wrong())
            }
        })
    };
    let float = || match value {
        Document::Number(number) => Ok(number.as_f64()),
        Document::Float(value) => Ok(*value),
        _ => Err(wrong()),
    };
    match kind {
        Kind::Bool => match value {
            Document::Bool(value) => out.push(u8::from(*value)),
            _ => return Err(wrong()),
        },
        Kind::Int32 => write_varint(signed(32)? as u64, out),
        Kind::Int64 => write_varint(signed(64)? as u64, out),
        Kind::Uint32 => write_varint(unsigned(32)?, out),
        Kind::Uint64 => write_varint(unsigned(64)?, out),
        Kind::Sint32 => write_varint(zigzag(signed(32)?), out),
        Kind::Sint64 => write_varint(zigzag(signed(64)?), out),
        Kind::Fixed32 => out.extend((unsigned(32)? as u32).to_le_bytes()),
        Kind::Fixed64 => out.extend(unsigned(64)?.to_le_bytes()),
        Kind::Sfixed32 => out.extend((signed(32)? as i32).to_le_bytes()),
        Kind::Sfixed64 => out.extend(signed(64)?.to_le_bytes()),
        Kind::Float => out.extend((float()? as f32).to_le_bytes()),
        Kind::Double => out.extend(float()?.to_le_bytes()),
        Kind::Enum(names) => match value {
            Document::Text(name) => {
                let value = names.get_value_by_name(name).ok_or_else(|| {
                    Refusal::new(format!("{} has no value {name}", names.full_name()))
                })?;
                write_varint(i64::from(value.number()) as u64, out);
            }
            _ => write_varint(signed(32)? as u64, out),
        },
        Kind::String | Kind::Bytes | Kind::Message(_) => return Err(wrong()),
    }
    Ok(())
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => format!("a message {}", message.full_name()),
        Kind::Enum(names) => format!(
            "one of {}",
            names
                .values()
                .map(|value| value.name().to_owned())
                .collect::<Vec<_>>()
                .join(", ")
        ),
        Kind::Bool => "true or false".into(),
        Kind::String => "text".into(),
        Kind::Bytes => "bytes".into(),
        other => format!("a number of type {}", format!("{other:?}").to_lowercase()),
    }
}

fn map(kind: &Kind, number: u32, value: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let Kind::Message(entry) = kind else {
        return Err(Refusal::new("a map has no entries"));
    };
    let (key_kind, value_kind) = (
        entry.map_entry_key_field().kind(),
        entry.map_entry_value_field().kind(),
    );
    let mut write_entry = |key: &Document, value: &Document| {
        let mut inside = Vec::new();
        single(&key_kind, 1, false, key, &mut inside)?;
        single(&value_kind, 2, false, value, &mut inside)?;
        write_bytes(number, &inside, out);
        Ok(())
    };
    match value {
        Document::Map(entries) => entries.iter().try_for_each(|(key, value)| {
            write_entry(&Document::text(key), value)
                .map_err(|refusal: Refusal| within(key, &refusal))
        }),
        Document::Pairs(entries) => entries
            .iter()
            .try_for_each(|(key, value)| write_entry(key, value)),
        _ => Err(Refusal::new(format!(
            "expected an object, found {}",
            value.kind()
        ))),
    }
}

/// Writes a field of a wire tree.
fn wire_field(number: u32, value: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
    match value {
        Document::Number(value) => {
            let bits = value
                .as_u64()
                .or_else(|| value.as_i64().map(|value| value as u64))
                .ok_or_else(|| Refusal::new(format!("{value} does not fit 64 bits")))?;
            write_tag(number, 0, out);
            write_varint(bits, out);
        }
        Document::Bool(value) => {
            write_tag(number, 0, out);
            out.push(u8::from(*value));
        }
        Document::Text(text) => write_bytes(number, text.as_bytes(), out),
        Document::Bytes(bytes) => write_bytes(number, bytes, out),
        Document::Map(_) => write_bytes(number, &write(None, value)?, out),
        Document::List(items) => items
            .iter()
            .try_for_each(|item| wire_field(number, item, out))?,
        Document::Tagged(tagged) => tagged_field(number, tagged, out)?,
        _ => {
            return Err(Refusal::new(format!(
                "{} cannot be written without a schema",
                value.kind()
            )));
        }
    }
    Ok(())
}

fn tagged_field(number: u32, tagged: &Tagged, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let bits = match &tagged.value {
        Document::Number(number) => number.as_u64(),
        _ => None,
    };
    match (tagged.tag.as_str(), bits) {
        ("fixed64", Some(bits)) => {
            write_tag(number, 1, out);
            out.extend(bits.to_le_bytes());
        }
        ("fixed32", Some(bits)) if bits <= u64::from(u32::MAX) => {
            write_tag(number, 5, out);
            out.extend((bits as u32).to_le_bytes());
        }
        ("group", _) => {
            write_tag(number, 3, out);
            out.extend(write(None, &tagged.value)?);
            write_tag(number, 4, out);
        }
        (tag, _) => {
            return Err(Refusal::new(format!(
                "\"{tag}\" with this value is nothing on the wire; there are fixed32, fixed64 and group"
            )));
        }
    }
    Ok(())
}

fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_tag(number, 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn write_timestamp(document: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let wrong = || {
        Refusal::new(format!(
            "expected a time like 2026-11-30T03:10:00Z, found {}",
            document.kind()
        ))
    };
    let nanos = match document {
        Document::Time(time) => {
            time::parse_moment(&time.text, time::Unit::Nanos).or_else(|| time.raw.as_i128())
        }
        Document::Text(text) => time::parse_moment(text, time::Unit::Nanos),
        Document::Number(number) => number.as_i128(),
        Document::Map(_) => return write_parts(document, out),
        _ => None,
    };
    let nanos = nanos.ok_or_else(wrong)?;
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).map_err(|_| wrong())?;
    write_moment(seconds, nanos.rem_euclid(1_000_000_000) as i64, out);
    Ok(())
}

fn write_parts(document: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let part = |name: &str| match document.get(name) {
        Some(Document::Number(number)) => number
            .as_i64()
            .ok_or_else(|| Refusal::new(format!("/{name}: expected a whole number"))),
        Some(other) => Err(Refusal::new(format!(
            "/{name}: expected a number, found {}",
            other.kind()
        ))),
        None => Ok(0),
    };
    write_moment(part("seconds")?, part("nanos")?, out);
    Ok(())
}

fn write_moment(seconds: i64, nanos: i64, out: &mut Vec<u8>) {
    for (number, part) in [(1, seconds), (2, nanos)] {
        if part != 0 {
            write_tag(number, 0, out);
            write_varint(part as u64, out);
        }
    }
}

fn write_any(
    descriptor: Option<&MessageDescriptor>,
    document: &Document,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let url = document
        .get("@type")
        .and_then(Document::as_text)
        .unwrap_or_default();
    let name = url.rsplit('/').next().unwrap_or(url);
    let message = descriptor
        .and_then(|descriptor| descriptor.parent_pool().get_message_by_name(name))
        .ok_or_else(|| Refusal::new(format!("the schema has no message {name}")))?;
    let inside = write(
        Some(&message),
        document.get("@value").unwrap_or(&Document::Null),
    )
    .map_err(|refusal| within("@value", &refusal))?;
    write_bytes(1, url.as_bytes(), out);
    write_bytes(2, &inside, out);
    Ok(())
}

/// Whether a value could be written in a field's type; the sentence says why not.
pub(super) fn check_single(kind: &Kind, value: &Document) -> Result<(), String> {
    single(kind, 1, false, value, &mut Vec::new()).map_err(|refusal| refusal.to_string())
}
