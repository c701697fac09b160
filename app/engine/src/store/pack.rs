//! A delivery as one run of bytes, so that a hundred thousand of them cost little more than their own bytes.
//!
//! A [`Delivery`] in memory is a tree of strings, maps and vectors; packed it is its bytes with variable-length lengths in
//! between. Unpacking slices the packed bytes and copies none of the bodies. The form never leaves the process.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::{BufMut, Bytes};
use dlo_core::{Delivery, Header, Lock, Message, Millis, Position, Typed, Value};

/// Appends a delivery to `out`.
pub fn pack(delivery: &Delivery, out: &mut Vec<u8>) {
    let message = &delivery.message;
    put_optional(out, message.key.as_deref());
    put_optional(out, message.body.as_deref());
    put_headers(out, &message.headers);
    put_map(out, &message.properties);
    put_position(out, &delivery.position);
    put_optional(out, delivery.lock.as_ref().map(|lock| lock.0.as_bytes()));
    put_number(
        out,
        delivery
            .time
            .map(|time| u128::from(zigzag(time.0)) + 1)
            .unwrap_or_default(),
    );
    put_number(
        out,
        delivery
            .delivery_count
            .map(|count| u128::from(count) + 1)
            .unwrap_or_default(),
    );
    put_map(out, &delivery.facts);
}

/// Reads what [`pack`] wrote. `None` only when the bytes were not written by it.
pub fn unpack(bytes: &Bytes) -> Option<Delivery> {
    let mut reader = Reader { bytes, at: 0 };
    let message = Message {
        key: reader.optional()?,
        body: reader.optional()?,
        headers: reader.headers()?,
        properties: reader.map()?,
    };
    let position = reader.position()?;
    let lock = match reader.optional()? {
        Some(token) => Some(Lock::new(std::str::from_utf8(&token).ok()?)),
        None => None,
    };
    let time = match reader.number()? {
        0 => None,
        number => Some(Millis(unzigzag(u64::try_from(number - 1).ok()?))),
    };
    let delivery_count = match reader.number()? {
        0 => None,
        number => Some(u64::try_from(number - 1).ok()?),
    };
    Some(Delivery {
        message,
        position,
        lock,
        time,
        delivery_count,
        facts: reader.map()?,
    })
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn put_number(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u128);
    out.extend_from_slice(bytes);
}

/// Length plus one, so that null and empty stay two things.
fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.push(0),
        Some(bytes) => {
            put_number(out, bytes.len() as u128 + 1);
            out.extend_from_slice(bytes);
        }
    }
}

fn put_headers(out: &mut Vec<u8>, headers: &[Header]) {
    put_number(out, headers.len() as u128);
    for header in headers {
        put_bytes(out, header.name.as_bytes());
        put_typed(out, &header.typed);
    }
}

fn put_map(out: &mut Vec<u8>, map: &BTreeMap<String, Value>) {
    put_number(out, map.len() as u128);
    for (name, value) in map {
        put_bytes(out, name.as_bytes());
        put_value(out, value);
    }
}

/// Names of types that connectors use, so that the usual ones cost one byte and borrow when they are read.
const KINDS: [&str; 28] = [
    "bytes",
    "longstr",
    "shortstr",
    "boolean",
    "short-short-int",
    "short-short-uint",
    "short-int",
    "short-uint",
    "long-int",
    "long-uint",
    "long-long-int",
    "float",
    "double",
    "decimal",
    "timestamp",
    "table",
    "array",
    "void",
    "String",
    "Number",
    "Binary",
    "string",
    "int",
    "long",
    "null",
    "bool",
    "binary",
    "list",
];

fn put_typed(out: &mut Vec<u8>, typed: &Typed) {
    match KINDS.iter().position(|kind| *kind == typed.kind) {
        Some(index) => out.push(index as u8 + 1),
        None => {
            out.push(0);
            put_bytes(out, typed.kind.as_bytes());
        }
    }
    put_value(out, &typed.value);
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(false) => out.push(1),
        Value::Bool(true) => out.push(2),
        Value::Int(int) => {
            out.push(3);
            out.put_i128(*int);
        }
        Value::Float(float) => {
            out.push(4);
            out.put_u64(float.to_bits());
        }
        Value::Decimal { unscaled, scale } => {
            out.push(5);
            out.put_i128(*unscaled);
            out.push(*scale);
        }
        Value::Bytes(bytes) => {
            out.push(6);
            put_bytes(out, bytes);
        }
        Value::Time(millis) => {
            out.push(7);
            out.put_i128(*millis);
        }
        Value::Table(entries) => {
            out.push(8);
            put_headers(out, entries);
        }
        Value::List(items) => {
            out.push(9);
            put_number(out, items.len() as u128);
            items.iter().for_each(|item| put_typed(out, item));
        }
    }
}

fn put_position(out: &mut Vec<u8>, position: &Position) {
    match position {
        Position::Offset { partition, offset } => {
            out.push(0);
            put_number(out, u128::from(zigzag(i64::from(*partition))));
            put_number(out, u128::from(zigzag(*offset)));
        }
        Position::Index { index } => {
            out.push(1);
            put_number(out, u128::from(*index));
        }
        Position::Id { id } => {
            out.push(2);
            put_bytes(out, id.as_bytes());
        }
    }
}

struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u128> {
        let mut number = 0u128;
        for shift in (0..126).step_by(7) {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<Bytes> {
        let end = self
            .at
            .checked_add(length)
            .filter(|end| *end <= self.bytes.len())?;
        let slice = self.bytes.slice(self.at..end);
        self.at = end;
        Some(slice)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.as_ref().try_into().ok()
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn blob(&mut self) -> Option<Bytes> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.blob()?.to_vec()).ok()
    }

    fn optional(&mut self) -> Option<Option<Bytes>> {
        match self.length()? {
            0 => Some(None),
            length => self.take(length - 1).map(Some),
        }
    }

    fn headers(&mut self) -> Option<Vec<Header>> {
        let count = self.length()?;
        (0..count)
            .map(|_| {
                Some(Header {
                    name: self.text()?,
                    typed: self.typed()?,
                })
            })
            .collect()
    }

    fn map(&mut self) -> Option<BTreeMap<String, Value>> {
        let count = self.length()?;
        (0..count)
            .map(|_| Some((self.text()?, self.value()?)))
            .collect()
    }

    fn typed(&mut self) -> Option<Typed> {
        let kind = match self.byte()? {
            0 => Cow::Owned(self.text()?),
            index => Cow::Borrowed(*KINDS.get(usize::from(index) - 1)?),
        };
        Some(Typed {
            kind,
            value: self.value()?,
        })
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            0 => Value::Null,
            1 => Value::Bool(false),
            2 => Value::Bool(true),
            3 => Value::Int(i128::from_be_bytes(self.array()?)),
            4 => Value::Float(f64::from_bits(u64::from_be_bytes(self.array()?))),
            5 => Value::Decimal {
                unscaled: i128::from_be_bytes(self.array()?),
                scale: self.byte()?,
            },
            6 => Value::Bytes(self.blob()?),
            7 => Value::Time(i128::from_be_bytes(self.array()?)),
            8 => Value::Table(self.headers()?),
            9 => {
                let count = self.length()?;
                Value::List((0..count).map(|_| self.typed()).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    fn position(&mut self) -> Option<Position> {
        Some(match self.byte()? {
            0 => Position::Offset {
                partition: i32::try_from(unzigzag(u64::try_from(self.number()?).ok()?)).ok()?,
                offset: unzigzag(u64::try_from(self.number()?).ok()?),
            },
            1 => Position::Index {
                index: u64::try_from(self.number()?).ok()?,
            },
            2 => Position::Id { id: self.text()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(delivery: &Delivery) {
        let mut packed = Vec::new();
        pack(delivery, &mut packed);
        assert_eq!(unpack(&Bytes::from(packed)).as_ref(), Some(delivery));
    }

    #[test]
    fn everything_comes_back_as_it_was() {
        let nested = Value::List(vec![
            Typed::new(
                "table",
                Value::Table(vec![Header::new(
                    "n",
                    "long-long-int",
                    Value::Int(-9_007_199_254_740_993),
                )]),
            ),
            Typed::new("Number.int", Value::text("12")),
            Typed::new("double", Value::Float(f64::NEG_INFINITY)),
            Typed::new(
                "decimal",
                Value::Decimal {
                    unscaled: -1230,
                    scale: 2,
                },
            ),
            Typed::new("timestamp", Value::Time(-1)),
            Typed::new("boolean", Value::Bool(true)),
        ]);
        let message = Message {
            key: Some(Bytes::new()),
            headers: vec![
                Header::new("twice", "bytes", Value::Null),
                Header::new("twice", "bytes", Value::text("")),
                Header::new("x-death", "array", nested),
            ],
            properties: BTreeMap::from([(
                "content_type".to_owned(),
                Value::text("application/json"),
            )]),
            body: Some((0..=255).collect::<Vec<u8>>().into()),
        };
        for position in [
            Position::Offset {
                partition: -1,
                offset: i64::MAX,
            },
            Position::Index { index: u64::MAX },
            Position::Id {
                id: "é".to_owned()
            },
        ] {
            check(&Delivery {
                message: message.clone(),
                position,
                lock: Some(Lock::new("7")),
                time: Some(Millis(i64::MIN)),
                delivery_count: Some(u64::MAX),
                facts: BTreeMap::from([("redelivered".to_owned(), Value::Bool(false))]),
            });
        }
        check(&Delivery {
            message: Message::default(),
            position: Position::Index { index: 0 },
            lock: None,
            time: None,
            delivery_count: None,
            facts: BTreeMap::new(),
        });
    }

    #[test]
    fn broken_bytes_are_refused_and_do_not_panic() {
        let mut packed = Vec::new();
        let message = Message {
            body: Some(Bytes::from_static(b"abc")),
            ..Message::default()
        };
        let position = Position::Index { index: 3 };
        let delivery = Delivery {
            message,
            position,
            lock: None,
            time: None,
            delivery_count: None,
            facts: BTreeMap::new(),
        };
        pack(&delivery, &mut packed);
        for end in 0..packed.len() {
            assert_eq!(unpack(&Bytes::copy_from_slice(&packed[..end])), None);
        }
    }
}
