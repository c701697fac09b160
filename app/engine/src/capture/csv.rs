//! A table of messages for people and spreadsheets: RFC 4180, and lossy, which its header says.

use dlo_core::{Delivery, Value};

use super::write::{decimal_text, push_value, time_text};
use crate::dead_letter::{Death, rfc3339};

/// The first line of a table, without a line break.
pub const CSV_HEADER: &str = "destination,position,time,key,class,message,origin,attempts,first,last,headers,properties,body_bytes,sha256,\"body (for people only: this table is lossy, import the .ndjson file instead)\"";

/// Bodies are cut to this many characters: spreadsheets take 32,767 in a cell.
const BODY_LIMIT: usize = 32_000;

/// One row, without its line break; rows end in CR LF.
///
/// A cell that a spreadsheet would take for a formula gets an apostrophe before it
/// (<https://owasp.org/www-community/attacks/CSV_Injection>).
pub fn csv_row(delivery: &Delivery, destination: &str, death: Option<&Death>) -> String {
    let message = &delivery.message;
    let time = |time: Option<dlo_core::Millis>| time.map(rfc3339::text).unwrap_or_default();
    let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let cells = [
        destination.to_owned(),
        delivery.position.to_string(),
        time(delivery.time),
        message.key.as_deref().map(readable).unwrap_or_default(),
        owned(death.and_then(Death::class)),
        owned(death.and_then(Death::message)),
        owned(death.and_then(Death::place)),
        death
            .and_then(Death::attempt_count)
            .map_or(String::new(), |count| count.to_string()),
        time(death.and_then(|death| death.first)),
        time(death.and_then(|death| death.last)),
        pairs(
            message
                .headers
                .iter()
                .map(|header| (&header.name, header.value())),
        ),
        pairs(message.properties.iter()),
        message
            .body
            .as_ref()
            .map_or("null".to_owned(), |body| body.len().to_string()),
        message.sha256(),
        cut(message.body.as_deref().map(readable).unwrap_or_default()),
    ];
    cells.map(|text| cell(&text)).join(",")
}

fn pairs<'a>(values: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let pairs: Vec<String> = values
        .map(|(name, value)| format!("{name}={}", value_text(value)))
        .collect();
    pairs.join("; ")
}

/// A value for people: text as it is, numbers in digits, everything else as in a capture file.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Decimal { unscaled, scale } => decimal_text(*unscaled, *scale),
        Value::Time(time) => time_text(*time),
        Value::Bytes(bytes) => readable(bytes),
        other => {
            let mut out = String::new();
            push_value(&mut out, other, "", 0);
            out
        }
    }
}

fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(BODY_LIMIT) {
        text.truncate(at);
        text.push('…');
    }
    text
}

fn cell(text: &str) -> String {
    let guard = if looks_like_formula(text) { "'" } else { "" };
    let quoted = !guard.is_empty() || text.contains(['"', ',', '\n', '\r', ';', '\t']);
    if quoted {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A plain number may begin with a sign; everything else that begins like a formula is guarded.
fn looks_like_formula(text: &str) -> bool {
    let first = text.trim_start_matches(' ').chars().next();
    first.is_some_and(|c| "=+-@\t\r\n|%＝＋－＠".contains(c)) && text.parse::<f64>().is_err()
}
