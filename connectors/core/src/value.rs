//! Typed header values, exact enough to go back to the broker as they came.

use std::borrow::Cow;

use bytes::Bytes;

/// A value in the broker's own type system, with what is needed to write the same bytes again.
///
/// The broker's name of the type stands beside it in [`Typed`]; for example AMQP's `long-int` and `long-long-int` are both
/// an [`Value::Int`] here.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value: AMQP `void`, a Kafka header without a value. Not the same as empty bytes.
    Null,
    Bool(bool),
    /// Any integer of any broker; wide enough for unsigned 64 bits.
    Int(i128),
    /// A 32- or 64-bit float; compared by bits, so that NaN equals itself.
    Float(f64),
    /// An exact decimal, `unscaled × 10^-scale`.
    Decimal {
        unscaled: i128,
        scale: u8,
    },
    /// A string or bytes: brokers do not promise that a string is UTF-8, so it is kept as bytes.
    Bytes(Bytes),
    /// Milliseconds since the Unix epoch. Wider than [`crate::Millis`], as AMQP allows 64 bits of seconds.
    Time(i128),
    /// Named values in order, duplicates kept.
    Table(Vec<Header>),
    List(Vec<Typed>),
}

impl Value {
    /// A string value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Bytes(Bytes::from(text.into()))
    }

    /// The value as text, when it is bytes that are UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The value as an integer, when it is one.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// The bytes, when it is a string or bytes.
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The entry of that name, when this is a table.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Table(entries) => entries
                .iter()
                .find(|entry| entry.name == name)
                .map(|entry| &entry.typed.value),
            _ => None,
        }
    }

    /// Bytes in memory beyond the value itself, for budgets.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Table(entries) => entries.iter().map(Header::heap_bytes).sum(),
            Self::List(items) => items
                .iter()
                .map(|item| size_of::<Typed>() + item.value.heap_bytes())
                .sum(),
            _ => 0,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) | (Self::Time(a), Self::Time(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (
                Self::Decimal {
                    unscaled: a,
                    scale: s,
                },
                Self::Decimal {
                    unscaled: b,
                    scale: t,
                },
            ) => (a, s) == (b, t),
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Table(a), Self::Table(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

/// A value with the broker's own name of its type, for example `longstr` (AMQP) or `Number.int` (SQS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    pub kind: Cow<'static, str>,
    pub value: Value,
}

impl Typed {
    pub fn new(kind: impl Into<Cow<'static, str>>, value: Value) -> Self {
        Self {
            kind: kind.into(),
            value,
        }
    }
}

/// One header. Order and duplicates matter, so headers always travel as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub typed: Typed,
}

impl Header {
    pub fn new(name: impl Into<String>, kind: impl Into<Cow<'static, str>>, value: Value) -> Self {
        Self {
            name: name.into(),
            typed: Typed::new(kind, value),
        }
    }

    /// The header's value without its type.
    pub fn value(&self) -> &Value {
        &self.typed.value
    }

    /// Bytes in memory, for budgets.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.name.len() + self.typed.value.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_empty_and_text_are_three_things() {
        let (null, empty, text) = (Value::Null, Value::text(""), Value::text("null"));
        assert!(null != empty && empty != text && null != text);
    }

    #[test]
    fn nan_equals_itself_and_negative_zero_differs_from_zero() {
        assert_eq!(Value::Float(f64::NAN), Value::Float(f64::NAN));
        assert_ne!(Value::Float(0.0), Value::Float(-0.0));
    }
}
