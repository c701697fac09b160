//! The wire: tags and values, without any schema.

use std::ops::Range;

use crate::formats::patch::Cursor;
use crate::report::Refusal;

/// One field as it stands on the wire.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub number: u32,
    pub value: Value,
    /// The whole of it, tag included.
    pub raw: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    /// The place of the bytes, length not included.
    Bytes(Range<usize>),
    /// The place of the fields of a group, tags not included.
    Group(Range<usize>),
}

/// How deep groups may nest; messages are limited by the budget.
const GROUPS: usize = 100;

/// Reads the next field, or nothing at the end.
pub(super) fn next(from: &mut Cursor<'_>) -> Result<Option<Record>, Refusal> {
    if from.left() == 0 {
        return Ok(None);
    }
    record(from, GROUPS).map(Some)
}

/// All fields of a message.
pub(super) fn records(bytes: &[u8]) -> Result<Vec<Record>, Refusal> {
    let mut from = Cursor::new(bytes);
    let mut all = Vec::new();
    while let Some(record) = next(&mut from)? {
        all.push(record);
    }
    Ok(all)
}

fn record(from: &mut Cursor<'_>, depth: usize) -> Result<Record, Refusal> {
    let start = from.at;
    let (number, wire) = tag(from)?;
    let value = match wire {
        0 => Value::Varint(varint(from)?),
        1 => Value::Fixed64(from.array()?),
        2 => {
            let length = usize::try_from(varint(from)?).map_err(|_| from.cut())?;
            from.take(length)?;
            Value::Bytes(from.at - length..from.at)
        }
        3 => Value::Group(group(from, number, depth)?),
        5 => Value::Fixed32(from.array()?),
        other => {
            return Err(Refusal::new(format!(
                "the wire type {other} of field {number} at byte {start} does not belong here"
            )));
        }
    };
    Ok(Record {
        number,
        value,
        raw: start..from.at,
    })
}

fn tag(from: &mut Cursor<'_>) -> Result<(u32, u8), Refusal> {
    let start = from.at;
    let tag = varint(from)?;
    let number = u32::try_from(tag >> 3)
        .ok()
        .filter(|number| (1..1 << 29).contains(number));
    let number = number.ok_or_else(|| {
        Refusal::new(format!(
            "the tag at byte {start} has the field number {}, which cannot be",
            tag >> 3
        ))
    })?;
    Ok((number, (tag & 7) as u8))
}

fn group(from: &mut Cursor<'_>, number: u32, depth: usize) -> Result<Range<usize>, Refusal> {
    if depth == 0 {
        return Err(Refusal::limit(format!(
            "groups nest deeper than {GROUPS} levels"
        )));
    }
    let start = from.at;
    loop {
        let before = from.at;
        let (other, wire) = tag(from)?;
        if wire == 4 {
            return if other == number {
                Ok(start..before)
            } else {
                Err(Refusal::new(format!("the group {number} ends as {other}")))
            };
        }
        from.at = before;
        record(from, depth - 1)?;
    }
}

/// A number of up to ten bytes, seven bits each.
#[inline]
pub(super) fn varint(from: &mut Cursor<'_>) -> Result<u64, Refusal> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = from.byte()?;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Refusal::new(format!(
        "the number before byte {} is longer than 64 bits",
        from.at
    )))
}

pub(super) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn write_tag(number: u32, wire: u8, out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | u64::from(wire), out);
}

/// Whether bytes without a mark could well be a Protobuf message: fields to the end, with numbers
/// as people give them.
pub(crate) fn looks_like_wire(bytes: &[u8]) -> bool {
    if bytes.len() < 2 {
        return false;
    }
    let Ok(records) = records(bytes) else {
        return false;
    };
    let text = records.iter().any(|record| matches!(&record.value, Value::Bytes(range) if range.len() > 2 && std::str::from_utf8(&bytes[range.clone()]).is_ok_and(crate::formats::text::is_printable)));
    let highest = if text { 1024 } else { 32 };
    records
        .iter()
        .all(|record| record.number <= highest && !matches!(record.value, Value::Group(_)))
}
