//! Numbers compared by their digits. A body may hold integers wider than any machine's and decimals that no float has exactly.

use std::cmp::Ordering;

/// The longest number that is compared; longer texts are no numbers here.
const LONGEST: usize = 4096;

/// A decimal number of any size: ±0.DIGITS × 10^exponent, without zeros at either end of the digits; zero has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Number {
    /// Reads a number as JSON writes it; a leading `+` is taken too.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, power) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, power.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if whole.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let exponent = i64::from(power) + i64::try_from(whole.len()).ok()?;
        Some(Self::tidy(negative, &digits, exponent))
    }

    fn tidy(negative: bool, digits: &[u8], exponent: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let end = digits
            .iter()
            .rposition(|digit| *digit != b'0')
            .map_or(zeros, |at| at + 1);
        let digits = digits.get(zeros..end).unwrap_or_default().to_vec();
        if digits.is_empty() {
            return Self {
                negative: false,
                digits,
                exponent: 0,
            };
        }
        Self {
            negative,
            digits,
            exponent: exponent - i64::try_from(zeros).unwrap_or(0),
        }
    }

    /// The number times a power of two or ten, as units of size need it.
    pub(super) fn times(&self, factor: u64) -> Option<Self> {
        let text: String = self.digits.iter().map(|digit| char::from(*digit)).collect();
        let product = if text.is_empty() {
            0
        } else {
            text.parse::<u128>().ok()?.checked_mul(factor.into())?
        };
        let scale = self.exponent - i64::try_from(self.digits.len()).ok()?;
        Self::parse(&format!(
            "{}{product}e{scale}",
            if self.negative { "-" } else { "" }
        ))
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Digits are left-aligned and end without zeros, so their order as text is their order as fractions.
            (false, false) => self
                .exponent
                .cmp(&other.exponent)
                .then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
        }
    }
}

impl From<i128> for Number {
    fn from(int: i128) -> Self {
        Self::tidy(
            int < 0,
            int.unsigned_abs().to_string().as_bytes(),
            i64::try_from(int.unsigned_abs().to_string().len()).unwrap_or(0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_exactly() {
        let sorted = [
            "-1e400",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-0.05",
            "0",
            "0.05",
            "0.1",
            "0.100000000000000000001",
            "1",
            "1.5",
            "9",
            "10",
            "9007199254740992",
            "9007199254740993",
            "202201180000000014",
            "1e400",
        ];
        for (index, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                let (left, right) = (
                    Number::parse(left).expect(left),
                    Number::parse(right).expect(right),
                );
                assert_eq!(left.cmp(&right), index.cmp(&other));
            }
        }
    }

    #[test]
    fn one_value_has_one_form() {
        for text in ["12.30", "12.3", "1.23e1", "1230e-2", "+012.30", "12.300"] {
            assert_eq!(Number::parse(text), Number::parse("12.3"), "{text}");
        }
        assert_eq!(Number::parse("-0.0"), Number::parse("0"));
        assert_eq!(
            Number::from(-1200),
            Number::parse("-1.2e3").expect("a number")
        );
        assert_eq!(Number::from(0), Number::parse("0").expect("a number"));
        for text in ["", "-", "1x", ".5", "0x1", "1e", "NaN", "1e99999999999"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    #[test]
    fn units_multiply() {
        let times =
            |text: &str, factor| Number::parse(text).and_then(|number| number.times(factor));
        assert_eq!(times("1.5", 1000), Number::parse("1500"));
        assert_eq!(times("10", 1024), Number::parse("10240"));
        assert_eq!(times("0", 1024), Number::parse("0"));
    }
}
