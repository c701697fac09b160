//! Bytes for people: the reading that never fails.

use std::fmt::Write as _;

/// Bytes as pairs of digits with spaces: `00 ff 10`.
pub fn spaced(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 3);
    for (at, byte) in bytes.iter().enumerate() {
        let _ = write!(out, "{}{byte:02x}", if at == 0 { "" } else { " " });
    }
    out
}

/// Reads pairs of hexadecimal digits; white space between them is skipped.
pub fn parse(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<char> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    if !digits.len().is_multiple_of(2) {
        return Err("hexadecimal bytes have two digits each; one digit is missing".to_owned());
    }
    let byte = |pair: &[char]| {
        pair.iter().try_fold(0u8, |byte, digit| {
            Some(byte << 4 | digit.to_digit(16)? as u8)
        })
    };
    digits
        .chunks(2)
        .map(|pair| {
            byte(pair).ok_or_else(|| {
                format!(
                    "\"{}\" is not a hexadecimal byte",
                    pair.iter().collect::<String>()
                )
            })
        })
        .collect()
}

/// One line of a hex view: offset, bytes, and the printable ones as letters.
pub fn line(offset: usize, bytes: &[u8]) -> String {
    let letters: String = bytes
        .iter()
        .map(|byte| {
            if (0x20..0x7f).contains(byte) {
                char::from(*byte)
            } else {
                '.'
            }
        })
        .collect();
    format!("{offset:08x}  {:<47}  {letters}", spaced(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        assert_eq!(spaced(&[0, 255, 16]), "00 ff 10");
        assert_eq!(parse("00 FF\n10").unwrap(), [0, 255, 16]);
        assert!(parse("0").is_err() && parse("0g").unwrap_err().contains("0g"));
        assert_eq!(
            line(16, b"ab\0"),
            format!("00000010  {:<47}  ab.", "61 62 00")
        );
    }
}
