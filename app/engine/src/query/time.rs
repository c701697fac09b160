//! Times and ages in a query.

use dlo_core::Millis;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A moment as a person writes it: a day and a minute have a length, which matters for `=` and `<=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Span {
        from: i64,
        /// The first millisecond after it.
        until: i64,
    },
    /// A time of the present day.
    Today { from: i64, until: i64 },
    /// So long before now.
    Age(i64),
}

impl Moment {
    /// `2h`, `1h30m`, `2026-11-30`, `2026-11-30T02:40`, `2026-11-30T02:40:00.5+01:00`, `02:40`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(age) = age(text) {
            return Some(Self::Age(age));
        }
        if let Some((from, length)) = clock(text) {
            return Some(Self::Today {
                from,
                until: from + length,
            });
        }
        let (text, length) = match text.len() {
            10 => (format!("{text}T00:00:00Z"), DAY),
            16 => (format!("{text}:00Z"), MINUTE),
            17 if text.ends_with('Z') => (format!("{}:00Z", &text[..16]), MINUTE),
            22 if text.is_char_boundary(16) => {
                (format!("{}:00{}", &text[..16], &text[16..]), MINUTE)
            }
            _ => (text.to_owned(), if text.contains('.') { 1 } else { SECOND }),
        };
        let from = Millis::parse(&text).or_else(|| Millis::parse(&format!("{text}Z")))?;
        Some(Self::Span {
            from: from.0,
            until: from.0.saturating_add(length),
        })
    }

    /// From and until as milliseconds since the epoch.
    pub(super) fn span(self, now: Millis) -> (i64, i64) {
        match self {
            Self::Span { from, until } => (from, until),
            Self::Today { from, until } => {
                let day = now.0.div_euclid(DAY).saturating_mul(DAY);
                (day.saturating_add(from), day.saturating_add(until))
            }
            Self::Age(age) => {
                let then = now.0.saturating_sub(age);
                (then, then.saturating_add(1))
            }
        }
    }

    pub(super) fn is_age(self) -> bool {
        matches!(self, Self::Age(_))
    }
}

/// Numbers with units, largest first is usual but not needed.
fn age(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total = 0i64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = rest.get(..digits)?.parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match &rest[..letters] {
            "ms" => 1,
            "s" | "sec" => SECOND,
            "m" | "min" => MINUTE,
            "h" => HOUR,
            "d" => DAY,
            "w" => 7 * DAY,
            _ => return None,
        };
        rest = &rest[letters..];
        total = total.checked_add(number.checked_mul(unit)?)?;
    }
    (!text.is_empty()).then_some(total)
}

/// `02:40` or `02:40:30`: milliseconds into the day, and the length of what was written.
fn clock(text: &str) -> Option<(i64, i64)> {
    let parts: Vec<&str> = text.split(':').collect();
    let number = |text: &str, below: i64| -> Option<i64> {
        let number = text
            .parse()
            .ok()
            .filter(|number| (0..below).contains(number));
        number.filter(|_| text.len() == 2)
    };
    match parts[..] {
        [hour, minute] => Some((
            number(hour, 24)? * HOUR + number(minute, 60)? * MINUTE,
            MINUTE,
        )),
        [hour, minute, second] => {
            let minutes = number(hour, 24)? * HOUR + number(minute, 60)? * MINUTE;
            Some((minutes + number(second, 60)? * SECOND, SECOND))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, from: &str, length: i64) {
        let now = Millis::parse("2026-11-30T03:10:00Z").expect("a time");
        let (start, end) = Moment::parse(text).expect(text).span(now);
        assert_eq!(Millis(start).to_string(), from, "{text}");
        assert_eq!(end - start, length, "{text}");
    }

    #[test]
    fn moments_have_a_length() {
        check("2026-11-30", "2026-11-30T00:00:00.000Z", DAY);
        check("2026-11-30T02:40", "2026-11-30T02:40:00.000Z", MINUTE);
        check("2026-11-30T02:40Z", "2026-11-30T02:40:00.000Z", MINUTE);
        check("2026-11-30T02:40+01:00", "2026-11-30T01:40:00.000Z", MINUTE);
        check("2026-11-30T02:40:05", "2026-11-30T02:40:05.000Z", SECOND);
        check("2026-11-30T02:40:05.123Z", "2026-11-30T02:40:05.123Z", 1);
        check("02:40", "2026-11-30T02:40:00.000Z", MINUTE);
        check("02:40:07", "2026-11-30T02:40:07.000Z", SECOND);
        check("2h", "2026-11-30T01:10:00.000Z", 1);
        check("1h30m", "2026-11-30T01:40:00.000Z", 1);
        check("1w", "2026-11-23T03:10:00.000Z", 1);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2",
            "h",
            "2x",
            "yesterday",
            "2026-13-01",
            "25:00",
            "2:4",
            "99999999999999999999d",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
