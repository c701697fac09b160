//! MessagePack. <https://github.com/msgpack/msgpack/blob/master/spec.md>
//!
//! Read by ourselves and not by a library, because a head of five bytes may claim four billion
//! items and every value must be paid for before it is made.

use crate::document::{Document, Number, Tagged, Time};
use crate::limits::Budget;
use crate::report::Refusal;
use crate::time;

use super::patch::{self, Codec, Cursor};

/// Reads one value, to the end of the bytes.
pub fn decode(bytes: &[u8], budget: &mut Budget) -> Result<Document, Refusal> {
    let mut cursor = Cursor::new(bytes);
    let document = value(&mut cursor, budget)?;
    cursor.end()?;
    Ok(document)
}

/// Writes an edited document over the bytes it was read from.
pub fn encode(bytes: &[u8], old: &Document, new: &Document) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    patch::encode::<MessagePack>(bytes, old, new, &mut out)?;
    Ok(out)
}

/// Writes a document anew, each value in its shortest form.
pub fn write(document: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
    MessagePack::write(document, out)
}

fn value(from: &mut Cursor<'_>, budget: &mut Budget) -> Result<Document, Refusal> {
    budget.node()?;
    let head = from.byte()?;
    Ok(match head {
        0x00..=0x7f => Document::int(i64::from(head)),
        0x80..=0x8f => return map(from, usize::from(head & 0x0f), budget),
        0x90..=0x9f => return list(from, usize::from(head & 0x0f), budget),
        0xa0..=0xbf => text(from, usize::from(head & 0x1f))?,
        0xc0 => Document::Null,
        0xc1 => {
            return Err(Refusal::new(format!(
                "the byte c1 at {} is never used",
                from.at - 1
            )));
        }
        0xc2 => Document::Bool(false),
        0xc3 => Document::Bool(true),
        0xc4..=0xc6 => {
            let length = length(from, head - 0xc4)?;
            Document::Bytes(from.take(length)?.to_vec())
        }
        0xc7..=0xc9 => {
            let length = length(from, head - 0xc7)?;
            extension(from, length)?
        }
        0xca => Document::float32(f32::from_be_bytes(from.array()?)),
        0xcb => Document::float(f64::from_be_bytes(from.array()?)),
        0xcc => Document::int(i64::from(from.byte()?)),
        0xcd => Document::int(i64::from(u16::from_be_bytes(from.array()?))),
        0xce => Document::int(i64::from(u32::from_be_bytes(from.array()?))),
        0xcf => Document::Number(Number::from(u64::from_be_bytes(from.array()?))),
        0xd0 => Document::int(i64::from(i8::from_be_bytes(from.array()?))),
        0xd1 => Document::int(i64::from(i16::from_be_bytes(from.array()?))),
        0xd2 => Document::int(i64::from(i32::from_be_bytes(from.array()?))),
        0xd3 => Document::int(i64::from_be_bytes(from.array()?)),
        0xd4..=0xd8 => extension(from, 1 << (head - 0xd4))?,
        0xd9..=0xdb => {
            let length = length(from, head - 0xd9)?;
            text(from, length)?
        }
        0xdc..=0xdd => {
            let count = length(from, head - 0xdc + 1)?;
            return list(from, count, budget);
        }
        0xde..=0xdf => {
            let count = length(from, head - 0xde + 1)?;
            return map(from, count, budget);
        }
        0xe0..=0xff => Document::int(i64::from(head as i8)),
    })
}

/// A length of one, two or four bytes.
fn length(from: &mut Cursor<'_>, size: u8) -> Result<usize, Refusal> {
    Ok(match size {
        0 => usize::from(from.byte()?),
        1 => usize::from(u16::from_be_bytes(from.array()?)),
        _ => u32::from_be_bytes(from.array()?) as usize,
    })
}

/// Old writers put bytes where text belongs; such bytes stay bytes.
fn text(from: &mut Cursor<'_>, length: usize) -> Result<Document, Refusal> {
    let bytes = from.take(length)?;
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => Document::text(text),
        Err(_) => Document::Tagged(Box::new(Tagged {
            tag: "str".into(),
            value: Document::Bytes(bytes.to_vec()),
        })),
    })
}

fn list(from: &mut Cursor<'_>, count: usize, budget: &mut Budget) -> Result<Document, Refusal> {
    claimed(from, count, 1, budget)?;
    budget.enter()?;
    let items = (0..count)
        .map(|_| value(from, budget))
        .collect::<Result<_, _>>()?;
    budget.leave();
    Ok(Document::List(items))
}

fn map(from: &mut Cursor<'_>, count: usize, budget: &mut Budget) -> Result<Document, Refusal> {
    claimed(from, count, 2, budget)?;
    budget.enter()?;
    let entries = (0..count)
        .map(|_| Ok((value(from, budget)?, value(from, budget)?)))
        .collect::<Result<_, Refusal>>()?;
    budget.leave();
    Ok(Document::pairs(entries))
}

/// Every value takes at least a byte, so a count beyond the bytes left lies.
fn claimed(from: &Cursor<'_>, count: usize, each: usize, budget: &Budget) -> Result<(), Refusal> {
    if count.saturating_mul(each) > from.left() {
        return Err(Refusal::new(format!(
            "{count} items are claimed at byte {}, but {} bytes are left",
            from.at,
            from.left()
        )));
    }
    budget.can_hold(count as u64)
}

fn extension(from: &mut Cursor<'_>, length: usize) -> Result<Document, Refusal> {
    let kind = from.byte()? as i8;
    let bytes = from.take(length)?;
    let moment = if kind == -1 { timestamp(bytes) } else { None };
    Ok(moment.unwrap_or_else(|| {
        Document::Tagged(Box::new(Tagged {
            tag: format!("ext {kind}"),
            value: Document::Bytes(bytes.to_vec()),
        }))
    }))
}

/// The timestamp extension: 4 bytes of seconds, 8 of nanoseconds and seconds, or 12 of both. The
/// raw number is in nanoseconds.
fn timestamp(bytes: &[u8]) -> Option<Document> {
    let (seconds, nanos) = match *bytes {
        [a, b, c, d] => (i64::from(u32::from_be_bytes([a, b, c, d])), 0),
        [_, _, _, _, _, _, _, _] => {
            let both = u64::from_be_bytes(bytes.try_into().ok()?);
            ((both & 0x3_ffff_ffff) as i64, (both >> 34) as u32)
        }
        [a, b, c, d, ref rest @ ..] if rest.len() == 8 => (
            i64::from_be_bytes(rest.try_into().ok()?),
            u32::from_be_bytes([a, b, c, d]),
        ),
        _ => return None,
    };
    let raw = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Some(Document::Time(Box::new(Time {
        text: time::moment(raw, time::Unit::Nanos)?,
        raw: Number::from(raw),
    })))
}

struct MessagePack;

impl Codec for MessagePack {
    fn value(bytes: &[u8], at: usize, budget: &mut Budget) -> Result<(Document, usize), Refusal> {
        let mut cursor = Cursor { bytes, at };
        let document = value(&mut cursor, budget)?;
        Ok((document, cursor.at))
    }

    fn head(bytes: &[u8]) -> Option<(usize, Option<usize>)> {
        let mut cursor = Cursor::new(bytes);
        let count = match cursor.byte().ok()? {
            head @ 0x80..=0x9f => usize::from(head & 0x0f),
            0xdc | 0xde => length(&mut cursor, 1).ok()?,
            0xdd | 0xdf => length(&mut cursor, 2).ok()?,
            _ => return None,
        };
        Some((cursor.at, Some(count)))
    }

    fn write_list_head(count: usize, out: &mut Vec<u8>) {
        head(
            out,
            count,
            [(0x90, 16), (0, 0), (0xdc, 1 << 16), (0xdd, usize::MAX)],
        );
    }

    fn write_map_head(count: usize, out: &mut Vec<u8>) {
        head(
            out,
            count,
            [(0x80, 16), (0, 0), (0xde, 1 << 16), (0xdf, usize::MAX)],
        );
    }

    fn write(document: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
        match document {
            Document::Null => out.push(0xc0),
            Document::Bool(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
            Document::Number(number) => write_number(number, out)?,
            Document::Float(value) => write_double(*value, out),
            Document::Text(text) | Document::Decimal(text) => {
                head(
                    out,
                    text.len(),
                    [
                        (0xa0, 32),
                        (0xd9, 1 << 8),
                        (0xda, 1 << 16),
                        (0xdb, usize::MAX),
                    ],
                );
                out.extend_from_slice(text.as_bytes());
            }
            Document::Bytes(bytes) => {
                head(
                    out,
                    bytes.len(),
                    [(0, 0), (0xc4, 1 << 8), (0xc5, 1 << 16), (0xc6, usize::MAX)],
                );
                out.extend_from_slice(bytes);
            }
            Document::Time(time) => write_time(time, out)?,
            Document::List(items) => {
                Self::write_list_head(items.len(), out);
                items.iter().try_for_each(|item| Self::write(item, out))?;
            }
            Document::Map(entries) => {
                Self::write_map_head(entries.len(), out);
                entries.iter().try_for_each(|(key, value)| {
                    Self::write(&Document::text(key), out).and_then(|()| Self::write(value, out))
                })?;
            }
            Document::Pairs(entries) => {
                Self::write_map_head(entries.len(), out);
                entries.iter().try_for_each(|(key, value)| {
                    Self::write(key, out).and_then(|()| Self::write(value, out))
                })?;
            }
            Document::Tagged(tagged) => write_tagged(tagged, out)?,
            Document::Utf16(_) => {
                return Err(Refusal::new(
                    "MessagePack text cannot hold a lone surrogate",
                ));
            }
        }
        Ok(())
    }
}

/// Writes the shortest head that can hold a length: each with its code and the lengths below it.
fn head(out: &mut Vec<u8>, length: usize, [tiny, short, medium, long]: [(u8, usize); 4]) {
    if length < tiny.1 {
        out.push(tiny.0 | length as u8);
    } else if length < short.1 {
        out.extend([short.0, length as u8]);
    } else if length < medium.1 {
        out.push(medium.0);
        out.extend((length as u16).to_be_bytes());
    } else {
        out.push(long.0);
        out.extend((length as u32).to_be_bytes());
    }
}

fn write_number(number: &Number, out: &mut Vec<u8>) -> Result<(), Refusal> {
    if !number.is_int() {
        write_double(number.as_f64(), out);
        return Ok(());
    }
    if let Some(value) = number.as_u64() {
        match value {
            0..=0x7f => out.push(value as u8),
            0x80..=0xff => out.extend([0xcc, value as u8]),
            0x100..=0xffff => {
                out.push(0xcd);
                out.extend((value as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                out.push(0xce);
                out.extend((value as u32).to_be_bytes());
            }
            _ => {
                out.push(0xcf);
                out.extend(value.to_be_bytes());
            }
        }
        return Ok(());
    }
    let value = number.as_i64().ok_or_else(|| {
        Refusal::new(format!(
            "{number} is beyond 64 bits, the most that MessagePack has"
        ))
    })?;
    match value {
        -32..=-1 => out.push(value as i8 as u8),
        -128..=-33 => out.extend([0xd0, value as i8 as u8]),
        -32_768..=-129 => {
            out.push(0xd1);
            out.extend((value as i16).to_be_bytes());
        }
        -2_147_483_648..=-32_769 => {
            out.push(0xd2);
            out.extend((value as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend(value.to_be_bytes());
        }
    }
    Ok(())
}

fn write_double(value: f64, out: &mut Vec<u8>) {
    out.push(0xcb);
    out.extend(value.to_be_bytes());
}

fn write_time(time: &Time, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let raw = time
        .raw
        .as_i128()
        .ok_or_else(|| Refusal::new("the time has no whole number of nanoseconds"))?;
    let seconds = i64::try_from(raw.div_euclid(1_000_000_000))
        .map_err(|_| Refusal::new("the time is out of range"))?;
    let nanos = raw.rem_euclid(1_000_000_000) as u32;
    match (u32::try_from(seconds), nanos) {
        (Ok(seconds), 0) => {
            out.extend([0xd6, 0xff]);
            out.extend(seconds.to_be_bytes());
        }
        _ if (0..1 << 34).contains(&seconds) => {
            out.extend([0xd7, 0xff]);
            out.extend((u64::from(nanos) << 34 | seconds as u64).to_be_bytes());
        }
        _ => {
            out.extend([0xc7, 12, 0xff]);
            out.extend(nanos.to_be_bytes());
            out.extend(seconds.to_be_bytes());
        }
    }
    Ok(())
}

fn write_tagged(tagged: &Tagged, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let Document::Bytes(bytes) = &tagged.value else {
        return Err(Refusal::new(format!(
            "a value marked \"{}\" must be bytes in MessagePack",
            tagged.tag
        )));
    };
    if tagged.tag == "str" {
        head(
            out,
            bytes.len(),
            [
                (0xa0, 32),
                (0xd9, 1 << 8),
                (0xda, 1 << 16),
                (0xdb, usize::MAX),
            ],
        );
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let kind: i8 = tagged
        .tag
        .strip_prefix("ext ")
        .and_then(|kind| kind.parse().ok())
        .ok_or_else(|| {
            Refusal::new(format!(
                "\"{}\" is no mark of MessagePack; write \"ext N\"",
                tagged.tag
            ))
        })?;
    match bytes.len() {
        1 => out.push(0xd4),
        2 => out.push(0xd5),
        4 => out.push(0xd6),
        8 => out.push(0xd7),
        16 => out.push(0xd8),
        length => head(
            out,
            length,
            [(0, 0), (0xc7, 1 << 8), (0xc8, 1 << 16), (0xc9, usize::MAX)],
        ),
    }
    out.push(kind as u8);
    out.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn read(bytes: &[u8]) -> Result<Document, Refusal> {
        decode(bytes, &mut Budget::new(&Limits::default()))
    }

    /// The bytes decode to the JSON, and writing that anew gives the same bytes.
    fn check(hex: &str, json: &str) {
        let bytes = crate::formats::hex::parse(hex).unwrap();
        let document = read(&bytes).unwrap();
        assert_eq!(document.to_json().to_string(), json);
        let mut again = Vec::new();
        write(&document, &mut again).unwrap();
        assert_eq!(crate::formats::hex::spaced(&again), hex);
    }

    #[test]
    fn values() {
        check("82 a1 61 01 a1 62 c0", r#"{"a":1,"b":null}"#);
        check(
            "93 7f cc 80 cf ff ff ff ff ff ff ff ff",
            "[127,128,18446744073709551615]",
        );
        check(
            "95 ff e0 d0 80 d1 80 00 d3 80 00 00 00 00 00 00 00",
            "[-1,-32,-128,-32768,-9223372036854775808]",
        );
        check("c4 02 00 ff", r#"{"bytes":"AP8="}"#);
        check("81 01 c3", r#"{"pairs":[[1,true]]}"#);
        check("d4 05 aa", r#"{"tag":"ext 5","value":{"bytes":"qg=="}}"#);
        check(
            "d6 ff 00 00 00 01",
            r#"{"time":"1970-01-01T00:00:01Z","raw":1000000000}"#,
        );
        check("cb 7f f8 00 00 00 00 00 00", r#"{"float":"NaN"}"#);
    }

    #[test]
    fn lengths_that_lie() {
        for bytes in [
            &b"\xdd\xff\xff\xff\xff"[..],
            b"\xdf\xff\xff\xff\xff\x01",
            b"\xdb\xff\xff\xff\xffab",
            b"\xc1",
            b"\x92\x01",
            b"\x01\x02",
        ] {
            assert!(read(bytes).is_err());
        }
        assert!(
            read(&[0x91; 100_000]).unwrap_err().is_limit(),
            "a deep nest"
        );
    }

    #[test]
    fn an_edit_keeps_odd_spellings_beside_it() {
        // The number 1 written in nine bytes, beside text that is edited.
        let bytes =
            crate::formats::hex::parse("82 a1 61 d3 00 00 00 00 00 00 00 01 a1 62 d9 01 78")
                .unwrap();
        let old = read(&bytes).unwrap();
        let Document::Map(mut entries) = old.clone() else {
            panic!("map")
        };
        entries[1].1 = Document::text("yz");
        let edited = encode(&bytes, &old, &Document::Map(entries)).unwrap();
        assert_eq!(
            crate::formats::hex::spaced(&edited),
            "82 a1 61 d3 00 00 00 00 00 00 00 01 a1 62 a2 79 7a"
        );
        assert_eq!(encode(&bytes, &old, &old).unwrap(), bytes);
    }
}
