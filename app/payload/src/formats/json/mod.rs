//! JSON, read exactly: digits, key order, repeated keys and lone surrogates stay as they are.
//!
//! serde_json cannot say all of that, so reading is our own; [`lines`] reads one value a line, and
//! [`encode`] writes an edited document so that every value not edited keeps its bytes.

mod encode;
mod lines;
mod read;

pub use encode::{encode, encode_lines, write};
pub use lines::decode_lines;
pub(crate) use read::Reader;

use crate::document::Document;
use crate::limits::Budget;
use crate::report::Refusal;

/// Reads text that is one JSON value.
pub fn decode(text: &str, budget: &mut Budget) -> Result<Document, Refusal> {
    let mut reader = Reader::new(text);
    let document = reader.value(budget)?;
    reader.end()?;
    Ok(document)
}

/// Reads text that a person typed as one JSON value, within the usual limits.
pub fn parse(text: &str) -> Result<Document, Refusal> {
    decode(text, &mut Budget::new(&crate::limits::Limits::default()))
}

/// Whether text begins as JSON would: a cheap look before reading it all.
pub(crate) fn could_be(text: &str) -> bool {
    let Some(first) = text.trim_ascii_start().bytes().next() else {
        return false;
    };
    matches!(first, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9')
        || matches!(text.trim_ascii(), "true" | "false" | "null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn check(text: &str, expected: &str) {
        assert_eq!(
            parse(text).unwrap().to_json().to_string(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn values_are_exact() {
        check(
            r#"{"id":202201180000000014,"n":-7210194211959421178,"u":23958446825181076828}"#,
            r#"{"id":202201180000000014,"n":-7210194211959421178,"u":23958446825181076828}"#,
        );
        check(
            "[1.0, 1.10, 1e400, -0, 0.1E-7]",
            "[1.0,1.10,1e400,-0,0.1E-7]",
        );
        check(r#"{"b":1,"a":2}"#, r#"{"b":1,"a":2}"#);
        check(r#"{"a":1,"a":2}"#, r#"{"pairs":[["a",1],["a",2]]}"#);
        check(r#""\ud83d\ude00 \u00e4 \n \/""#, r#""😀 ä \n /""#);
        check(r#""\ud800 x""#, r#"{"utf16":"d800 0020 0078"}"#);
        check(r#"{"\udc00":1}"#, r#"{"pairs":[[{"utf16":"dc00"},1]]}"#);
        check(" [ ] ", "[]");
        check("{}", "{}");
    }

    #[test]
    fn what_is_not_json_says_where() {
        let where_is = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            where_is("{\"a\":1,\n \"b\" 2}"),
            "line 2, column 6: expected ':' after a key"
        );
        assert!(
            where_is("[1,]").contains("column 4"),
            "{}",
            where_is("[1,]")
        );
        for text in [
            "",
            "{",
            "[",
            "{\"a\"}",
            "[1 2]",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "01",
            "+1",
            "nul",
            "[1]x",
            "\"a\nb\"",
            "{,}",
            "{a:1}",
            "'a'",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_hold() {
        assert!(parse(&"[".repeat(100_000)).unwrap_err().is_limit());
        let hundred = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(parse(&hundred).is_ok(), "100 deep is still fine");
        let mut budget = Budget::new(&Limits {
            nodes: 10,
            ..Limits::default()
        });
        assert!(
            decode(&format!("[{}1]", "1,".repeat(20)), &mut budget)
                .unwrap_err()
                .is_limit()
        );
    }
}
