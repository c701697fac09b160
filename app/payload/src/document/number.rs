//! A finite number with all its digits, cheap for the common case and exact for every other.

use std::fmt;

/// A finite number as the message wrote it.
///
/// Two numbers are equal when they have the same text: `1.0` and `1` are different on the wire and
/// stay different here.
#[derive(Clone)]
pub struct Number(Repr);

#[derive(Clone)]
enum Repr {
    Int(i64),
    Unsigned(u64),
    Double(f64),
    Single(f32),
    Text(Box<str>),
}

impl Number {
    /// A number from text that follows JSON's grammar; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        is_json_number(text.as_bytes()).then(|| Self::from_checked(text))
    }

    /// A number from text already known to follow JSON's grammar.
    pub(crate) fn from_checked(text: &str) -> Self {
        match canonical_int(text) {
            Some(value) => Self(Repr::Int(value)),
            None => Self(Repr::Text(text.into())),
        }
    }

    /// The value as a signed integer, if it is one and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Int(value) => Some(*value),
            Repr::Unsigned(value) => i64::try_from(*value).ok(),
            Repr::Double(value) => whole(*value).and_then(|value| i64::try_from(value).ok()),
            Repr::Single(value) => {
                whole(f64::from(*value)).and_then(|value| i64::try_from(value).ok())
            }
            Repr::Text(text) => text.parse().ok(),
        }
    }

    /// The value as an integer of up to 128 bits, if it is one and fits.
    pub fn as_i128(&self) -> Option<i128> {
        match &self.0 {
            Repr::Text(text) => text.parse().ok(),
            Repr::Unsigned(value) => Some(i128::from(*value)),
            Repr::Double(value) => whole(*value),
            _ => self.as_i64().map(i128::from),
        }
    }

    /// The value as an unsigned integer, if it is one and fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|value| u64::try_from(value).ok())
    }

    /// The nearest double; for comparing and plotting, never for keeping.
    pub fn as_f64(&self) -> f64 {
        match &self.0 {
            Repr::Int(value) => *value as f64,
            Repr::Unsigned(value) => *value as f64,
            Repr::Double(value) => *value,
            Repr::Single(value) => f64::from(*value),
            Repr::Text(text) => text.parse().unwrap_or(f64::NAN),
        }
    }

    /// Whether its text is that of an integer.
    pub fn is_int(&self) -> bool {
        match &self.0 {
            Repr::Int(_) | Repr::Unsigned(_) => true,
            Repr::Double(_) | Repr::Single(_) => false,
            Repr::Text(text) => !text.contains(['.', 'e', 'E']),
        }
    }

    /// Adds the text to a buffer.
    pub(crate) fn write(&self, out: &mut String) {
        use fmt::Write as _;
        let _ = write!(out, "{self}");
    }
}

/// A double that is a whole number within the range where doubles are exact.
fn whole(value: f64) -> Option<i128> {
    (value.fract() == 0.0 && value.abs() < 9.0e15).then_some(value as i128)
}

/// An integer whose text is the one we would write ourselves, so that nothing is lost.
fn canonical_int(text: &str) -> Option<i64> {
    if text.len() > 19
        || text == "-0"
        || text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
    {
        return None;
    }
    text.parse().ok()
}

/// JSON's grammar: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
fn is_json_number(text: &[u8]) -> bool {
    let digits = |from: usize| {
        text[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && text[at] == b'0') {
        return false;
    }
    at += whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = if at < text.len() { digits(at) } else { 0 };
        if exponent == 0 {
            return false;
        }
        at += exponent;
    }
    at == text.len()
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(Repr::Int(value))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        match i64::try_from(value) {
            Ok(value) => Self(Repr::Int(value)),
            Err(_) => Self(Repr::Unsigned(value)),
        }
    }
}

impl From<i128> for Number {
    fn from(value: i128) -> Self {
        match i64::try_from(value) {
            Ok(value) => Self(Repr::Int(value)),
            Err(_) => Self(Repr::Text(value.to_string().into())),
        }
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(Repr::Double(value))
    }
}

impl From<f32> for Number {
    fn from(value: f32) -> Self {
        Self(Repr::Single(value))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Int(value) => write!(out, "{value}"),
            Repr::Unsigned(value) => write!(out, "{value}"),
            // Debug writes the shortest text that reads back the same, and always a point or exponent.
            Repr::Double(value) => write!(out, "{value:?}"),
            Repr::Single(value) => write!(out, "{value:?}"),
            Repr::Text(text) => out.write_str(text),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Int(one), Repr::Int(two)) => one == two,
            (Repr::Double(one), Repr::Double(two)) => one.to_bits() == two.to_bits(),
            _ => self.to_string() == other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_all_digits() {
        for text in [
            "0",
            "-0",
            "202201180000000014",
            "-7210194211959421178",
            "23958446825181076828",
            "1.0",
            "1.10",
            "1e400",
            "0.1E-7",
        ] {
            assert_eq!(Number::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_what_json_refuses() {
        for text in [
            "", "-", "01", "1.", ".5", "+1", "1e", "1e+", "0x1", "NaN", "1 ",
        ] {
            assert!(Number::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn doubles_are_shortest() {
        assert_eq!(Number::from(0.1f64).to_string(), "0.1");
        assert_eq!(Number::from(0.1f32).to_string(), "0.1");
        assert_eq!(Number::from(5.0f64).to_string(), "5.0");
        assert_eq!(Number::from(u64::MAX).to_string(), "18446744073709551615");
    }
}
