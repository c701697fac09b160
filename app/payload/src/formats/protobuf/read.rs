//! Messages into documents. Fields keep the order of the wire and the names of the schema; a field
//! that is not on the wire is not shown.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::document::{Document, Number, Tagged, Time};
use crate::formats::patch::Cursor;
use crate::formats::text::is_printable;
use crate::limits::Budget;
use crate::report::Refusal;
use crate::time;

use super::wire::{self, Record, Value};

/// A message that was read.
#[derive(Debug)]
pub struct Message {
    pub document: Document,
    /// How many fields the schema knew, all levels together.
    pub known: usize,
    /// How many it did not know; they are shown by number.
    pub unknown: usize,
}

/// Reads a message with its descriptor.
pub fn decode(
    descriptor: &MessageDescriptor,
    bytes: &[u8],
    budget: &mut Budget,
) -> Result<Message, Refusal> {
    let mut reader = Reader {
        budget,
        known: 0,
        unknown: 0,
    };
    let document = reader.message(descriptor, bytes)?;
    Ok(Message {
        document,
        known: reader.known,
        unknown: reader.unknown,
    })
}

/// Reads a message without a schema: fields by number, nested where bytes look like a message.
pub fn decode_wire(bytes: &[u8], budget: &mut Budget) -> Result<Document, Refusal> {
    Reader {
        budget,
        known: 0,
        unknown: 0,
    }
    .tree(bytes)
}

struct Reader<'a> {
    budget: &'a mut Budget,
    known: usize,
    unknown: usize,
}

/// The fields of a message so far, found by number.
#[derive(Default)]
struct Fields {
    numbers: Vec<u32>,
    entries: Vec<(String, Document)>,
}

impl Fields {
    /// The place of a field; a new one gets its name and an empty value.
    fn place(
        &mut self,
        number: u32,
        name: impl FnOnce() -> String,
        empty: Document,
    ) -> &mut Document {
        // The same field usually comes again at once.
        let at = self
            .numbers
            .iter()
            .rposition(|known| *known == number)
            .unwrap_or_else(|| {
                self.numbers.push(number);
                self.entries.push((name(), empty));
                self.entries.len() - 1
            });
        &mut self.entries[at].1
    }
}

impl Reader<'_> {
    fn message(
        &mut self,
        descriptor: &MessageDescriptor,
        bytes: &[u8],
    ) -> Result<Document, Refusal> {
        self.budget.node()?;
        self.budget.enter()?;
        let mut from = Cursor::new(bytes);
        let mut fields = Fields::default();
        while let Some(record) = wire::next(&mut from)? {
            match descriptor.get_field(record.number) {
                Some(field) if fits(&field, &record.value) => self
                    .field(&field, &record, bytes, &mut fields)
                    .map_err(|refusal| inside(field.name(), refusal))?,
                _ => self.unknown_field(&record, bytes, &mut fields)?,
            }
        }
        self.budget.leave();
        let document = Document::Map(fields.entries);
        Ok(match descriptor.full_name() {
            "google.protobuf.Timestamp" => timestamp(&document).unwrap_or(document),
            "google.protobuf.Any" => self.any(descriptor, &document)?.unwrap_or(document),
            _ => document,
        })
    }

    fn field(
        &mut self,
        field: &FieldDescriptor,
        record: &Record,
        bytes: &[u8],
        fields: &mut Fields,
    ) -> Result<(), Refusal> {
        self.known += 1;
        let name = || field.name().to_owned();
        if field.is_map() {
            let entry = self.map_entry(field, record, bytes)?;
            add_entry(
                fields.place(record.number, name, Document::Map(Vec::new())),
                entry,
            );
            return Ok(());
        }
        if !field.is_list() {
            let value = self.value(&field.kind(), record, bytes)?;
            let place = fields.place(record.number, name, Document::Null);
            merge(place, value);
            return Ok(());
        }
        let mut items = match &record.value {
            Value::Bytes(range) if is_packable(&field.kind()) => {
                self.packed(&field.kind(), &bytes[range.clone()])?
            }
            _ => vec![self.value(&field.kind(), record, bytes)?],
        };
        if let Document::List(list) = fields.place(record.number, name, Document::List(Vec::new()))
        {
            list.append(&mut items);
        }
        Ok(())
    }

    fn value(&mut self, kind: &Kind, record: &Record, bytes: &[u8]) -> Result<Document, Refusal> {
        match (kind, &record.value) {
            (Kind::Message(message), Value::Bytes(range) | Value::Group(range)) => {
                return self.message(message, &bytes[range.clone()]);
            }
            (Kind::String, Value::Bytes(range)) => {
                self.budget.node()?;
                let bytes = &bytes[range.clone()];
                return Ok(std::str::from_utf8(bytes)
                    .map_or_else(|_| Document::Bytes(bytes.to_vec()), Document::text));
            }
            (Kind::Bytes, Value::Bytes(range)) => {
                self.budget.node()?;
                return Ok(Document::Bytes(bytes[range.clone()].to_vec()));
            }
            _ => self.budget.node()?,
        }
        Ok(match &record.value {
            Value::Varint(value) => number(kind, *value),
            Value::Fixed64(value) => fixed64(kind, *value),
            Value::Fixed32(value) => fixed32(kind, *value),
            Value::Bytes(range) | Value::Group(range) => {
                Document::Bytes(bytes[range.clone()].to_vec())
            }
        })
    }

    fn packed(&mut self, kind: &Kind, bytes: &[u8]) -> Result<Vec<Document>, Refusal> {
        let mut from = Cursor::new(bytes);
        let mut items = Vec::new();
        while from.left() > 0 {
            self.budget.node()?;
            items.push(match kind {
                Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => fixed64(kind, from.array()?),
                Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => fixed32(kind, from.array()?),
                _ => number(kind, wire::varint(&mut from)?),
            });
        }
        Ok(items)
    }

    /// An entry of a map is a message of two fields; either may be left out for its default.
    fn map_entry(
        &mut self,
        field: &FieldDescriptor,
        record: &Record,
        bytes: &[u8],
    ) -> Result<(Document, Document), Refusal> {
        let (Kind::Message(entry), Value::Bytes(range)) = (field.kind(), &record.value) else {
            return Err(Refusal::new("a map entry is no message"));
        };
        let document = self.message(&entry, &bytes[range.clone()])?;
        let part = |name: &str, field: FieldDescriptor| {
            document
                .get(name)
                .cloned()
                .unwrap_or_else(|| default(&field.kind()))
        };
        Ok((
            part("key", entry.map_entry_key_field()),
            part("value", entry.map_entry_value_field()),
        ))
    }

    fn unknown_field(
        &mut self,
        record: &Record,
        bytes: &[u8],
        fields: &mut Fields,
    ) -> Result<(), Refusal> {
        self.unknown += 1;
        let value = self.wire_value(record, bytes)?;
        let name = record.number.to_string();
        // The key is a number, which no field of a schema can be called.
        let place = fields.place(record.number, || name, Document::Null);
        match place {
            Document::Null => *place = value,
            Document::List(items) => items.push(value),
            first => *first = Document::List(vec![std::mem::replace(first, Document::Null), value]),
        }
        Ok(())
    }

    fn tree(&mut self, bytes: &[u8]) -> Result<Document, Refusal> {
        self.budget.node()?;
        self.budget.enter()?;
        let mut from = Cursor::new(bytes);
        let mut fields = Fields::default();
        while let Some(record) = wire::next(&mut from)? {
            self.unknown_field(&record, bytes, &mut fields)?;
        }
        self.budget.leave();
        Ok(Document::Map(fields.entries))
    }

    /// Bytes are text if they read as text, a message if they read as one, else bytes.
    fn wire_value(&mut self, record: &Record, bytes: &[u8]) -> Result<Document, Refusal> {
        let marked = |tag: &str, value| {
            Document::Tagged(Box::new(Tagged {
                tag: tag.into(),
                value,
            }))
        };
        self.budget.node()?;
        Ok(match &record.value {
            Value::Varint(value) => Document::Number(Number::from(*value)),
            Value::Fixed64(value) => marked(
                "fixed64",
                Document::Number(Number::from(u64::from_le_bytes(*value))),
            ),
            Value::Fixed32(value) => marked(
                "fixed32",
                Document::int(i64::from(u32::from_le_bytes(*value))),
            ),
            Value::Group(range) => marked("group", self.tree(&bytes[range.clone()])?),
            Value::Bytes(range) => {
                let inner = &bytes[range.clone()];
                match std::str::from_utf8(inner) {
                    Ok(text) if is_printable(text) => Document::text(text),
                    _ if wire::looks_like_wire(inner) => self.tree(inner)?,
                    Ok(text)
                        if text.chars().filter(|letter| letter.is_control()).count() * 8
                            <= text.len() =>
                    {
                        Document::text(text)
                    }
                    _ => Document::Bytes(inner.to_vec()),
                }
            }
        })
    }

    /// An Any is opened if its type is among the schema's; else its URL and bytes are shown.
    fn any(
        &mut self,
        descriptor: &MessageDescriptor,
        document: &Document,
    ) -> Result<Option<Document>, Refusal> {
        let (Some(Document::Text(url)), Some(Document::Bytes(value))) =
            (document.get("type_url"), document.get("value"))
        else {
            return Ok(None);
        };
        let name = url.rsplit('/').next().unwrap_or(url);
        let Some(message) = descriptor.parent_pool().get_message_by_name(name) else {
            return Ok(None);
        };
        let inside = self.message(&message, value)?;
        Ok(Some(Document::Map(vec![
            ("@type".into(), Document::text(url.as_str())),
            ("@value".into(), inside),
        ])))
    }
}

fn inside(name: &str, refusal: Refusal) -> Refusal {
    if refusal.is_limit() {
        return refusal;
    }
    let text = refusal.to_string();
    Refusal::new(if text.starts_with('/') {
        format!("/{name}{text}")
    } else {
        format!("/{name}: {text}")
    })
}

/// Whether a field's type may have this wire type; if not, readers take it for an unknown field.
fn fits(field: &FieldDescriptor, value: &Value) -> bool {
    let kind = field.kind();
    match value {
        Value::Varint(_) => matches!(
            kind,
            Kind::Int32
                | Kind::Int64
                | Kind::Uint32
                | Kind::Uint64
                | Kind::Sint32
                | Kind::Sint64
                | Kind::Bool
                | Kind::Enum(_)
        ),
        Value::Fixed64(_) => matches!(kind, Kind::Double | Kind::Fixed64 | Kind::Sfixed64),
        Value::Fixed32(_) => matches!(kind, Kind::Float | Kind::Fixed32 | Kind::Sfixed32),
        Value::Group(_) => field.is_group(),
        Value::Bytes(_) => {
            matches!(kind, Kind::String | Kind::Bytes)
                || (matches!(kind, Kind::Message(_)) && !field.is_group())
                || (field.is_list() && is_packable(&kind))
        }
    }
}

pub(super) fn is_packable(kind: &Kind) -> bool {
    !matches!(kind, Kind::String | Kind::Bytes | Kind::Message(_))
}

fn number(kind: &Kind, value: u64) -> Document {
    match kind {
        Kind::Bool => Document::Bool(value != 0),
        Kind::Int32 => Document::int(i64::from(value as i32)),
        Kind::Int64 => Document::int(value as i64),
        Kind::Uint32 => Document::int(i64::from(value as u32)),
        Kind::Sint32 | Kind::Sint64 => Document::int((value >> 1) as i64 ^ -((value & 1) as i64)),
        Kind::Enum(kind) => kind.get_value(value as i32).map_or_else(
            || Document::int(i64::from(value as i32)),
            |value| Document::text(value.name()),
        ),
        _ => Document::Number(Number::from(value)),
    }
}

fn fixed64(kind: &Kind, value: [u8; 8]) -> Document {
    match kind {
        Kind::Double => Document::float(f64::from_le_bytes(value)),
        Kind::Sfixed64 => Document::int(i64::from_le_bytes(value)),
        _ => Document::Number(Number::from(u64::from_le_bytes(value))),
    }
}

fn fixed32(kind: &Kind, value: [u8; 4]) -> Document {
    match kind {
        Kind::Float => Document::float32(f32::from_le_bytes(value)),
        Kind::Sfixed32 => Document::int(i64::from(i32::from_le_bytes(value))),
        _ => Document::int(i64::from(u32::from_le_bytes(value))),
    }
}

fn default(kind: &Kind) -> Document {
    match kind {
        Kind::String => Document::text(""),
        Kind::Bytes => Document::Bytes(Vec::new()),
        Kind::Message(_) => Document::Map(Vec::new()),
        Kind::Double => fixed64(kind, [0; 8]),
        Kind::Float => fixed32(kind, [0; 4]),
        _ => number(kind, 0),
    }
}

/// The last value wins, but messages flow together, as the specification says.
fn merge(place: &mut Document, value: Document) {
    match (place, value) {
        (Document::Map(old), Document::Map(new)) => {
            for (key, value) in new {
                match old.iter_mut().find(|(name, _)| *name == key) {
                    Some((_, Document::List(items))) => match value {
                        Document::List(more) => items.extend(more),
                        other => items.push(other),
                    },
                    Some((_, old)) => merge(old, value),
                    None => old.push((key, value)),
                }
            }
        }
        (place, value) => *place = value,
    }
}

/// A later entry with the same key replaces the earlier one.
fn add_entry(map: &mut Document, (key, value): (Document, Document)) {
    if let (Document::Map(entries), Document::Text(key)) = (&mut *map, &key) {
        entries.push((key.clone(), value));
        return;
    }
    let mut entries = match std::mem::replace(map, Document::Null) {
        Document::Map(entries) => entries
            .into_iter()
            .map(|(key, value)| (Document::Text(key), value))
            .collect(),
        Document::Pairs(entries) => entries,
        _ => Vec::new(),
    };
    entries.push((key, value));
    *map = Document::Pairs(entries);
}

fn timestamp(document: &Document) -> Option<Document> {
    let part = |name: &str| match document.get(name) {
        Some(Document::Number(number)) => number.as_i64(),
        None => Some(0),
        _ => None,
    };
    let Document::Map(entries) = document else {
        return None;
    };
    if entries
        .iter()
        .any(|(name, _)| name != "seconds" && name != "nanos")
    {
        return None;
    }
    let (seconds, nanos) = (part("seconds")?, part("nanos")?);
    let raw = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Some(Document::Time(Box::new(Time {
        text: time::moment(raw, time::Unit::Nanos)?,
        raw: Number::from(raw),
    })))
}
