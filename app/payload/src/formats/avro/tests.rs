//! Avro read and written exactly.

use super::*;
use crate::limits::Limits;
use crate::schemas::Reference;

const ORDER: &str = r#"{"type":"record","name":"Order","namespace":"shop","fields":[
  {"name":"id","type":"string"},
  {"name":"total","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},
  {"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
  {"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID"]}},
  {"name":"note","type":["null","string"],"default":null},
  {"name":"lines","type":{"type":"array","items":{"type":"record","name":"Line","fields":[{"name":"sku","type":"string"},{"name":"n","type":"int","default":1}]}}},
  {"name":"tags","type":{"type":"map","values":"long"}}]}"#;

fn schema(text: &str) -> AvroSchema {
    AvroSchema::parse(text, &[]).unwrap()
}

fn budget() -> Budget {
    Budget::new(&Limits::default())
}

fn order() -> Document {
    Document::from_json(&serde_json::json!({
        "id": "o-1", "total": {"decimal": "40.58"}, "at": {"time": "2026-11-30T03:10:00.123Z", "raw": 1_796_008_200_123i64}, "state": "PAID",
        "note": null, "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 3}], "tags": {"x": 9_007_199_254_740_993i64}
    }))
}

#[test]
fn comes_back_exactly() {
    let schema = schema(ORDER);
    let bytes = schema.write(&order()).unwrap();
    assert_eq!(schema.decode(&bytes, &mut budget()).unwrap(), order());
    assert_eq!(schema.encode(&bytes, &order(), &order()).unwrap(), bytes);
}

#[test]
fn known_trap_b10_decimal_bytes() {
    let schema = schema(r#"{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}"#);
    assert_eq!(
        schema.decode(&[4, 0x0f, 0xda], &mut budget()).unwrap(),
        Document::Decimal("40.58".into())
    );
}

/// Blocks with sizes and odd varints are legal; an edit elsewhere keeps them.
#[test]
fn an_edit_keeps_the_bytes_around_it() {
    let schema = schema(
        r#"{"type":"record","name":"R","fields":[{"name":"list","type":{"type":"array","items":"int"}},{"name":"s","type":"string"},{"name":"u","type":["int","long","null"]}]}"#,
    );
    // The array as a block of two items with its size in bytes, and the union's second branch.
    let bytes = [3, 4, 2, 4, 0, 2, b'a', 2, 10];
    let old = schema.decode(&bytes, &mut budget()).unwrap();
    assert_eq!(old.to_json().to_string(), r#"{"list":[1,2],"s":"a","u":5}"#);
    let Document::Map(mut entries) = old.clone() else {
        panic!("map")
    };
    entries[1].1 = Document::text("bc");
    entries[2].1 = Document::int(6);
    let edited = schema
        .encode(&bytes, &old, &Document::Map(entries))
        .unwrap();
    assert_eq!(
        edited,
        [3, 4, 2, 4, 0, 4, b'b', b'c', 2, 12],
        "block and branch stay"
    );
}

#[test]
fn a_missing_field_takes_its_default_or_is_named() {
    let schema = schema(ORDER);
    let mut json = order().to_json();
    json.as_object_mut().unwrap().remove("note");
    let bytes = schema.write(&Document::from_json(&json)).unwrap();
    assert_eq!(
        schema.decode(&bytes, &mut budget()).unwrap().get("note"),
        Some(&Document::Null)
    );
    json["lines"][1].as_object_mut().unwrap().remove("sku");
    let refusal = schema
        .write(&Document::from_json(&json))
        .unwrap_err()
        .to_string();
    assert_eq!(refusal, "/lines/1/sku: it is missing and has no default");
}

#[test]
fn problems_have_paths_and_sentences() {
    let schema = schema(ORDER);
    let mut json = order().to_json();
    json["state"] = "LOST".into();
    json["lines"][0]["n"] = "two".into();
    json["extra"] = 1.into();
    let problems: Vec<String> = schema
        .check(&Document::from_json(&json))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        problems,
        [
            "/state: \"LOST\" is not one of NEW, PAID",
            "/lines/0/n: expected an int (32 bits), found text \"two\"",
            "/extra: the schema has no field \"extra\""
        ]
    );
}

#[test]
fn references_are_found_by_name() {
    let reference = Reference { name: "shop.Money".into(), text: r#"{"type":"record","name":"Money","namespace":"shop","fields":[{"name":"cents","type":"long"}]}"#.into() };
    let text = r#"{"type":"record","name":"Pay","namespace":"shop","fields":[{"name":"m","type":"Money"}]}"#;
    let schema = AvroSchema::parse(text, &[reference]).unwrap();
    assert_eq!(
        schema
            .decode(&[2], &mut budget())
            .unwrap()
            .to_json()
            .to_string(),
        r#"{"m":{"cents":1}}"#
    );
    assert!(
        AvroSchema::parse(text, &[])
            .unwrap_err()
            .contains("shop.Money is not defined")
    );
}

#[test]
fn fingerprints_of_the_specification() {
    // From the specification's own test data (share/test/data/schema-tests.txt).
    assert_eq!(schema("\"null\"").fingerprint(), 7195948357588979594);
    assert_eq!(schema("\"int\"").fingerprint() as i64, 8247732601305521295);
}

#[test]
fn bombs_and_lies() {
    let nulls = schema(r#"{"type":"array","items":"null"}"#);
    // 2^41 nulls: seven bytes that would take terabytes.
    let mut bomb = Vec::new();
    let mut rest = (1u64 << 41) << 1;
    while rest >= 0x80 {
        bomb.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bomb.extend([rest as u8, 0]);
    let refusal = nulls.decode(&bomb, &mut budget()).unwrap_err();
    assert!(
        refusal.is_limit() && refusal.to_string().contains("claims 2199023255552 values"),
        "{refusal}"
    );

    let empties = schema(r#"{"type":"array","items":{"type":"record","name":"E","fields":[]}}"#);
    assert!(empties.decode(&bomb, &mut budget()).unwrap_err().is_limit());
    let tree =
        schema(r#"{"type":"record","name":"T","fields":[{"name":"next","type":["null","T"]}]}"#);
    assert!(
        tree.decode(&[2; 100_000], &mut budget())
            .unwrap_err()
            .is_limit(),
        "a deep nest"
    );
    let text = schema("\"string\"");
    for bytes in [
        &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1][..],
        &[1],
        &[4, b'a'],
        &[],
    ] {
        assert!(text.decode(bytes, &mut budget()).is_err());
    }
    assert!(
        schema("\"int\"")
            .decode(&[2, 0], &mut budget())
            .unwrap_err()
            .to_string()
            .contains("left over")
    );
}

#[test]
fn a_million_items_are_fine() {
    let schema = schema(r#"{"type":"array","items":"int"}"#);
    let list = Document::List((0..1_000_000).map(Document::int).collect());
    let bytes = schema.write(&list).unwrap();
    assert_eq!(schema.decode(&bytes, &mut budget()).unwrap(), list);
}
