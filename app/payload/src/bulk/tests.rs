//! Bulk edits: what each operation changes, refuses and leaves alone.

use super::*;
use crate::{Input, NoSchemas, Schema, SchemaKey, SchemaKind, Schemas, Settings, decode};

fn decoded(text: &str) -> Decoded {
    decode(
        &Input::value(text.as_bytes()),
        &Settings::default(),
        &NoSchemas,
    )
}

fn check(change: Result<BulkEdit, String>, before: &str, after: &str) {
    let preview = edit(&decoded(before), &change.unwrap()).unwrap();
    assert_eq!(String::from_utf8(preview.edited.bytes).unwrap(), after);
}

fn refused(change: Result<BulkEdit, String>, before: &str) -> String {
    edit(&decoded(before), &change.unwrap()).unwrap_err()
}

#[test]
fn set_and_remove() {
    check(
        BulkEdit::set("/currency", "\"EUR\""),
        "{\"a\": 1.0}",
        "{\"a\": 1.0,\"currency\": \"EUR\"}",
    );
    check(
        BulkEdit::set("/a", "20000000000000000001"),
        "{\"a\": 1.0}",
        "{\"a\": 20000000000000000001}",
    );
    check(
        BulkEdit::set("/l/-", "3"),
        "{\"l\": [1, 2]}",
        "{\"l\": [1, 2, 3]}",
    );
    check(
        BulkEdit::set("/l/0", "null"),
        "{\"l\": [1, 2]}",
        "{\"l\": [null, 2]}",
    );
    check(BulkEdit::remove("/a"), "{\"a\": 1, \"b\": 2}", "{\"b\": 2}");
    check(
        BulkEdit::set("/a", "9"),
        "{\"a\": 1, \"a\": 2}",
        "{\"a\": 1, \"a\": 9}",
    );
    assert_eq!(
        refused(BulkEdit::set("/x/y", "1"), "{}"),
        "/x/y: there is no \"x\" on the way"
    );
    assert_eq!(refused(BulkEdit::remove("/x"), "{}"), "/x is not there");
    assert!(
        BulkEdit::set("/a", "EUR")
            .unwrap_err()
            .contains("text needs double quotes")
    );
    assert!(BulkEdit::set("a", "1").is_err() && BulkEdit::remove("").is_err());
}

#[test]
fn patches_are_all_or_nothing() {
    let patch = r#"[{"op":"test","path":"/a","value":1.0},{"op":"add","path":"/l/1","value":9},{"op":"move","from":"/a","path":"/b"},{"op":"copy","from":"/b","path":"/c"},{"op":"replace","path":"/c","value":"x"},{"op":"remove","path":"/b"}]"#;
    check(
        BulkEdit::patch(patch),
        r#"{"a":1,"l":[1,2]}"#,
        r#"{"l":[1,9,2],"c":"x"}"#,
    );
    assert_eq!(
        refused(BulkEdit::patch(patch), r#"{"a":2,"l":[]}"#),
        "operation 1: the test failed: /a is 2, not 1.0"
    );
    assert!(
        BulkEdit::patch(r#"[{"op":"fly","path":""}]"#)
            .unwrap_err()
            .contains("operation 1: there is no operation \"fly\"")
    );
}

#[test]
fn find_and_replace_leaves_keys_alone() {
    check(
        BulkEdit::replace("old", "new"),
        r#"{"old":"old host", "n": ["very old"]}"#,
        r#"{"old":"new host", "n": ["very new"]}"#,
    );
    check(
        BulkEdit::replace("old", "new"),
        "an old text",
        "an new text",
    );
    assert!(BulkEdit::replace("", "x").is_err());
}

#[test]
fn jq_programs() {
    check(
        BulkEdit::jq(".total = .price * .n | del(.x)"),
        r#"{"price":3,"n":2,"x":0}"#,
        r#"{"price":3,"n":2,"total":6}"#,
    );
    check(
        BulkEdit::jq(".b = 1"),
        r#"{"id":23958446825181076828,"f":1.10}"#,
        r#"{"id":23958446825181076828,"f":1.10,"b":1}"#,
    );
    assert_eq!(
        refused(BulkEdit::jq("select(.a == 2)"), r#"{"a":1}"#),
        "jq gave no value for it"
    );
    assert!(refused(BulkEdit::jq(".[]"), "[1,2]").contains("more than one"));
    assert!(refused(BulkEdit::jq(".a.b"), r#"{"a":1}"#).starts_with("jq: "));
    assert_eq!(
        refused(BulkEdit::jq("halt"), "{}"),
        "jq stopped without a value"
    );
    assert!(
        BulkEdit::jq(".a |").unwrap_err().contains("ends too early"),
        "{:?}",
        BulkEdit::jq(".a |")
    );
    assert!(
        BulkEdit::jq("nosuch").unwrap_err().contains("nosuch"),
        "{:?}",
        BulkEdit::jq("nosuch")
    );
}

#[test]
fn a_change_goes_through_the_schema() {
    let schemas = Schemas::default();
    let text = r#"{"type":"record","name":"R","fields":[{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},{"name":"cur","type":["null","string"],"default":null}]}"#;
    schemas.insert(Schema::new(
        SchemaKind::Avro,
        text,
        SchemaKey::Confluent(12),
    ));
    let payload = [0, 0, 0, 0, 12, 4, 0x0f, 0xda, 0];
    let decoded = decode(&Input::value(&payload), &Settings::default(), &schemas);
    let preview = edit(&decoded, &BulkEdit::set("/cur", "\"EUR\"").unwrap()).unwrap();
    assert_eq!(
        preview.edited.bytes,
        [&payload[..8], &[2, 6], b"EUR"].concat()
    );
    assert_eq!(preview.changes[0].to_string(), "/cur: null → \"EUR\"");
    let price = edit(&decoded, &BulkEdit::set("/price", "\"40.59\"").unwrap()).unwrap();
    assert_eq!(price.edited.bytes, [0, 0, 0, 0, 12, 4, 0x0f, 0xdb, 0]);
    let wrong = edit(&decoded, &BulkEdit::set("/cur", "5").unwrap()).unwrap_err();
    assert_eq!(wrong, "avro: /cur: a number fits none of: null; text");
    let missing = decode(
        &Input::value(&payload),
        &Settings::default(),
        &Schemas::default(),
    );
    assert_eq!(
        edit(&missing, &BulkEdit::remove("/cur").unwrap()).unwrap_err(),
        "its schema is missing: needs Confluent id 12"
    );
}
