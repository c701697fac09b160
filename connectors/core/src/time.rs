//! A point in time as brokers count it: milliseconds since the Unix epoch.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z. Prints as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// The present time of this machine's clock.
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_millisecond())
    }

    /// Reads RFC 3339 text such as `2026-11-30T03:10:00.123Z`.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|time| Self(time.as_millisecond()))
    }

    /// The time this many milliseconds later (earlier when negative); stops at the ends of the range.
    pub fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this time; negative when it lies before.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            // A number that no calendar holds, for example milliseconds written where seconds were meant.
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_the_same_instant() {
        let text = "2026-11-30T03:10:00.123Z";
        assert_eq!(
            Millis::parse(text).map(|time| time.to_string()).as_deref(),
            Some(text)
        );
    }

    #[test]
    fn a_number_no_calendar_holds_still_prints() {
        assert_eq!(Millis(i64::MAX).to_string(), "9223372036854775807 ms");
    }
}
