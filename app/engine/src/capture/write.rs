//! A message to its line. Written by hand into one string, because exports run at the speed of the broker.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use dlo_core::{Delivery, Header, Millis, Position, Value};
use sha2::{Digest, Sha256};

use super::{Captured, VERSION, flat, value::is_table_kind};
use crate::dead_letter::{Death, rfc3339};

/// The line of a delivery, without a line break. The time of capture is not in it: the same delivery gives the same line.
pub fn to_line(
    delivery: &Delivery,
    broker: &str,
    destination: &str,
    death: Option<&Death>,
) -> String {
    let mut out = open_line(delivery, broker, destination, death);
    out.push('}');
    out
}

pub(super) fn line(captured: &Captured) -> String {
    let mut out = open_line(
        &captured.delivery,
        &captured.broker,
        &captured.destination,
        captured.death.as_ref(),
    );
    if let Some(time) = captured.captured {
        out.push_str(r#","captured":"#);
        push_string(&mut out, &rfc3339::text(time));
    }
    for (name, raw) in &captured.extra {
        out.push(',');
        push_string(&mut out, name);
        out.push(':');
        push_on_one_line(&mut out, raw.get());
    }
    out.push('}');
    out
}

fn open_line(
    delivery: &Delivery,
    broker: &str,
    destination: &str,
    death: Option<&Death>,
) -> String {
    let message = &delivery.message;
    let body = message.body.as_ref().map_or(0, |body| body.len());
    let mut out = String::with_capacity(512 + body + body / 3);
    let _ = write!(out, r#"{{"dlo":{VERSION},"broker":"#);
    push_string(&mut out, broker);
    out.push_str(r#","destination":"#);
    push_string(&mut out, destination);
    push_position(&mut out, &delivery.position);
    push_time(&mut out, delivery.time);
    out.push_str(r#","key":"#);
    push_bytes(&mut out, message.key.as_deref());
    out.push_str(r#","headers":"#);
    push_headers(&mut out, &message.headers, 0);
    push_values(&mut out, "properties", message.properties.iter());
    out.push_str(r#","body":"#);
    push_bytes(&mut out, message.body.as_deref());
    out.push_str(r#","sha256":""#);
    push_hash(&mut out, message.body.as_deref().unwrap_or_default());
    out.push('"');
    push_facts(&mut out, delivery);
    push_death(&mut out, death);
    out
}

fn push_facts(out: &mut String, delivery: &Delivery) {
    if !delivery.facts.is_empty() {
        push_values(out, "facts", delivery.facts.iter());
    }
    if let Some(count) = delivery.delivery_count {
        let _ = write!(out, r#","delivery_count":{count}"#);
    }
}

fn push_death(out: &mut String, death: Option<&Death>) {
    // A death is made of strings and numbers only, so writing it cannot fail.
    if let Some(text) = death.and_then(|death| serde_json::to_string(death).ok()) {
        out.push_str(r#","death":"#);
        out.push_str(&text);
    }
}

fn push_position(out: &mut String, position: &Position) {
    out.push_str(r#","position":"#);
    match position {
        Position::Offset { partition, offset } => {
            let _ = write!(out, r#"{{"partition":{partition},"offset":{offset}}}"#);
        }
        Position::Index { index } => {
            let _ = write!(out, r#"{{"index":{index}}}"#);
        }
        Position::Id { id } => {
            out.push_str(r#"{"id":"#);
            push_string(out, id);
            out.push('}');
        }
    }
}

fn push_time(out: &mut String, time: Option<Millis>) {
    out.push_str(r#","time":"#);
    match time {
        Some(time) => push_string(out, &rfc3339::text(time)),
        None => out.push_str("null"),
    }
}

/// Properties and facts: a text stands as it is, everything else in the form of a header's value.
fn push_values<'a>(
    out: &mut String,
    field: &str,
    values: impl Iterator<Item = (&'a String, &'a Value)>,
) {
    let _ = write!(out, r#","{field}":{{"#);
    for (index, (name, value)) in values.enumerate() {
        push_comma(out, index);
        push_string(out, name);
        out.push(':');
        match value.as_text() {
            Some(text) => push_string(out, text),
            None => push_value(out, value, "", 0),
        }
    }
    out.push('}');
}

fn push_headers(out: &mut String, headers: &[Header], depth: usize) {
    out.push('[');
    for (index, header) in headers.iter().enumerate() {
        push_comma(out, index);
        out.push_str(r#"{"name":"#);
        push_string(out, &header.name);
        out.push(',');
        push_typed(out, &header.typed.kind, &header.typed.value, depth);
    }
    out.push(']');
}

fn push_typed(out: &mut String, kind: &str, value: &Value, depth: usize) {
    out.push_str(r#""type":"#);
    push_string(out, kind);
    out.push_str(r#","value":"#);
    push_value(out, value, kind, depth + 1);
    out.push('}');
}

/// A value in the form of the capture format; `kind` decides how an empty table or list is written.
pub(super) fn push_value(out: &mut String, value: &Value, kind: &str, depth: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bytes(bytes) => push_bytes(out, Some(bytes)),
        Value::Table(entries) if entries.is_empty() && !is_table_kind(kind) => {
            out.push_str(r#"{"table":[]}"#);
        }
        Value::List(items) if items.is_empty() && is_table_kind(kind) => {
            out.push_str(r#"{"list":[]}"#);
        }
        Value::Table(_) | Value::List(_) if depth > flat::DEEPEST => flat::push(out, value),
        Value::Table(entries) => push_headers(out, entries, depth),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                push_comma(out, index);
                out.push('{');
                push_typed(out, &item.kind, &item.value, depth);
            }
            out.push(']');
        }
        scalar => push_scalar(out, scalar),
    }
}

fn push_scalar(out: &mut String, value: &Value) {
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Bool(value) => write!(out, r#"{{"bool":{value}}}"#),
        Value::Int(value) => write!(out, r#"{{"int":"{value}"}}"#),
        Value::Float(value) => write!(out, r#"{{"float":{}}}"#, float_text(*value)),
        Value::Decimal { unscaled, scale } => {
            write!(
                out,
                r#"{{"decimal":"{}"}}"#,
                decimal_text(*unscaled, *scale)
            )
        }
        Value::Time(time) => write!(out, r#"{{"time":"{}"}}"#, time_text(*time)),
        _ => Ok(()),
    };
}

/// A float with all its bits. Rust prints the shortest digits that give the same 64 bits again, and a 32-bit float
/// was widened without loss.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() && value.to_bits() == f64::NAN.to_bits() {
        r#""NaN""#.to_owned()
    } else if value.is_nan() {
        format!(r#""NaN","bits":"{:016x}""#, value.to_bits())
    } else if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        format!(r#""{sign}Infinity""#)
    } else {
        format!("{value:?}")
    }
}

/// A decimal with as many digits after the point as its scale says.
pub(crate) fn decimal_text(unscaled: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// RFC 3339, or milliseconds in digits where no calendar holds them.
pub(crate) fn time_text(time: i128) -> String {
    i64::try_from(time).map_or_else(|_| time.to_string(), |time| rfc3339::text(Millis(time)))
}

fn push_bytes(out: &mut String, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else {
        out.push_str("null");
        return;
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            out.push_str(r#"{"text":"#);
            push_string(out, text);
        }
        Err(_) => {
            out.push_str(r#"{"base64":""#);
            STANDARD.encode_string(bytes, out);
            out.push('"');
        }
    }
    out.push('}');
}

fn push_hash(out: &mut String, bytes: &[u8]) {
    const HEX: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    for byte in Sha256::digest(bytes) {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}

/// A JSON string. Runs without anything to escape are copied whole.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        // Every escaped byte is ASCII, so both ends lie between characters.
        out.push_str(&text[copied..at]);
        push_escape(out, byte);
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
    out.push('"');
}

fn push_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        _ => {
            let _ = write!(out, "\\u{byte:04x}");
        }
    }
}

/// Raw JSON on one line: a line break in JSON can only be white space between tokens.
fn push_on_one_line(out: &mut String, raw: &str) {
    out.extend(raw.chars().filter(|c| !matches!(c, '\n' | '\r')));
}

fn push_comma(out: &mut String, index: usize) {
    if index > 0 {
        out.push(',');
    }
}
