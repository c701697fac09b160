//! Protobuf read and written exactly, unknown fields included.

use super::*;
use crate::document::Document;
use crate::formats::hex;
use crate::limits::{Budget, Limits};
use crate::schemas::Reference;

const ORDER: &str = r#"syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/any.proto";
enum State { NEW = 0; PAID = 1; }
message Order {
  string id = 1; int64 total = 2; State state = 3; repeated int32 n = 4;
  map<string, int32> tags = 5; Line line = 6; google.protobuf.Timestamp at = 7;
  oneof pay { string card = 8; bytes token = 9; } google.protobuf.Any extra = 10; map<int32, string> names = 11; double rate = 12;
  message Line { string sku = 1; sint32 count = 2; }
}
message Other { fixed64 f = 1; }"#;

fn schema() -> ProtoSchema {
    ProtoSchema::parse(ORDER, &[]).unwrap()
}

fn budget() -> Budget {
    Budget::new(&Limits::default())
}

fn read(bytes: &[u8]) -> Message {
    decode(&schema().message(None).unwrap(), bytes, &mut budget()).unwrap()
}

fn order() -> Document {
    Document::from_json(&serde_json::json!({
        "id": "o-1", "total": 9_007_199_254_740_993i64, "state": "PAID", "n": [1, -2, 300], "tags": {"x": 1},
        "line": {"sku": "a", "count": -5}, "at": {"time": "2026-11-30T03:10:00.123Z", "raw": 1_796_008_200_123_000_000i64},
        "token": {"bytes": "AP8="}, "extra": {"@type": "type.googleapis.com/shop.Other", "@value": {"f": 7}},
        "names": {"pairs": [[7, "seven"]]}, "rate": {"float": "Infinity"}
    }))
}

#[test]
fn comes_back_exactly() {
    let descriptor = schema().message(Some("shop.Order")).unwrap();
    let bytes = write(Some(&descriptor), &order()).unwrap();
    let message = read(&bytes);
    assert_eq!(
        message.document.to_json().to_string(),
        order().to_json().to_string()
    );
    assert_eq!((message.known > 10, message.unknown), (true, 0));
    assert!(
        check(&descriptor, &order()).is_empty(),
        "{:?}",
        check(&descriptor, &order())
    );
}

#[test]
fn an_edit_keeps_unknown_fields_and_odd_bytes() {
    // id, an unknown field 99, a total in a varint that is longer than needed, the nested line
    // with its own unknown field.
    let bytes = hex::parse("0a 01 61 98 06 07 10 81 80 00 32 08 0a 01 62 98 06 05 10 02").unwrap();
    let message = read(&bytes);
    assert_eq!(message.unknown, 2);
    assert_eq!(
        message.document.to_json().to_string(),
        r#"{"id":"a","99":7,"total":1,"line":{"sku":"b","99":5,"count":1}}"#
    );
    let mut json = message.document.to_json();
    json["line"]["sku"] = "cc".into();
    json["card"] = "x".into();
    let descriptor = schema().message(None).unwrap();
    let edited = encode(
        Some(&descriptor),
        &bytes,
        &message.document,
        &Document::from_json(&json),
    )
    .unwrap();
    assert_eq!(
        hex::spaced(&edited),
        "0a 01 61 98 06 07 10 81 80 00 32 09 0a 02 63 63 98 06 05 10 02 42 01 78"
    );
    json.as_object_mut().unwrap().shift_remove("99");
    let edited = encode(
        Some(&descriptor),
        &bytes,
        &message.document,
        &Document::from_json(&json),
    )
    .unwrap();
    assert!(
        hex::spaced(&edited).starts_with("0a 01 61 10 81"),
        "{}",
        hex::spaced(&edited)
    );
}

#[test]
fn known_trap_b14_wire_tree() {
    let bytes =
        hex::parse("08 96 01 12 07 74 65 73 74 69 6e 67 1a 03 08 96 01 1a 02 08 01 25 01 00 00 00")
            .unwrap();
    let tree = decode_wire(&bytes, &mut budget()).unwrap();
    assert_eq!(
        tree.to_json().to_string(),
        r#"{"1":150,"2":"testing","3":[{"1":150},{"1":1}],"4":{"tag":"fixed32","value":1}}"#
    );
    let mut json = tree.to_json();
    json["2"] = "t".into();
    let edited = encode(None, &bytes, &tree, &Document::from_json(&json)).unwrap();
    assert_eq!(
        hex::spaced(&edited),
        "08 96 01 12 01 74 1a 03 08 96 01 1a 02 08 01 25 01 00 00 00"
    );
    assert!(
        looks_like_wire(&bytes)
            && !looks_like_wire(b"\0\0\0\0\0\0\x30\x39")
            && !looks_like_wire(b"\xff\xff\xff\xff")
    );
}

#[test]
fn messages_flow_together_and_packed_may_be_unpacked() {
    let message = read(&hex::parse("20 01 22 02 02 03 32 03 0a 01 61 32 02 10 02").unwrap());
    assert_eq!(
        message.document.to_json().to_string(),
        r#"{"n":[1,2,3],"line":{"sku":"a","count":1}}"#
    );
}

#[test]
fn known_trap_b13_any_of_an_unknown_type_shows_its_url() {
    let message = read(&hex::parse("52 09 0a 03 78 2f 79 12 02 08 01").unwrap());
    assert_eq!(
        message.document.to_json().to_string(),
        r#"{"extra":{"type_url":"x/y","value":{"bytes":"CAE="}}}"#
    );
}

#[test]
fn imports_are_found_among_references() {
    let reference = Reference {
        name: "common.proto".into(),
        text: "syntax = \"proto3\"; package c; message Money { string cur = 1; }".into(),
    };
    let text = "syntax = \"proto3\"; package p; import \"common.proto\"; message Pay { c.Money m = 1; message In { map<string,string> x = 1; message Deep {} } }";
    let schema = ProtoSchema::parse(text, &[reference]).unwrap();
    assert_eq!(schema.message_names()[0], "p.Pay");
    assert!(
        ProtoSchema::parse(text, &[])
            .unwrap_err()
            .contains("common.proto")
    );
}

#[test]
fn problems_have_paths_and_sentences() {
    let descriptor = schema().message(None).unwrap();
    let document = Document::from_json(
        &serde_json::json!({"total": "much", "state": "LOST", "line": {"count": 1.5}, "nope": 1}),
    );
    let problems: Vec<String> = check(&descriptor, &document)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        problems,
        [
            "/total: expected a number of type int64, found text \"much\"",
            "/state: expected one of NEW, PAID, found text \"LOST\"",
            "/line/count: expected a number of type sint32, found a number 1.5",
            "/nope: shop.Order has no field \"nope\""
        ]
    );
}

#[test]
fn lengths_that_lie() {
    let descriptor = schema().message(None).unwrap();
    for bytes in [
        &b"\x0a\xff\xff\xff\xff\x0f"[..],
        b"\x0a\x05ab",
        b"\x07",
        b"\x00",
        b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0b\x0b",
    ] {
        assert!(
            decode(&descriptor, bytes, &mut budget()).is_err(),
            "{}",
            hex::spaced(bytes)
        );
    }
    let groups = [0x0b; 100_000];
    assert!(decode_wire(&groups, &mut budget()).unwrap_err().is_limit());
    let mut nested = Vec::new();
    for _ in 0..300 {
        let mut outer = vec![0x0a];
        wire::write_varint(nested.len() as u64, &mut outer);
        outer.extend(&nested);
        nested = outer;
    }
    let _ = decode_wire(&nested, &mut budget());
}
