//! Optional times in JSON as RFC 3339 text, or as a number of milliseconds where no calendar holds them.
//!
//! Separate, because [`Millis`] itself serialises as a number, which is right between programs of ours, but a
//! capture file is read by people.

use std::fmt;

use dlo_core::Millis;
use serde::{Deserializer, Serializer, de};

pub fn serialize<S: Serializer>(time: &Option<Millis>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        None => serializer.serialize_none(),
        Some(time) => serializer.serialize_str(&text(*time)),
    }
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    deserializer.deserialize_option(TimeVisitor)
}

/// The text of a time: RFC 3339 when that comes back the same, else its milliseconds in digits.
pub(crate) fn text(time: Millis) -> String {
    let text = time.to_string();
    if Millis::parse(&text) == Some(time) {
        text
    } else {
        time.0.to_string()
    }
}

/// Reads what [`text`] writes.
pub(crate) fn parse(text: &str) -> Option<Millis> {
    Millis::parse(text).or_else(|| text.parse().ok().map(Millis))
}

struct TimeVisitor;

impl<'de> de::Visitor<'de> for TimeVisitor {
    type Value = Option<Millis>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 time such as \"2026-11-30T03:10:00.123Z\", or null")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        parse(text)
            .map(Some)
            .ok_or_else(|| E::custom(format!("\"{text}\" is no RFC 3339 time")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_comes_back() {
        for millis in [
            0,
            1,
            -1,
            1_796_065_906_123,
            i64::MAX,
            i64::MIN,
            -62_135_596_800_001,
        ] {
            assert_eq!(parse(&text(Millis(millis))), Some(Millis(millis)));
        }
    }
}
