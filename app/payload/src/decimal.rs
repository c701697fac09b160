//! Whole numbers of any size and decimals between bytes and text, without floating point.

/// Longer numbers stay bytes: turning them into digits takes time that grows with the square.
pub(crate) const MOST_BYTES: usize = 4096;

/// The decimal text of a big-endian two's complement number; `0` for no bytes.
pub(crate) fn integer_text(bytes: &[u8]) -> String {
    if let Some(value) = small(bytes) {
        return value.to_string();
    }
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut magnitude = bytes.to_vec();
    if negative {
        negate(&mut magnitude);
    }
    let digits = to_digits(&magnitude);
    if negative {
        format!("-{digits}")
    } else {
        digits
    }
}

/// The shortest big-endian two's complement bytes of decimal text; the text must be an integer.
pub(crate) fn integer_bytes(text: &str) -> Vec<u8> {
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |digits| (true, digits));
    let mut bytes = from_digits(digits);
    bytes.insert(0, 0);
    if negative {
        negate(&mut bytes);
    }
    shortest(bytes)
}

/// Puts the decimal point `scale` digits from the right: `1230` and 2 give `12.30`.
pub(crate) fn place_point(digits: &str, scale: usize) -> String {
    if scale == 0 {
        return digits.to_owned();
    }
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |digits| ("-", digits));
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// The unscaled digits and the scale of a decimal: `12.30` gives `1230` and 2.
pub(crate) fn parse(text: &str) -> Option<(String, usize)> {
    let (sign, rest) = text
        .trim()
        .strip_prefix('-')
        .map_or(("", text.trim()), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || rest.ends_with('.') {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let sign = if digits == "0" { "" } else { sign };
    Some((format!("{sign}{digits}"), fraction.len()))
}

/// The unscaled digits of a decimal at a given scale, if that loses nothing.
pub(crate) fn at_scale(text: &str, scale: usize) -> Option<String> {
    let (mut digits, own) = parse(text)?;
    if own <= scale {
        if digits != "0" {
            digits.extend(std::iter::repeat_n('0', scale - own));
        }
        return Some(digits);
    }
    let extra = own - scale;
    let sign = usize::from(digits.starts_with('-'));
    if digits.len() - sign <= extra {
        return (digits == "0").then_some(digits);
    }
    let kept = digits.len() - extra;
    digits[kept..]
        .bytes()
        .all(|byte| byte == b'0')
        .then(|| digits[..kept].to_owned())
}

fn small(bytes: &[u8]) -> Option<i128> {
    if bytes.len() > 16 {
        return None;
    }
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    Some(
        bytes
            .iter()
            .fold(if negative { -1 } else { 0 }, |value, byte| {
                value << 8 | i128::from(*byte)
            }),
    )
}

fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes.iter_mut().rev() {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}

/// Leaves out leading bytes that only repeat the sign.
fn shortest(bytes: Vec<u8>) -> Vec<u8> {
    let mut start = 0;
    while start + 1 < bytes.len()
        && ((bytes[start] == 0 && bytes[start + 1] & 0x80 == 0)
            || (bytes[start] == 0xff && bytes[start + 1] & 0x80 != 0))
    {
        start += 1;
    }
    bytes[start..].to_vec()
}

/// Nine digits at a time; the cost grows with the square of the length, so callers bound it.
fn to_digits(magnitude: &[u8]) -> String {
    let mut words: Vec<u32> = magnitude
        .rchunks(4)
        .map(|chunk| {
            chunk
                .iter()
                .fold(0, |word, byte| word << 8 | u32::from(*byte))
        })
        .collect();
    let mut groups = Vec::new();
    while words.iter().any(|word| *word != 0) {
        let mut rest = 0u64;
        for word in words.iter_mut().rev() {
            let value = rest << 32 | u64::from(*word);
            *word = (value / 1_000_000_000) as u32;
            rest = value % 1_000_000_000;
        }
        groups.push(rest);
        while words.last() == Some(&0) {
            words.pop();
        }
    }
    let mut text = groups.pop().unwrap_or(0).to_string();
    for group in groups.into_iter().rev() {
        text.push_str(&format!("{group:09}"));
    }
    text
}

fn from_digits(digits: &str) -> Vec<u8> {
    let mut words: Vec<u32> = Vec::new();
    for digit in digits.bytes() {
        let mut carry = u64::from(digit.wrapping_sub(b'0'));
        for word in &mut words {
            let value = u64::from(*word) * 10 + carry;
            *word = value as u32;
            carry = value >> 32;
        }
        if carry > 0 {
            words.push(carry as u32);
        }
    }
    words
        .iter()
        .rev()
        .flat_map(|word| word.to_be_bytes())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for text in [
            "0",
            "1",
            "-1",
            "127",
            "128",
            "-128",
            "-129",
            "18446744073709551616",
            "-340282366920938463463374607431768211457",
            "123456789012345678901234567890123456789012345678901234567890",
        ] {
            assert_eq!(integer_text(&integer_bytes(text)), text);
        }
        assert_eq!(integer_bytes("-128"), [0x80]);
        assert_eq!(integer_bytes("128"), [0, 0x80]);
        assert_eq!(integer_text(&[]), "0");
    }

    #[test]
    fn points() {
        assert_eq!(
            place_point(&integer_text(&[0x0f, 0xda]), 2),
            "40.58",
            "known trap B10"
        );
        assert_eq!(place_point("-5", 2), "-0.05");
        assert_eq!(parse("12.30"), Some(("1230".into(), 2)));
        assert_eq!(parse("-0.05"), Some(("-5".into(), 2)));
        assert_eq!((parse("1e5"), parse(""), parse("1.")), (None, None, None));
        assert_eq!(at_scale("12.3", 2).as_deref(), Some("1230"));
        assert_eq!(at_scale("12.300", 2).as_deref(), Some("1230"));
        assert_eq!(at_scale("12.345", 2), None);
    }
}
