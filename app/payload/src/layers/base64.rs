//! Base64 in both alphabets, with or without padding and line breaks.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::recipe::Step;
use crate::report::Refusal;

/// Writers disagree about padding and about the bits after the last byte; what they mean is clear.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const NORMAL: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT.with_encode_padding(false));

pub(super) fn decode(step: &Step, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let engine = if *step == Step::Base64Url {
        &URL
    } else {
        &NORMAL
    };
    let result = if bytes.iter().any(u8::is_ascii_whitespace) {
        let dense: Vec<u8> = bytes
            .iter()
            .copied()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        engine.decode(dense)
    } else {
        engine.decode(bytes)
    };
    result.map_err(|error| Refusal::new(format!("it is not base64: {error}")))
}

pub(super) fn encode(step: &Step, bytes: &[u8]) -> Vec<u8> {
    let engine = if *step == Step::Base64Url {
        &URL
    } else {
        &NORMAL
    };
    engine.encode(bytes).into_bytes()
}

/// Which base64 some text could be, judged by its letters and length alone: a hint to be confirmed
/// by what lies inside.
pub(crate) fn alphabet(bytes: &[u8]) -> Option<Step> {
    let trimmed = bytes.trim_ascii();
    let (mut letters, mut normal, mut url) = (0usize, false, false);
    let mut padding = 0usize;
    for byte in trimmed {
        match byte {
            b'=' => padding += 1,
            _ if padding > 0 && !byte.is_ascii_whitespace() => return None,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => letters += 1,
            b'+' | b'/' => (normal, letters) = (true, letters + 1),
            b'-' | b'_' => (url, letters) = (true, letters + 1),
            b'\r' | b'\n' => {}
            _ => return None,
        }
    }
    let possible = letters >= 8
        && padding <= 2
        && letters % 4 != 1
        && (padding == 0 || (letters + padding).is_multiple_of(4));
    match (possible, normal, url) {
        (true, _, false) => Some(Step::Base64),
        (true, false, true) => Some(Step::Base64Url),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabets() {
        assert_eq!(alphabet(b"eyJpZCI6MX0="), Some(Step::Base64));
        assert_eq!(alphabet(b"eyJpZCI6MX0"), Some(Step::Base64));
        assert_eq!(alphabet(b"_-JpZCI6MX0"), Some(Step::Base64Url));
        assert_eq!(alphabet(b"eyJpZCI6\r\nMX0=\n"), Some(Step::Base64));
        for text in [
            &b"short"[..],
            b"two words here",
            b"_mixed/alphabets",
            b"a=bcdefghijk",
            b"eyJpZCI6MX0==",
        ] {
            assert_eq!(alphabet(text), None, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn line_breaks_are_skipped() {
        assert_eq!(
            decode(&Step::Base64, b"eyJp\r\nZCI6MX0=\n").unwrap(),
            b"{\"id\":1}"
        );
        assert!(decode(&Step::Base64, b"e?Jp").is_err());
    }
}
