//! Text in other charsets than UTF-8, as a layer: outside the charset's bytes, inside UTF-8.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use crate::report::Refusal;

/// A byte order mark that was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Marked {
    /// The charset, or `None` for UTF-8.
    pub charset: Option<&'static str>,
    /// How many bytes the mark has.
    pub length: usize,
}

/// Reads a byte order mark. UTF-32 is looked for first: its mark begins like that of UTF-16.
pub(crate) fn byte_order_mark(bytes: &[u8]) -> Option<Marked> {
    let marks: [(&[u8], Option<&'static str>); 5] = [
        (&[0xff, 0xfe, 0, 0], Some("utf-32le")),
        (&[0, 0, 0xfe, 0xff], Some("utf-32be")),
        (&[0xef, 0xbb, 0xbf], None),
        (&[0xff, 0xfe], Some("utf-16le")),
        (&[0xfe, 0xff], Some("utf-16be")),
    ];
    let (mark, charset) = marks
        .into_iter()
        .find(|(mark, _)| bytes.starts_with(mark))?;
    Some(Marked {
        charset,
        length: mark.len(),
    })
}

/// Guesses UTF-16 or UTF-32 without a mark from where the zero bytes of its first letters lie, as
/// RFC 4627 §3 did for JSON.
pub(crate) fn guess_without_mark(bytes: &[u8]) -> Option<&'static str> {
    let letter = |at: usize| {
        bytes
            .get(at)
            .is_some_and(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e))
    };
    let zero = |at: usize| bytes.get(at) == Some(&0);
    match bytes.len() {
        8.. if bytes.len().is_multiple_of(4)
            && letter(0)
            && zero(1)
            && zero(2)
            && zero(3)
            && letter(4) =>
        {
            Some("utf-32le")
        }
        8.. if bytes.len().is_multiple_of(4)
            && zero(0)
            && zero(1)
            && zero(2)
            && letter(3)
            && zero(4)
            && letter(7) =>
        {
            Some("utf-32be")
        }
        4.. if bytes.len().is_multiple_of(2) && letter(0) && zero(1) && letter(2) && zero(3) => {
            Some("utf-16le")
        }
        4.. if bytes.len().is_multiple_of(2) && zero(0) && letter(1) && zero(2) && letter(3) => {
            Some("utf-16be")
        }
        _ => None,
    }
}

pub(super) fn decode(name: &str, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    match name {
        "utf-32le" => utf32(bytes, u32::from_le_bytes),
        "utf-32be" => utf32(bytes, u32::from_be_bytes),
        _ => {
            let encoding = encoding(name)?;
            let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
            text.map(|text| text.into_owned().into_bytes())
                .ok_or_else(|| not(name))
        }
    }
}

pub(super) fn encode(name: &str, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::new("it is not text"))?;
    match name {
        "utf-32le" => Ok(text
            .chars()
            .flat_map(|letter| u32::from(letter).to_le_bytes())
            .collect()),
        "utf-32be" => Ok(text
            .chars()
            .flat_map(|letter| u32::from(letter).to_be_bytes())
            .collect()),
        _ => encode_with(encoding(name)?, text),
    }
}

fn encode_with(encoding: &'static Encoding, text: &str) -> Result<Vec<u8>, Refusal> {
    if encoding == UTF_16LE {
        return Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
    }
    if encoding == UTF_16BE {
        return Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect());
    }
    let (bytes, _, lost) = encoding.encode(text);
    if lost {
        return Err(Refusal::new(format!(
            "{} cannot say every letter of this text",
            encoding.name()
        )));
    }
    Ok(bytes.into_owned())
}

fn encoding(name: &str) -> Result<&'static Encoding, Refusal> {
    Encoding::for_label(name.as_bytes())
        .ok_or_else(|| Refusal::new(format!("there is no charset {name}")))
}

fn utf32(bytes: &[u8], read: fn([u8; 4]) -> u32) -> Result<Vec<u8>, Refusal> {
    let (units, []) = bytes.as_chunks::<4>() else {
        return Err(Refusal::new("its length is not a multiple of four"));
    };
    let text: Option<String> = units
        .iter()
        .map(|unit| char::from_u32(read(*unit)))
        .collect();
    text.map(String::into_bytes).ok_or_else(|| not("utf-32"))
}

fn not(name: &str) -> Refusal {
    Refusal::new(format!("it is not text in {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_guesses() {
        assert_eq!(
            byte_order_mark(b"\xff\xfea\0").unwrap().charset,
            Some("utf-16le")
        );
        assert_eq!(
            byte_order_mark(b"\xff\xfe\0\0").unwrap().charset,
            Some("utf-32le")
        );
        assert_eq!(byte_order_mark(b"\xef\xbb\xbfa").unwrap().charset, None);
        assert_eq!(guess_without_mark(b"{\0}\0"), Some("utf-16le"));
        assert_eq!(guess_without_mark(b"\0{\0}"), Some("utf-16be"));
        assert_eq!(guess_without_mark(b"\0\0\0{\0\0\0}"), Some("utf-32be"));
        assert_eq!(
            guess_without_mark(b"\0\0\0\0\0\0\x30\x39"),
            None,
            "a long is no text"
        );
        assert_eq!(guess_without_mark(b"{}{}"), None);
    }

    #[test]
    fn a_letter_the_charset_lacks_is_refused() {
        assert!(
            encode("windows-1252", "日".as_bytes())
                .unwrap_err()
                .to_string()
                .contains("cannot say")
        );
        assert!(decode("utf-16le", b"\0\xd8").is_err(), "a lone surrogate");
    }
}
