//! Plain text: when bytes are UTF-8 that a person would call text, and when they look like Latin-1.

/// Whether text holds only letters and the usual white space. A payload with other control
/// characters may still be text, but a binary format is tried first.
pub fn is_printable(text: &str) -> bool {
    !text
        .bytes()
        .any(|byte| (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) || byte == 0x7f)
}

/// Whether bytes that are not UTF-8 look like text of Western Europe: mostly ASCII letters, some of
/// the letters above, no control characters.
pub fn looks_latin1(bytes: &[u8]) -> bool {
    let plain = bytes
        .iter()
        .filter(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e))
        .count();
    let accented = bytes
        .iter()
        .filter(|byte| matches!(byte, 0xa0..=0xff))
        .count();
    bytes.len() >= 4
        && plain + accented == bytes.len()
        && plain * 10 >= bytes.len() * 7
        && accented > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_text() {
        assert!(is_printable("Grüße\r\n\tan alle"));
        assert!(
            !is_printable("\n\u{3}abc"),
            "a Protobuf message can be valid UTF-8"
        );
        assert!(looks_latin1(b"M\xfcller, Stra\xdfe 5"));
        assert!(
            !looks_latin1(b"\xff\x00ab") && !looks_latin1(b"plain") && !looks_latin1(&[0xe4; 20])
        );
    }
}
