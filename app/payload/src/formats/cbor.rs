//! CBOR (RFC 8949), including items of indefinite length, half floats, tags and simple values.
//!
//! Read by ourselves for the same reason as MessagePack: every value is paid for before it is made.

use crate::document::{Document, Number, Tagged};
use crate::limits::Budget;
use crate::report::Refusal;

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
    patch::encode::<Cbor>(bytes, old, new, &mut out)?;
    Ok(out)
}

/// Writes a document anew, each value in its shortest form of definite length.
pub fn write(document: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
    Cbor::write(document, out)
}

/// The argument of a head: a number, or "indefinite".
fn argument(from: &mut Cursor<'_>, info: u8) -> Result<Option<u64>, Refusal> {
    Ok(Some(match info {
        0..=23 => u64::from(info),
        24 => u64::from(from.byte()?),
        25 => u64::from(u16::from_be_bytes(from.array()?)),
        26 => u64::from(u32::from_be_bytes(from.array()?)),
        27 => u64::from_be_bytes(from.array()?),
        31 => return Ok(None),
        _ => {
            return Err(Refusal::new(format!(
                "the head at byte {} is reserved",
                from.at - 1
            )));
        }
    }))
}

fn value(from: &mut Cursor<'_>, budget: &mut Budget) -> Result<Document, Refusal> {
    budget.node()?;
    let head = from.byte()?;
    if head >> 5 == 7 {
        return simple(from, head & 0x1f);
    }
    let argument = argument(from, head & 0x1f)?;
    match (head >> 5, argument) {
        (0, Some(number)) => Ok(Document::Number(Number::from(number))),
        (1, Some(number)) => Ok(Document::Number(Number::from(-1 - i128::from(number)))),
        (2, length) => Ok(Document::Bytes(string(from, length, 2)?)),
        (3, length) => String::from_utf8(string(from, length, 3)?)
            .map(Document::Text)
            .map_err(|_| Refusal::new("a text is not UTF-8")),
        (4, count) => list(from, count, budget),
        (5, count) => map(from, count, budget),
        (6, Some(tag)) => tagged(from, tag, budget),
        _ => Err(Refusal::new(format!(
            "the head at byte {} cannot be indefinite",
            from.at - 1
        ))),
    }
}

fn simple(from: &mut Cursor<'_>, info: u8) -> Result<Document, Refusal> {
    Ok(match info {
        20 => Document::Bool(false),
        21 => Document::Bool(true),
        22 => Document::Null,
        25 => Document::float(half(u16::from_be_bytes(from.array()?))),
        26 => Document::float32(f32::from_be_bytes(from.array()?)),
        27 => Document::float(f64::from_be_bytes(from.array()?)),
        24 => match from.byte()? {
            number @ 32.. => marked_simple(number),
            _ => return Err(Refusal::new("a simple value below 32 must take one byte")),
        },
        0..=23 => marked_simple(info),
        _ => {
            return Err(Refusal::new(format!(
                "the head at byte {} is reserved, or a break without a beginning",
                from.at - 1
            )));
        }
    })
}

fn marked_simple(number: u8) -> Document {
    Document::Tagged(Box::new(Tagged {
        tag: "simple".into(),
        value: Document::int(i64::from(number)),
    }))
}

/// A half float, widened: 1 bit sign, 5 exponent, 10 fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f64::from(bits & 0x3ff);
    sign * match bits >> 10 & 0x1f {
        0 => fraction * (-24f64).exp2(),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * (f64::from(exponent) - 25.0).exp2(),
    }
}

/// Text or bytes: of a length, or in pieces until a break.
fn string(from: &mut Cursor<'_>, length: Option<u64>, major: u8) -> Result<Vec<u8>, Refusal> {
    if let Some(length) = length {
        return Ok(from
            .take(usize::try_from(length).map_err(|_| from.cut())?)?
            .to_vec());
    }
    let mut whole = Vec::new();
    loop {
        let head = from.byte()?;
        if head == 0xff {
            return Ok(whole);
        }
        match (head >> 5 == major)
            .then(|| argument(from, head & 0x1f))
            .transpose()?
            .flatten()
        {
            Some(length) => whole
                .extend_from_slice(from.take(usize::try_from(length).map_err(|_| from.cut())?)?),
            None => {
                return Err(Refusal::new(
                    "a piece of a string is no string of definite length",
                ));
            }
        }
    }
}

fn list(
    from: &mut Cursor<'_>,
    count: Option<u64>,
    budget: &mut Budget,
) -> Result<Document, Refusal> {
    let items = children(from, count, budget, value)?;
    Ok(Document::List(items))
}

fn map(
    from: &mut Cursor<'_>,
    count: Option<u64>,
    budget: &mut Budget,
) -> Result<Document, Refusal> {
    let entries = children(from, count, budget, |from, budget| {
        Ok((value(from, budget)?, value(from, budget)?))
    })?;
    Ok(Document::pairs(entries))
}

fn children<T>(
    from: &mut Cursor<'_>,
    count: Option<u64>,
    budget: &mut Budget,
    read: fn(&mut Cursor<'_>, &mut Budget) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    budget.enter()?;
    let mut all = Vec::new();
    match count {
        Some(count) if count > from.left() as u64 => {
            return Err(Refusal::new(format!(
                "{count} items are claimed at byte {}, but {} bytes are left",
                from.at,
                from.left()
            )));
        }
        Some(count) => {
            budget.can_hold(count)?;
            for _ in 0..count {
                all.push(read(from, budget)?);
            }
        }
        None => {
            while from.bytes.get(from.at) != Some(&0xff) {
                all.push(read(from, budget)?);
            }
            from.at += 1;
        }
    }
    budget.leave();
    Ok(all)
}

/// Big numbers and decimal fractions become what they are; other tags are shown.
fn tagged(from: &mut Cursor<'_>, tag: u64, budget: &mut Budget) -> Result<Document, Refusal> {
    budget.enter()?;
    let inside = value(from, budget)?;
    budget.leave();
    let understood = match (tag, &inside) {
        (2 | 3, Document::Bytes(bytes)) => bignum(tag, bytes),
        (4, Document::List(parts)) => decimal(parts),
        _ => None,
    };
    Ok(understood.unwrap_or_else(|| {
        Document::Tagged(Box::new(Tagged {
            tag: tag.to_string(),
            value: inside,
        }))
    }))
}

fn bignum(tag: u64, bytes: &[u8]) -> Option<Document> {
    let mut wide = vec![0];
    wide.extend_from_slice(bytes);
    if tag == 3 {
        wide.iter_mut().for_each(|byte| *byte = !*byte);
    }
    // A small number written as a big one stays marked, so that it is written back alike.
    (bytes.len() > 8 && bytes.len() <= crate::decimal::MOST_BYTES && bytes.first() != Some(&0))
        .then(|| Document::Number(Number::from_checked(&crate::decimal::integer_text(&wide))))
}

fn decimal(parts: &[Document]) -> Option<Document> {
    let [Document::Number(exponent), Document::Number(mantissa)] = parts else {
        return None;
    };
    let scale = exponent
        .as_i64()
        .filter(|exponent| (-1_000..=0).contains(exponent))?;
    Some(Document::Decimal(crate::decimal::place_point(
        &mantissa.to_string(),
        scale.unsigned_abs() as usize,
    )))
}

struct Cbor;

impl Codec for Cbor {
    fn value(bytes: &[u8], at: usize, budget: &mut Budget) -> Result<(Document, usize), Refusal> {
        let mut cursor = Cursor { bytes, at };
        let document = value(&mut cursor, budget)?;
        Ok((document, cursor.at))
    }

    fn head(bytes: &[u8]) -> Option<(usize, Option<usize>)> {
        let mut cursor = Cursor::new(bytes);
        let head = cursor.byte().ok()?;
        if !matches!(head >> 5, 4 | 5) {
            return None;
        }
        let count = argument(&mut cursor, head & 0x1f).ok()?;
        Some((
            cursor.at,
            count.and_then(|count| usize::try_from(count).ok()),
        ))
    }

    fn write_list_head(count: usize, out: &mut Vec<u8>) {
        head(4, count as u64, out);
    }

    fn write_map_head(count: usize, out: &mut Vec<u8>) {
        head(5, count as u64, out);
    }

    fn write(document: &Document, out: &mut Vec<u8>) -> Result<(), Refusal> {
        match document {
            Document::Null => out.push(0xf6),
            Document::Bool(value) => out.push(if *value { 0xf5 } else { 0xf4 }),
            Document::Number(number) => write_number(number, out),
            Document::Float(value) => write_double(*value, out),
            Document::Text(text) => write_string(3, text.as_bytes(), out),
            Document::Bytes(bytes) => write_string(2, bytes, out),
            Document::Decimal(text) => write_decimal(text, out)?,
            Document::Time(time) => {
                out.push(0xc0);
                write_string(3, time.text.as_bytes(), out);
            }
            Document::List(items) => {
                Self::write_list_head(items.len(), out);
                items.iter().try_for_each(|item| Self::write(item, out))?;
            }
            Document::Map(entries) => {
                Self::write_map_head(entries.len(), out);
                for (key, value) in entries {
                    write_string(3, key.as_bytes(), out);
                    Self::write(value, out)?;
                }
            }
            Document::Pairs(entries) => {
                Self::write_map_head(entries.len(), out);
                entries.iter().try_for_each(|(key, value)| {
                    Self::write(key, out).and_then(|()| Self::write(value, out))
                })?;
            }
            Document::Tagged(tagged) => write_tagged(tagged, out)?,
            Document::Utf16(_) => {
                return Err(Refusal::new("CBOR text cannot hold a lone surrogate"));
            }
        }
        Ok(())
    }
}

fn head(major: u8, argument: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    match argument {
        0..=23 => out.push(major | argument as u8),
        24..=0xff => out.extend([major | 24, argument as u8]),
        0x100..=0xffff => {
            out.push(major | 25);
            out.extend((argument as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 26);
            out.extend((argument as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend(argument.to_be_bytes());
        }
    }
}

fn write_string(major: u8, bytes: &[u8], out: &mut Vec<u8>) {
    head(major, bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn write_number(number: &Number, out: &mut Vec<u8>) {
    if !number.is_int() {
        return write_double(number.as_f64(), out);
    }
    let wide = number.as_i128();
    if let Some(value) = wide.and_then(|value| u64::try_from(value).ok()) {
        head(0, value, out);
    } else if let Some(value) = wide.and_then(|value| u64::try_from(-1 - value).ok()) {
        head(1, value, out);
    } else {
        write_bignum(&number.to_string(), out);
    }
}

fn write_bignum(text: &str, out: &mut Vec<u8>) {
    let mut bytes = crate::decimal::integer_bytes(text);
    let negative = text.starts_with('-');
    if negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let start = bytes
        .iter()
        .position(|byte| *byte != 0)
        .unwrap_or(bytes.len());
    out.push(if negative { 0xc3 } else { 0xc2 });
    write_string(2, &bytes[start..], out);
}

fn write_double(value: f64, out: &mut Vec<u8>) {
    out.push(0xfb);
    out.extend(value.to_be_bytes());
}

fn write_decimal(text: &str, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let (digits, scale) = crate::decimal::parse(text)
        .ok_or_else(|| Refusal::new(format!("\"{text}\" is no decimal")))?;
    out.extend([0xc4, 0x82]);
    write_number(&Number::from(-(scale as i64)), out);
    let mantissa =
        Number::parse(&digits).ok_or_else(|| Refusal::new(format!("\"{text}\" is no decimal")))?;
    write_number(&mantissa, out);
    Ok(())
}

fn write_tagged(tagged: &Tagged, out: &mut Vec<u8>) -> Result<(), Refusal> {
    if tagged.tag == "simple" {
        let number = match &tagged.value {
            Document::Number(number) => {
                number.as_u64().and_then(|number| u8::try_from(number).ok())
            }
            _ => None,
        };
        match number {
            Some(number @ 0..=19 | number @ 23) => out.push(0xe0 | number),
            Some(number @ 32..) => out.extend([0xf8, number]),
            _ => {
                return Err(Refusal::new(
                    "a simple value is a number from 0 to 255 that is not reserved",
                ));
            }
        }
        return Ok(());
    }
    let tag = tagged.tag.parse().map_err(|_| {
        Refusal::new(format!(
            "\"{}\" is no tag of CBOR; a tag is a number",
            tagged.tag
        ))
    })?;
    head(6, tag, out);
    Cbor::write(&tagged.value, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn read(bytes: &[u8]) -> Result<Document, Refusal> {
        decode(bytes, &mut Budget::new(&Limits::default()))
    }

    fn check(hex: &str, json: &str) {
        let bytes = crate::formats::hex::parse(hex).unwrap();
        let document = read(&bytes).unwrap();
        assert_eq!(document.to_json().to_string(), json);
        let mut again = Vec::new();
        write(&document, &mut again).unwrap();
        assert_eq!(crate::formats::hex::spaced(&again), hex);
    }

    /// RFC 8949, appendix A.
    #[test]
    fn values() {
        check("a2 61 61 01 61 62 82 02 03", r#"{"a":1,"b":[2,3]}"#);
        check("1b ff ff ff ff ff ff ff ff", "18446744073709551615");
        check("3b ff ff ff ff ff ff ff ff", "-18446744073709551616");
        check("c2 49 01 00 00 00 00 00 00 00 00", "18446744073709551616");
        check("c3 49 01 00 00 00 00 00 00 00 00", "-18446744073709551617");
        check("c1 1a 51 4b 67 b0", r#"{"tag":"1","value":1363896240}"#);
        check("c4 82 21 19 6a b3", r#"{"decimal":"273.15"}"#);
        check("a1 01 02", r#"{"pairs":[[1,2]]}"#);
        check("f7", r#"{"tag":"simple","value":23}"#);
        check("44 01 02 03 04", r#"{"bytes":"AQIDBA=="}"#);
        check("fb 3f f1 99 99 99 99 99 9a", "1.1");
    }

    #[test]
    fn halves_and_pieces() {
        let says = |hex: &str| {
            read(&crate::formats::hex::parse(hex).unwrap())
                .unwrap()
                .to_json()
                .to_string()
        };
        assert_eq!(says("f9 3c 00"), "1.0");
        assert_eq!(says("f9 00 01"), "5.960464477539063e-8");
        assert_eq!(says("f9 7c 00"), r#"{"float":"Infinity"}"#);
        assert_eq!(
            says("7f 65 73 74 72 65 61 64 6d 69 6e 67 ff"),
            "\"streaming\""
        );
        assert_eq!(says("9f 01 82 02 03 9f 04 05 ff ff"), "[1,[2,3],[4,5]]");
        assert_eq!(says("bf 61 61 01 ff"), r#"{"a":1}"#);
    }

    #[test]
    fn lengths_that_lie() {
        for bytes in [
            &b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff"[..],
            b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff",
            b"\x9f\x01",
            b"\xff",
            b"\x1c",
            b"\x82\x01",
            b"\x7f\x01\xff",
        ] {
            assert!(read(bytes).is_err());
        }
        assert!(
            read(&[0x81; 100_000]).unwrap_err().is_limit(),
            "a deep nest"
        );
        assert!(
            read(&[0xc1; 100_000]).unwrap_err().is_limit(),
            "a deep nest of tags"
        );
    }

    #[test]
    fn an_edit_keeps_odd_spellings_beside_it() {
        let bytes =
            crate::formats::hex::parse("a2 61 61 1b 00 00 00 00 00 00 00 01 61 62 f9 3c 00")
                .unwrap();
        let old = read(&bytes).unwrap();
        let Document::Map(mut entries) = old.clone() else {
            panic!("map")
        };
        entries.push(("c".into(), Document::Null));
        let edited = encode(&bytes, &old, &Document::Map(entries)).unwrap();
        assert_eq!(
            crate::formats::hex::spaced(&edited),
            "a3 61 61 1b 00 00 00 00 00 00 00 01 61 62 f9 3c 00 61 63 f6"
        );
    }
}
