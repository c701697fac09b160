//! Avro's binary encoding into documents.

use crate::decimal;
use crate::document::{Document, Number, Time};
use crate::formats::patch::Cursor;
use crate::limits::Budget;
use crate::report::Refusal;
use crate::time;

use super::schema::{AvroSchema, Field, Logical, Type, TypeId};

pub(super) fn value(
    schema: &AvroSchema,
    id: TypeId,
    from: &mut Cursor<'_>,
    budget: &mut Budget,
) -> Result<Document, Refusal> {
    budget.node()?;
    match schema.get(id) {
        Type::Null => Ok(Document::Null),
        Type::Boolean => boolean(from),
        Type::Int(logical) => int(from).map(|value| number(value, *logical)),
        Type::Long(logical) => long(from).map(|value| number(value, *logical)),
        Type::Float => Ok(Document::float32(f32::from_le_bytes(from.array()?))),
        Type::Double => Ok(Document::float(f64::from_le_bytes(from.array()?))),
        Type::Bytes(logical) => {
            let length = length(from)?;
            Ok(bytes(from.take(length)?, *logical))
        }
        Type::String(_) => text(from).map(Document::text),
        Type::Fixed { size, logical, .. } => Ok(bytes(from.take(*size)?, *logical)),
        Type::Enum { name, symbols } => symbol(from, name, symbols),
        Type::Record { fields, .. } => record(schema, fields, from, budget),
        Type::Array(items) => array(schema, *items, from, budget),
        Type::Map(values) => map(schema, *values, from, budget),
        Type::Union(branches) => {
            let branch = branch(from, branches)?;
            budget.enter()?;
            let document = value(schema, branch, from, budget);
            budget.leave();
            document
        }
    }
}

/// A variable length zig-zag number.
#[inline]
pub(super) fn long(from: &mut Cursor<'_>) -> Result<i64, Refusal> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = from.byte()?;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err(Refusal::new(format!(
        "the number before byte {} is longer than 64 bits",
        from.at
    )))
}

/// The branch of a union that comes next.
pub(super) fn branch(from: &mut Cursor<'_>, branches: &[TypeId]) -> Result<TypeId, Refusal> {
    let index = long(from)?;
    let branch = usize::try_from(index)
        .ok()
        .and_then(|index| branches.get(index));
    branch.copied().ok_or_else(|| {
        Refusal::new(format!(
            "the union before byte {} has {} branches, and {index} is none of them",
            from.at,
            branches.len()
        ))
    })
}

/// The number of items in the next block of a list or map; zero ends it. A negative count is
/// followed by the block's size in bytes, which readers may skip.
pub(super) fn block(from: &mut Cursor<'_>) -> Result<u64, Refusal> {
    let count = long(from)?;
    if count < 0 {
        long(from)?;
    }
    Ok(count.unsigned_abs())
}

pub(super) fn length(from: &mut Cursor<'_>) -> Result<usize, Refusal> {
    let length = long(from)?;
    usize::try_from(length).map_err(|_| {
        Refusal::new(format!(
            "the length {length} before byte {} is negative",
            from.at
        ))
    })
}

pub(super) fn text<'a>(from: &mut Cursor<'a>) -> Result<&'a str, Refusal> {
    let length = length(from)?;
    from.text(length)
}

fn int(from: &mut Cursor<'_>) -> Result<i64, Refusal> {
    let value = long(from)?;
    match i32::try_from(value) {
        Ok(value) => Ok(i64::from(value)),
        Err(_) => Err(Refusal::new(format!(
            "{value} before byte {} is no int of 32 bits",
            from.at
        ))),
    }
}

fn boolean(from: &mut Cursor<'_>) -> Result<Document, Refusal> {
    match from.byte()? {
        0 => Ok(Document::Bool(false)),
        1 => Ok(Document::Bool(true)),
        other => Err(Refusal::new(format!(
            "{other} at byte {} is no boolean",
            from.at - 1
        ))),
    }
}

fn symbol(from: &mut Cursor<'_>, name: &str, symbols: &[String]) -> Result<Document, Refusal> {
    let index = long(from)?;
    let symbol = usize::try_from(index)
        .ok()
        .and_then(|index| symbols.get(index));
    symbol
        .map(|symbol| Document::text(symbol.as_str()))
        .ok_or_else(|| Refusal::new(format!("the enum {name} has no symbol number {index}")))
}

fn record(
    schema: &AvroSchema,
    fields: &[Field],
    from: &mut Cursor<'_>,
    budget: &mut Budget,
) -> Result<Document, Refusal> {
    budget.enter()?;
    let mut entries = Vec::with_capacity(fields.len());
    for field in fields {
        let document = value(schema, field.kind, from, budget)
            .map_err(|refusal| in_field(&field.name, refusal))?;
        entries.push((field.name.clone(), document));
    }
    budget.leave();
    Ok(Document::Map(entries))
}

/// The innermost field is named first; its parents come before it, as a path.
fn in_field(name: &str, refusal: Refusal) -> Refusal {
    if refusal.is_limit() {
        return refusal;
    }
    let text = refusal.to_string();
    Refusal::new(match text.strip_prefix('/') {
        Some(_) => format!("/{name}{text}"),
        None => format!("/{name}: {text}"),
    })
}

/// Items may take no bytes at all (nulls, empty records), so the count is checked against the
/// values left and every item is paid for.
fn array(
    schema: &AvroSchema,
    items: TypeId,
    from: &mut Cursor<'_>,
    budget: &mut Budget,
) -> Result<Document, Refusal> {
    budget.enter()?;
    let mut all = Vec::new();
    loop {
        let count = block(from)?;
        if count == 0 {
            break;
        }
        budget.can_hold(count)?;
        all.reserve((count as usize).min(from.left()));
        for _ in 0..count {
            all.push(value(schema, items, from, budget)?);
        }
    }
    budget.leave();
    Ok(Document::List(all))
}

fn map(
    schema: &AvroSchema,
    values: TypeId,
    from: &mut Cursor<'_>,
    budget: &mut Budget,
) -> Result<Document, Refusal> {
    budget.enter()?;
    let mut all = Vec::new();
    loop {
        let count = block(from)?;
        if count == 0 {
            break;
        }
        budget.can_hold(count)?;
        for _ in 0..count {
            let key = text(from)?.to_owned();
            all.push((key, value(schema, values, from, budget)?));
        }
    }
    budget.leave();
    Ok(Document::object(all))
}

/// A number with its meaning; a moment beyond the calendar stays a number.
fn number(value: i64, logical: Logical) -> Document {
    let text = match logical {
        Logical::Date => time::day(value),
        Logical::TimeOfDay(unit) => time::of_day(value, unit),
        Logical::Moment(unit) => time::moment(i128::from(value), unit),
        Logical::Local(unit) => time::local(i128::from(value), unit),
        _ => None,
    };
    match text {
        Some(text) => Document::Time(Box::new(Time {
            text,
            raw: Number::from(value),
        })),
        None => Document::int(value),
    }
}

fn bytes(bytes: &[u8], logical: Logical) -> Document {
    match logical {
        Logical::Decimal { scale } if !bytes.is_empty() && bytes.len() <= decimal::MOST_BYTES => {
            Document::Decimal(decimal::place_point(&decimal::integer_text(bytes), scale))
        }
        Logical::Uuid => uuid::Uuid::from_slice(bytes).map_or_else(
            |_| Document::Bytes(bytes.to_vec()),
            |id| Document::text(id.to_string()),
        ),
        Logical::Duration => duration(bytes).unwrap_or_else(|| Document::Bytes(bytes.to_vec())),
        _ => Document::Bytes(bytes.to_vec()),
    }
}

/// Months, days and milliseconds, three little-endian numbers.
fn duration(bytes: &[u8]) -> Option<Document> {
    let part = |at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|part| part.try_into().ok())
            .map(u32::from_le_bytes)
            .map(|part| Document::int(i64::from(part)))
    };
    Some(Document::Map(vec![
        ("months".into(), part(0)?),
        ("days".into(), part(4)?),
        ("milliseconds".into(), part(8)?),
    ]))
}
