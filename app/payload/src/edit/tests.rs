//! Edits that keep every layer and every byte that was not touched.

use super::*;
use crate::{Input, NoSchemas, Schema, SchemaKey, SchemaKind, Schemas, Settings, decode};

fn edit(decoded: &Decoded, change: impl FnOnce(&mut serde_json::Value)) -> Edited {
    let mut json = decoded.document.to_json();
    change(&mut json);
    encode(decoded, &Document::from_json(&json)).unwrap()
}

/// Known trap B32: a compressed body is unwrapped for the view and wrapped again on an edit.
#[test]
fn gzip_is_wrapped_again_and_said() {
    let packed = layers::pack(&Step::Zstd, b"{\"a\": 1.0, \"b\":2}").unwrap();
    let decoded = decode(&Input::value(&packed), &Settings::default(), &NoSchemas);
    assert_eq!(decoded.chips(), ["zstd", "json"]);
    let edited = edit(&decoded, |json| json["b"] = 3.into());
    let again = decode(
        &Input::value(&edited.bytes),
        &Settings::default(),
        &NoSchemas,
    );
    assert_eq!(
        &again.inner[..],
        b"{\"a\": 1.0, \"b\":3}",
        "what was not edited is as it was"
    );
    let same = edit(&decoded, |_| {});
    assert_eq!((same.bytes, same.remarks), (packed, vec![]));
}

#[test]
fn a_producer_with_another_level_is_mentioned() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(b"{\"a\":1}").unwrap();
    let packed = encoder.finish().unwrap();
    let decoded = decode(&Input::value(&packed), &Settings::default(), &NoSchemas);
    let edited = edit(&decoded, |json| json["a"] = 2.into());
    assert_eq!(
        edited.remarks,
        [
            "gzip is packed anew; its bytes differ from those of the producer, what is inside does not"
        ]
    );
}

#[test]
fn the_same_schema_id_is_kept() {
    let schemas = Schemas::default();
    let text = r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"t","type":{"type":"long","logicalType":"timestamp-millis"}}]}"#;
    schemas.insert(Schema::new(
        SchemaKind::Avro,
        text,
        SchemaKey::Confluent(12),
    ));
    let bytes = b"\0\0\0\0\x0c\x02\xd0\x0f";
    let decoded = decode(&Input::value(bytes), &Settings::default(), &schemas);
    let edited = edit(&decoded, |json| json["a"] = 3.into());
    assert_eq!(edited.bytes, b"\0\0\0\0\x0c\x06\xd0\x0f");
    let by_text = edit(&decoded, |json| {
        json["t"]["time"] = "1970-01-01T00:00:02Z".into()
    });
    assert_eq!(by_text.bytes, b"\0\0\0\0\x0c\x02\xa0\x1f");
    let by_number = edit(&decoded, |json| json["t"]["raw"] = 2000.into());
    assert_eq!(by_number, by_text);
    let wrong = encode(
        &decoded,
        &Document::from_json(&serde_json::json!({"a": "x"})),
    )
    .unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "avro: /a: expected an int (32 bits), found text"
    );
}

#[test]
fn text_is_taken_as_typed() {
    let decoded = decode(
        &Input::value(b"{ \"a\":1 }"),
        &Settings::default(),
        &NoSchemas,
    );
    assert_eq!(to_text(&decoded), "{ \"a\":1 }");
    assert_eq!(
        encode_text(&decoded, "{ \"a\":   2 }").unwrap().bytes,
        b"{ \"a\":   2 }"
    );
    assert_eq!(
        encode_text(&decoded, "{ \"a\" 2 }")
            .unwrap_err()
            .to_string(),
        "json: line 1, column 7: expected ':' after a key"
    );
}

#[test]
fn byte_order_marks_and_charsets_stay() {
    let body = [
        &[0xff, 0xfe][..],
        &layers::pack(&Step::Charset("utf-16le"), "{\"ä\":1}".as_bytes()).unwrap(),
    ]
    .concat();
    let decoded = decode(&Input::value(&body), &Settings::default(), &NoSchemas);
    assert_eq!(decoded.chips(), ["utf-16le", "json"]);
    let edited = edit(&decoded, |json| json["ä"] = 2.into());
    assert_eq!(edited.bytes.len(), body.len());
    assert_eq!(
        (&edited.bytes[..2], edited.remarks.len()),
        (&[0xff, 0xfe][..], 0)
    );
}
