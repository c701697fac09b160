//! The exact value tree: what a payload says, with nothing rounded, reordered or merged.
//!
//! It is separate from `serde_json::Value` because a message may hold what JSON cannot say: bytes,
//! NaN, decimals, keys that repeat or are not text. [`json`] writes it as JSON for the command
//! line, [`path`] names places in it.

pub mod json;
mod number;
pub mod path;

pub use number::Number;

/// One value of a decoded payload.
///
/// Two values are equal when a person would see no difference: NaN equals itself, and numbers are
/// equal when they are written alike.
#[derive(Clone, Debug)]
pub enum Document {
    Null,
    Bool(bool),
    /// A finite number with all its digits.
    Number(Number),
    Text(String),
    /// Text with a lone surrogate, which JSON can carry and UTF-8 cannot: UTF-16 code units.
    Utf16(Vec<u16>),
    Bytes(Vec<u8>),
    /// NaN or an infinity; a finite number is a [`Document::Number`].
    Float(f64),
    /// A decimal with its scale, for example `12.30`.
    Decimal(String),
    Time(Box<Time>),
    List(Vec<Document>),
    /// An object whose keys are text and do not repeat, in the order of the message.
    Map(Vec<(String, Document)>),
    /// An object whose keys repeat or are not text, in the order of the message.
    Pairs(Vec<(Document, Document)>),
    /// A value with a mark of its format: a CBOR tag, a MessagePack extension, an unknown field.
    Tagged(Box<Tagged>),
}

/// A moment, day or time of day: the text a person reads beside the number on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    /// ISO 8601, in UTC unless the format says local.
    pub text: String,
    /// The number on the wire, in the format's own unit.
    pub raw: Number,
}

/// A value with a mark that its format gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tagged {
    /// The mark as the format writes it, for example `0` for a CBOR date.
    pub tag: String,
    pub value: Document,
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::Number(one), Self::Number(two)) => one == two,
            (Self::Text(one), Self::Text(two)) | (Self::Decimal(one), Self::Decimal(two)) => {
                one == two
            }
            (Self::Utf16(one), Self::Utf16(two)) => one == two,
            (Self::Bytes(one), Self::Bytes(two)) => one == two,
            (Self::Float(one), Self::Float(two)) => one == two || (one.is_nan() && two.is_nan()),
            (Self::Time(one), Self::Time(two)) => one == two,
            (Self::List(one), Self::List(two)) => one == two,
            (Self::Map(one), Self::Map(two)) => one == two,
            (Self::Pairs(one), Self::Pairs(two)) => one == two,
            (Self::Tagged(one), Self::Tagged(two)) => one == two,
            _ => false,
        }
    }
}

impl Document {
    /// A number from a signed integer.
    pub fn int(value: i64) -> Self {
        Self::Number(Number::from(value))
    }

    /// Text from anything that is text.
    pub fn text(value: impl Into<String>) -> Self {
        Self::Text(value.into())
    }

    /// A floating point number: a [`Document::Number`] when finite, else [`Document::Float`].
    pub fn float(value: f64) -> Self {
        if value.is_finite() {
            Self::Number(Number::from(value))
        } else {
            Self::Float(value)
        }
    }

    /// A single precision number with its own shortest text (0.1, not 0.10000000149).
    pub fn float32(value: f32) -> Self {
        if value.is_finite() {
            Self::Number(Number::from(value))
        } else {
            Self::Float(f64::from(value))
        }
    }

    /// An object from its entries: a map, or pairs when a key repeats.
    pub fn object(entries: Vec<(String, Document)>) -> Self {
        if repeats(&entries) {
            let pairs = entries
                .into_iter()
                .map(|(key, value)| (Self::Text(key), value));
            return Self::Pairs(pairs.collect());
        }
        Self::Map(entries)
    }

    /// An object from entries with any keys: a map when all keys are text and none repeats.
    pub fn pairs(entries: Vec<(Document, Document)>) -> Self {
        if !entries.iter().all(|(key, _)| matches!(key, Self::Text(_))) {
            return Self::Pairs(entries);
        }
        let texts = entries.into_iter().filter_map(|(key, value)| match key {
            Self::Text(text) => Some((text, value)),
            _ => None,
        });
        Self::object(texts.collect())
    }

    /// Whether it holds other values, as an object or a list does.
    pub fn is_container(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(_) | Self::Pairs(_))
    }

    /// The value under a text key; the last one where the key repeats, as JSON readers take it.
    pub fn get(&self, key: &str) -> Option<&Document> {
        match self {
            Self::Map(entries) => entries
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value),
            Self::Pairs(entries) => entries
                .iter()
                .rev()
                .find(|(name, _)| is_text(name, key))
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The item of a list.
    pub fn at(&self, index: usize) -> Option<&Document> {
        match self {
            Self::List(items) => items.get(index),
            _ => None,
        }
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// How many values it holds in all, itself included.
    pub fn count(&self) -> usize {
        1 + match self {
            Self::List(items) => items.iter().map(Self::count).sum(),
            Self::Map(entries) => entries.iter().map(|(_, value)| value.count()).sum(),
            Self::Pairs(entries) => entries
                .iter()
                .map(|(key, value)| key.count() + value.count())
                .sum(),
            Self::Tagged(tagged) => tagged.value.count(),
            _ => 0,
        }
    }

    /// What kind of value it is, in one word for a person.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) | Self::Utf16(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Float(_) => "a special number",
            Self::Decimal(_) => "a decimal",
            Self::Time(_) => "a time",
            Self::List(_) => "a list",
            Self::Map(_) | Self::Pairs(_) => "an object",
            Self::Tagged(_) => "a tagged value",
        }
    }
}

fn is_text(document: &Document, text: &str) -> bool {
    matches!(document, Document::Text(own) if own == text)
}

/// Small objects are compared pair by pair; a set pays only beyond that.
fn repeats(entries: &[(String, Document)]) -> bool {
    if entries.len() <= 12 {
        return entries
            .iter()
            .enumerate()
            .any(|(at, (key, _))| entries[..at].iter().any(|(other, _)| other == key));
    }
    let mut seen = std::collections::HashSet::with_capacity(entries.len());
    !entries.iter().all(|(key, _)| seen.insert(key.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_become_pairs_in_order() {
        let one = || Document::int(1);
        let object = Document::object(vec![
            ("a".into(), one()),
            ("b".into(), Document::Null),
            ("a".into(), Document::int(2)),
        ]);
        let Document::Pairs(pairs) = &object else {
            panic!("expected pairs, got {object:?}")
        };
        assert_eq!(pairs.len(), 3);
        assert_eq!(
            object.get("a"),
            Some(&Document::int(2)),
            "readers of JSON take the last"
        );
    }

    #[test]
    fn many_keys_are_checked_too() {
        let mut entries: Vec<_> = (0..100)
            .map(|n| (format!("k{n}"), Document::Null))
            .collect();
        assert!(matches!(
            Document::object(entries.clone()),
            Document::Map(_)
        ));
        entries.push(("k50".into(), Document::Null));
        assert!(matches!(Document::object(entries), Document::Pairs(_)));
    }
}
