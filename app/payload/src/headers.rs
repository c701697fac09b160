//! Known binary headers by name: frameworks that write numbers as bytes where others write text.
//!
//! The name decides and never the bytes alone: eight bytes of text are not a number.

use crate::document::{Document, Number};
use crate::{decimal, formats};

/// Headers that Spring writes as big-endian numbers of four bytes.
const INT32: [&str; 8] = [
    "kafka_dlt-original-partition",
    "kafka_original-partition",
    "x-original-partition",
    "kafka_deliveryAttempt",
    "retry_topic-attempts",
    "kafka_receivedPartitionId",
    "kafka_partitionId",
    "deliveryAttempt",
];
/// Of eight bytes.
const INT64: [&str; 10] = [
    "kafka_dlt-original-offset",
    "kafka_dlt-original-timestamp",
    "kafka_original-offset",
    "kafka_original-timestamp",
    "x-original-offset",
    "x-original-timestamp",
    "kafka_offset",
    "kafka_receivedTimestamp",
    "apicurio.value.globalId",
    "apicurio.value.contentId",
];
/// Java's BigInteger: the shortest two's complement bytes.
const BIG_INTEGER: [&str; 2] = [
    "retry_topic-original-timestamp",
    "retry_topic-backoff-timestamp",
];

/// Reads a header's value. No value is null; text stays text with its control characters; other
/// bytes are a number if the name is known for it, else bytes.
pub fn decode(name: &str, value: Option<&[u8]>) -> Document {
    let Some(bytes) = value else {
        return Document::Null;
    };
    if let Some(number) = known(name, bytes) {
        return Document::Number(number);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Document::text(text),
        Err(_) if formats::text::looks_latin1(bytes) => Document::text(
            bytes
                .iter()
                .map(|byte| char::from(*byte))
                .collect::<String>(),
        ),
        Err(_) => Document::Bytes(bytes.to_vec()),
    }
}

/// Whether a header holds a Java object: named, never deserialised.
pub fn java_class(bytes: &[u8]) -> Option<String> {
    formats::java::name(bytes)
}

fn known(name: &str, bytes: &[u8]) -> Option<Number> {
    let among = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let key_id = name
        .strip_prefix("apicurio.key.")
        .is_some_and(|id| matches!(id, "globalId" | "contentId"));
    if among(&INT32) && matches!(bytes.len(), 1 | 4) {
        // Old versions of Spring wrote the attempts as one byte.
        return Some(Number::from(bytes.iter().fold(
            if bytes[0] & 0x80 != 0 { -1i64 } else { 0 },
            |value, byte| value << 8 | i64::from(*byte),
        )));
    }
    if (among(&INT64) || key_id) && bytes.len() == 8 {
        return Some(Number::from(i64::from_be_bytes(bytes.try_into().ok()?)));
    }
    let is_number = among(&BIG_INTEGER)
        && (1..=16).contains(&bytes.len())
        && !bytes.iter().all(u8::is_ascii_digit);
    is_number.then(|| Number::from_checked(&decimal::integer_text(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, bytes: &[u8], expected: &str) {
        assert_eq!(
            decode(name, Some(bytes)).to_json().to_string(),
            expected,
            "{name}"
        );
    }

    #[test]
    fn known_trap_b3_big_endian_numbers() {
        check("kafka_dlt-original-partition", &[0, 0, 0, 2], "2");
        check(
            "kafka_dlt-original-offset",
            &[0, 0, 0, 0, 0, 0, 0x30, 0x39],
            "12345",
        );
        check("retry_topic-attempts", &[3], "3");
        check(
            "retry_topic-original-timestamp",
            &1796008251131i64.to_be_bytes()[2..],
            "1796008251131",
        );
        check("x-original-partition", b"12", "\"12\"");
    }

    #[test]
    fn others_are_text_null_or_bytes() {
        check("trace", b"a-1", "\"a-1\"");
        check("trace", b"\0abc", "\"\\u0000abc\"");
        check("blob", &[0, 255], r#"{"bytes":"AP8="}"#);
        check("empty", b"", "\"\"");
        assert_eq!(decode("none", None), Document::Null);
    }
}
