//! What is recognised without a schema, and what is not believed.

use crate::layers::pack;
use crate::{
    Decoded, Header, Input, NoSchemas, Part, Recipe, Schema, SchemaKey, SchemaKind, Schemas,
    Settings, Step, decode,
};

fn plain(bytes: &[u8]) -> Decoded {
    decode(&Input::value(bytes), &Settings::default(), &NoSchemas)
}

fn check(bytes: &[u8], chips: &str, value: &str) {
    let decoded = plain(bytes);
    assert_eq!(
        decoded.recipe().to_string(),
        chips,
        "{:?}",
        decoded.report()
    );
    assert_eq!(decoded.document.to_json().to_string(), value);
}

#[test]
fn text_and_its_relatives() {
    check(b"{\"a\":1}", "json", r#"{"a":1}"#);
    check(b"[1]", "json", "[1]");
    check(b"hello", "text", "\"hello\"");
    check(b"12:30", "text", "\"12:30\"");
    check(b"42", "json", "42");
    check(
        b"{\"a\":1}\n{\"a\":2}\n",
        "json-lines",
        r#"[{"a":1},{"a":2}]"#,
    );
    check(b"\"{\\\"a\\\":1}\"", "json-string+json", r#"{"a":1}"#);
    check(b"<a><b/></a>", "xml", "\"<a><b/></a>\"");
    check(b"\xef\xbb\xbf{\"a\":1}", "utf-8+json", r#"{"a":1}"#);
    check(b"{broken", "text", "\"{broken\"");
    check(
        b"M\xfcller, Stra\xdfe 5",
        "windows-1252+text",
        "\"Müller, Straße 5\"",
    );
}

#[test]
fn null_empty_and_text_are_three_things() {
    check(b"", "empty", "\"\"");
    let null = decode(&Input::default(), &Settings::default(), &NoSchemas);
    assert_eq!(
        (
            null.recipe().to_string().as_str(),
            null.document.to_json().to_string().as_str()
        ),
        ("null", "null")
    );
    check(b"null", "json", "null");
}

#[test]
fn layers_lie_inside_each_other() {
    let gzip = pack(&Step::Gzip, b"{\"a\":1}").unwrap();
    check(&gzip, "gzip+json", r#"{"a":1}"#);
    check(
        &pack(&Step::Base64, &gzip).unwrap(),
        "base64+gzip+json",
        r#"{"a":1}"#,
    );
    for step in [
        Step::Deflate,
        Step::Snappy,
        Step::Brotli,
        Step::SnappyFramed,
        Step::Lz4,
        Step::Zlib,
    ] {
        let body = format!("{{\"text\":\"{}\"}}", "word ".repeat(30));
        let packed = pack(&step, body.as_bytes()).unwrap();
        assert_eq!(plain(&packed).recipe().to_string(), format!("{step}+json"));
    }
}

/// Words are often valid base64, and two bytes are often valid MessagePack: they stay text or bytes.
#[test]
fn chance_is_not_believed() {
    for text in [
        "deadbeef",
        "abcdefgh",
        "SGVsbG8gd29ybGQ",
        "order1234567",
        "d41d8cd98f00b204e9800998ecf8427e",
        "MTIzNDU2Nzg5MDEy",
        "eyJpZCI6MX0x!",
    ] {
        assert_eq!(
            plain(text.as_bytes()).recipe().to_string(),
            "text",
            "{text}"
        );
    }
    for bytes in [
        &[0x91, 0x05][..],
        &[0x92, 0x01, 0x02],
        &[0xff, 0xfb],
        &[0x9f, 0xc3, 0xa9, 0x80, 0xff],
    ] {
        assert_eq!(plain(bytes).recipe().to_string(), "hex", "{bytes:x?}");
    }
    check(b"eyJpZCI6MX0=", "base64+json", r#"{"id":1}"#);
}

#[test]
fn formats_without_a_mark() {
    check(
        b"\x82\xa2id\x01\xa4name\xa3abc",
        "msgpack",
        r#"{"id":1,"name":"abc"}"#,
    );
    check(b"\xa2bid\x01dnamecabc", "cbor", r#"{"id":1,"name":"abc"}"#);
    check(
        b"\x08\x96\x01\x12\x07testing",
        "protobuf",
        r#"{"1":150,"2":"testing"}"#,
    );
    check(
        b"\xac\xed\x00\x05sr\x00\x07x.Order\0\0",
        "java-serialized",
        r#"{"java":"x.Order","bytes":"rO0ABXNyAAd4Lk9yZGVyAAA="}"#
            .replace(
                "\"rO0ABXNyAAd4Lk9yZGVyAAA=\"",
                "{\"bytes\":\"rO0ABXNyAAd4Lk9yZGVyAAA=\"}",
            )
            .as_str(),
    );
}

/// Known trap B9: a long key begins with a zero byte and is no Confluent payload.
#[test]
fn known_trap_b9_long_keys() {
    check(&12345i64.to_be_bytes(), "int64", "12345");
    check(&(-2i64).to_be_bytes(), "int64", "-2");
    check(&7i32.to_be_bytes(), "int32", "7");
    // A big long looks like id 1; the registry knows id 1, but the rest does not decode.
    let schemas = Schemas::default();
    schemas.insert(Schema::new(SchemaKind::Avro, r#"{"type":"record","name":"R","fields":[{"name":"a","type":"string"},{"name":"b","type":"string"}]}"#, SchemaKey::Confluent(1)));
    let key = 0x0000_0001_0203_0405i64.to_be_bytes();
    let decoded = decode(
        &Input {
            part: Part::Key,
            ..Input::key(&key)
        },
        &Settings::default(),
        &schemas,
    );
    assert_eq!(
        decoded.recipe().to_string(),
        "int64",
        "{:?}",
        decoded.report()
    );
}

#[test]
fn a_missing_schema_is_named_and_then_used() {
    let schemas = Schemas::default();
    let payload = b"\0\0\0\0\x0c\x06abc\x02";
    let first = decode(&Input::value(payload), &Settings::default(), &schemas);
    assert_eq!(first.needs, [SchemaKey::Confluent(12)]);
    assert!(
        first.report().contains(&"needs Confluent id 12".to_owned()),
        "{:?}",
        first.report()
    );
    assert_eq!(first.recipe().to_string(), "confluent+hex");
    schemas.insert(Schema::new(SchemaKind::Avro, r#"{"type":"record","name":"R","fields":[{"name":"s","type":"string"},{"name":"n","type":"int"}]}"#, SchemaKey::Confluent(12)).in_subject("orders-value", 7));
    let second = decode(&Input::value(payload), &Settings::default(), &schemas);
    assert_eq!(second.recipe().to_string(), "confluent+avro");
    assert_eq!(second.to_json()["schema"]["subject"], "orders-value");
    assert_eq!(
        second.document.to_json().to_string(),
        r#"{"s":"abc","n":1}"#
    );
    assert!(second.needs.is_empty());
}

#[test]
fn why_a_schema_does_not_decode_is_said() {
    let schemas = Schemas::default();
    schemas.insert(
        Schema::new(
            SchemaKind::Avro,
            r#"{"type":"record","name":"R","fields":[{"name":"s","type":"string"}]}"#,
            SchemaKey::Confluent(12),
        )
        .in_subject("orders-value", 7),
    );
    let decoded = decode(
        &Input::value(b"\0\0\0\0\x0c\x20abc"),
        &Settings::default(),
        &schemas,
    );
    assert_eq!(decoded.recipe().to_string(), "confluent+hex");
    assert!(
        decoded
            .report()
            .iter()
            .any(|line| line
                .starts_with("orders-value v7 does not decode it: /s: 16 bytes are claimed")),
        "{:?}",
        decoded.report()
    );
    assert_eq!(decoded.to_json()["schema"]["version"], 7);
}

#[test]
fn protobuf_with_message_indexes_and_json_in_frames() {
    let schemas = Schemas::default();
    schemas.insert(Schema::new(
        SchemaKind::Protobuf,
        "syntax = \"proto3\"; message A { message B { string s = 1; } } message C { int64 n = 1; }",
        SchemaKey::Confluent(3),
    ));
    schemas.insert(Schema::new(
        SchemaKind::Json,
        "{\"type\":\"object\"}",
        SchemaKey::Confluent(4),
    ));
    let read = |bytes: &[u8]| decode(&Input::value(bytes), &Settings::default(), &schemas);
    let nested = read(b"\0\0\0\0\x03\x04\0\0\x0a\x01x");
    assert_eq!(
        (
            nested.recipe().to_string().as_str(),
            nested.message_type.as_deref()
        ),
        ("confluent+protobuf", Some("A.B"))
    );
    assert_eq!(nested.document.to_json().to_string(), r#"{"s":"x"}"#);
    assert_eq!(
        read(b"\0\0\0\0\x03\x02\x02\x08\x07")
            .message_type
            .as_deref(),
        Some("C")
    );
    assert_eq!(
        read(b"\0\0\0\0\x04{\"a\":1}").recipe().to_string(),
        "confluent+json"
    );
    assert_eq!(
        plain(b"\0\0\0\0\x04{\"a\":1}").recipe().to_string(),
        "confluent+json",
        "JSON needs no registry"
    );
    assert_eq!(
        plain(b"\0\0\0\0\x03\0\x0a\x03abc").recipe().to_string(),
        "confluent+protobuf",
        "the wire tree"
    );
}

#[test]
fn content_encoding_and_type_are_strong_hints_but_only_hints() {
    let packed = pack(&Step::Brotli, b"hello world").unwrap();
    let headers = [Header::text("Content-Encoding", "br")];
    let decoded = decode(
        &Input {
            headers: &headers,
            ..Input::value(&packed)
        },
        &Settings::default(),
        &NoSchemas,
    );
    assert_eq!(decoded.recipe().to_string(), "brotli+text");
    let decoded = decode(
        &Input {
            content_encoding: Some("gzip"),
            ..Input::value(b"{\"a\":1}")
        },
        &Settings::default(),
        &NoSchemas,
    );
    assert_eq!(decoded.recipe().to_string(), "json");
    assert!(
        decoded.report()[0].starts_with("the content encoding says gzip, but "),
        "{:?}",
        decoded.report()
    );
    let decoded = decode(
        &Input {
            content_type: Some("application/msgpack"),
            ..Input::value(&[0x91, 0x05])
        },
        &Settings::default(),
        &NoSchemas,
    );
    assert_eq!(decoded.recipe().to_string(), "msgpack");
    let latin = decode(
        &Input {
            content_type: Some("text/plain; charset=ISO-8859-1"),
            ..Input::value(b"caf\xe9")
        },
        &Settings::default(),
        &NoSchemas,
    );
    assert_eq!(latin.recipe().to_string(), "windows-1252+text");
}

#[test]
fn cloud_events_in_both_modes() {
    let headers = [
        Header::text("ce_specversion", "1.0"),
        Header::text("ce_type", "order.created"),
        Header::text("ce_source", "/shop"),
        Header::text("ce_id", "1"),
    ];
    let binary = decode(
        &Input {
            headers: &headers,
            ..Input::value(b"{}")
        },
        &Settings::default(),
        &NoSchemas,
    );
    assert_eq!(binary.cloud_event.unwrap().event_type, "order.created");
    let structured = plain(br#"{"specversion":"1.0","type":"t","source":"s","id":"1","data":{}}"#);
    assert_eq!(structured.cloud_event.unwrap().mode, "structured");
}

#[test]
fn a_choice_by_hand_goes_before_detection() {
    let with = |recipe: &str, bytes: &[u8]| {
        let settings = Settings {
            recipe: Some(recipe.parse::<Recipe>().unwrap()),
            ..Settings::default()
        };
        decode(&Input::value(bytes), &settings, &NoSchemas)
    };
    assert_eq!(
        with("msgpack", &[0x91, 0x05])
            .document
            .to_json()
            .to_string(),
        "[5]"
    );
    assert_eq!(
        with("base64+text", b"aGVsbG8gd29ybGQ=")
            .document
            .to_json()
            .to_string(),
        "\"hello world\""
    );
    assert_eq!(with("hex", b"{}").recipe().to_string(), "hex");
    let wrong = with("gzip+json", b"{\"a\":1}");
    assert_eq!(wrong.recipe().to_string(), "json");
    assert!(
        wrong.report()[0].starts_with("gzip was chosen, but "),
        "{:?}",
        wrong.report()
    );
}

#[test]
fn settings_come_back_from_their_text() {
    let settings = Settings {
        recipe: Some("gzip+confluent+avro".parse().unwrap()),
        bound: Some(SchemaKey::Local("orders.avsc".into())),
        ..Settings::default()
    };
    let text = serde_json::to_string(&settings).unwrap();
    assert!(text.contains("\"gzip+confluent+avro\""));
    assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
}

#[test]
fn bombs_end_in_a_note() {
    let mut bomb = vec![0u8; 100_000_000];
    for _ in 0..2 {
        bomb = pack(&Step::Gzip, &bomb).unwrap();
    }
    let decoded = plain(&bomb);
    assert!(
        decoded
            .report()
            .iter()
            .any(|line| line.contains("more than 67108864 bytes")),
        "{:?}",
        decoded.report()
    );
    let nest = "[".repeat(1_000_000);
    assert!(
        plain(nest.as_bytes())
            .report()
            .iter()
            .any(|line| line.contains("nests deeper"))
    );
}

/// Known trap B22: a body of 20 MB is decoded like any other.
#[test]
fn known_trap_b22_twenty_megabytes() {
    let item = format!("{{\"id\":{},\"text\":\"{}\"}}", u64::MAX, "x".repeat(970));
    let body = format!("[{}]", vec![item; 20_000].join(","));
    assert!(body.len() > 20_000_000);
    let decoded = plain(body.as_bytes());
    assert_eq!(decoded.recipe().to_string(), "json");
    assert!(matches!(&decoded.document, crate::Document::List(items) if items.len() == 20_000));
}
