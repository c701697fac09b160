//! Java's serialised objects: named, never deserialised, because reading one can run its code.
//! <https://docs.oracle.com/en/java/javase/21/docs/specs/serialization/protocol.html>

/// What the stream begins with, for a note; `None` if it is no such stream.
pub fn name(bytes: &[u8]) -> Option<String> {
    let rest = bytes.strip_prefix(&[0xac, 0xed, 0x00, 0x05])?;
    Some(match rest {
        [0x73, 0x72, rest @ ..] => utf(rest).unwrap_or("object").to_owned(),
        [0x74, rest @ ..] => utf(rest).map_or_else(
            || "string".to_owned(),
            |text| {
                format!(
                    "java.lang.String \"{}\"",
                    text.chars().take(80).collect::<String>()
                )
            },
        ),
        [0x75, 0x72, rest @ ..] => {
            utf(rest).map_or_else(|| "array".to_owned(), |class| format!("array {class}"))
        }
        [0x7e, 0x72, rest @ ..] => {
            utf(rest).map_or_else(|| "enum".to_owned(), |class| format!("enum {class}"))
        }
        [0x77 | 0x7a, ..] => "block of raw data".to_owned(),
        [0x70] => "null".to_owned(),
        _ => "object".to_owned(),
    })
}

fn utf(bytes: &[u8]) -> Option<&str> {
    let length = usize::from(u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]));
    std::str::from_utf8(bytes.get(2..2 + length)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_class() {
        let bytes = b"\xac\xed\x00\x05sr\x00\x07x.Order\0\0";
        assert_eq!(name(bytes).unwrap(), "x.Order");
        assert_eq!(
            name(b"\xac\xed\x00\x05t\x00\x02hi").unwrap(),
            "java.lang.String \"hi\""
        );
        assert_eq!(
            name(b"\xac\xed\x00\x05sr\xff\xff").unwrap(),
            "object",
            "a length that lies"
        );
        assert_eq!(name(b"hello"), None);
    }
}
