//! Moments, days and times of day as text, from the counts that formats keep.

/// The unit of a count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unit {
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    /// How many make a second, and the digits of that.
    fn per_second(self) -> (i128, usize) {
        match self {
            Self::Millis => (1_000, 3),
            Self::Micros => (1_000_000, 6),
            Self::Nanos => (1_000_000_000, 9),
        }
    }
}

/// A moment since 1970 as `2026-11-30T03:10:00.123Z`; none outside the years -9999 to 9999.
pub(crate) fn moment(count: i128, unit: Unit) -> Option<String> {
    Some(local(count, unit)? + "Z")
}

/// The same without a zone.
pub(crate) fn local(count: i128, unit: Unit) -> Option<String> {
    let (per_second, digits) = unit.per_second();
    let seconds = count.div_euclid(per_second);
    let day = day(i64::try_from(seconds.div_euclid(86_400)).ok()?)?;
    let clock = clock(seconds.rem_euclid(86_400) as u64);
    Some(format!(
        "{day}T{clock}{}",
        fraction(count.rem_euclid(per_second) as u64, digits)
    ))
}

/// A day counted from 1970-01-01.
pub(crate) fn day(count: i64) -> Option<String> {
    let days = jiff::Span::new().try_days(count).ok()?;
    jiff::civil::date(1970, 1, 1)
        .checked_add(days)
        .ok()
        .map(|date| date.to_string())
}

/// A time of day.
pub(crate) fn of_day(count: i64, unit: Unit) -> Option<String> {
    let (per_second, digits) = unit.per_second();
    let count = u64::try_from(count).ok()?;
    let per_second = per_second as u64;
    let seconds = count / per_second;
    (seconds < 86_400)
        .then(|| format!("{}{}", clock(seconds), fraction(count % per_second, digits)))
}

/// Reads a moment as text back into a count; a fraction finer than the unit is refused.
pub(crate) fn parse_moment(text: &str, unit: Unit) -> Option<i128> {
    let nanos = match text.parse::<jiff::Timestamp>() {
        Ok(moment) => moment.as_nanosecond(),
        Err(_) => text
            .parse::<jiff::civil::DateTime>()
            .ok()?
            .to_zoned(jiff::tz::TimeZone::UTC)
            .ok()?
            .timestamp()
            .as_nanosecond(),
    };
    let per_unit = 1_000_000_000 / unit.per_second().0;
    (nanos % per_unit == 0).then_some(nanos / per_unit)
}

/// Reads a day back into its count.
pub(crate) fn parse_day(text: &str) -> Option<i64> {
    let date: jiff::civil::Date = text.parse().ok()?;
    let span = jiff::civil::date(1970, 1, 1).until(date).ok()?;
    Some(i64::from(span.get_days()))
}

/// Reads a time of day back into its count.
pub(crate) fn parse_of_day(text: &str, unit: Unit) -> Option<i64> {
    let time: jiff::civil::Time = text.parse().ok()?;
    let seconds =
        i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    let nanos = i128::from(seconds) * 1_000_000_000 + i128::from(time.subsec_nanosecond());
    let per_unit = 1_000_000_000 / unit.per_second().0;
    (nanos % per_unit == 0)
        .then(|| i64::try_from(nanos / per_unit).ok())
        .flatten()
}

fn clock(seconds: u64) -> String {
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// The fraction of a second without trailing zeros in groups of three: `.123`, `.123456`.
fn fraction(count: u64, digits: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let mut text = format!(".{count:0digits$}");
    while text.len() > 4 && text.ends_with("000") {
        text.truncate(text.len() - 3);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (count, unit, text) in [
            (1_796_008_200_123, Unit::Millis, "2026-11-30T03:10:00.123Z"),
            (-1, Unit::Millis, "1969-12-31T23:59:59.999Z"),
            (1_000_000, Unit::Micros, "1970-01-01T00:00:01Z"),
            (1_500, Unit::Micros, "1970-01-01T00:00:00.001500Z"),
            (1, Unit::Nanos, "1970-01-01T00:00:00.000000001Z"),
        ] {
            assert_eq!(moment(count, unit).as_deref(), Some(text));
            assert_eq!(parse_moment(text, unit), Some(count), "{text}");
        }
        assert_eq!(
            moment(i128::from(i64::MAX), Unit::Millis),
            None,
            "beyond the calendar"
        );
        assert_eq!(day(-1).as_deref(), Some("1969-12-31"));
        assert_eq!(parse_day("2026-11-30"), Some(20_787));
        assert_eq!(
            of_day(11_400_123, Unit::Millis).as_deref(),
            Some("03:10:00.123")
        );
        assert_eq!(parse_of_day("03:10:00.123", Unit::Millis), Some(11_400_123));
        assert_eq!(
            parse_moment("1970-01-01T00:00:00.0001Z", Unit::Millis),
            None,
            "finer than the unit"
        );
    }
}
