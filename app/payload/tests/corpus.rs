//! The corpus of `assets/corpus`: payloads made by other implementations than ours, each with what
//! must be found in it, and taken through an edit and back.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole file is a test that may fail loudly"
)]

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dlo_payload::{
    Decoded, Document, Header, Input, Lookup, Part, Schema, SchemaKey, SchemaKind, Schemas,
    Settings, Step, decode, diff, edit,
};
use serde_json::Value;

/// One payload of the corpus.
struct Case {
    json: Value,
    body: Option<Vec<u8>>,
    headers: Vec<(String, Vec<u8>)>,
}

impl Case {
    fn name(&self) -> &str {
        self.json["name"].as_str().expect("a name")
    }

    fn decode(&self, body: Option<&[u8]>, schemas: &Schemas) -> Decoded {
        let headers: Vec<Header<'_>> = self
            .headers
            .iter()
            .map(|(name, value)| Header {
                name,
                value: Some(value),
            })
            .collect();
        let part = match self.json["part"].as_str() {
            Some("key") => Part::Key,
            _ => Part::Value,
        };
        let input = Input {
            part,
            bytes: body,
            headers: &headers,
            content_type: self.json["content_type"].as_str(),
            content_encoding: None,
        };
        decode(&input, &Settings::default(), schemas)
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../assets/corpus")
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join("payloads.ndjson")).expect("the corpus");
    text.lines().map(case).collect()
}

fn case(line: &str) -> Case {
    let json: Value = serde_json::from_str(line).expect("a line of JSON");
    let body = json["body"]
        .as_str()
        .map(|body| BASE64.decode(body).expect("base64"));
    let headers = json["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|header| {
            let value = match &header[1] {
                Value::String(text) => text.clone().into_bytes(),
                other => BASE64
                    .decode(other["base64"].as_str().expect("base64"))
                    .expect("base64"),
            };
            (header[0].as_str().expect("a name").to_owned(), value)
        });
    Case {
        headers: headers.collect(),
        body,
        json: json.clone(),
    }
}

fn schemas() -> Schemas {
    let text = std::fs::read_to_string(folder().join("schemas.json")).expect("the schemas");
    let list: Vec<Value> = serde_json::from_str(&text).expect("a list");
    let schemas = Schemas::default();
    for entry in &list {
        let key = match &entry["key"] {
            Value::Null => SchemaKey::Confluent(
                entry["id"]
                    .as_u64()
                    .and_then(|id| u32::try_from(id).ok())
                    .expect("an id"),
            ),
            key => serde_json::from_value(key.clone()).expect("a key"),
        };
        let kind: SchemaKind = serde_json::from_value(entry["kind"].clone()).expect("a kind");
        let schema = Schema::new(kind, entry["text"].as_str().expect("a text"), key).in_subject(
            entry["subject"].as_str().expect("a subject"),
            entry["version"].as_i64().expect("a version"),
        );
        schema.check().expect("a good schema");
        schemas.insert(schema);
    }
    schemas.answer(SchemaKey::Confluent(9999), Lookup::NoRegistry);
    schemas
}

/// Numbers may be spelled differently by other languages (1e+300); everything else is exact.
fn differences(expected: &Document, found: &Document) -> Vec<String> {
    let changes = diff::documents(expected, found);
    let real = changes.iter().filter(|change| !matches!((&change.before, &change.after), (Some(Document::Number(one)), Some(Document::Number(two))) if !one.is_int() && !two.is_int() && one.as_f64() == two.as_f64()));
    real.map(ToString::to_string).collect()
}

#[test]
fn every_payload_is_decoded_as_its_maker_meant_it() {
    let (cases, schemas) = (cases(), schemas());
    assert!(
        cases.len() >= 150,
        "the corpus has {} payloads",
        cases.len()
    );
    let mut wrong = Vec::new();
    for case in &cases {
        let decoded = case.decode(case.body.as_deref(), &schemas);
        let layers: Vec<&str> = case.json["layers"]
            .as_array()
            .expect("layers")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        if decoded.chips() != layers {
            wrong.push(format!(
                "{}: found {:?}, meant {layers:?}: {:?}",
                case.name(),
                decoded.chips(),
                decoded.report()
            ));
            continue;
        }
        let expected = Document::from_json(&case.json["value"]);
        for difference in differences(&expected, &decoded.document) {
            wrong.push(format!("{}: {difference}", case.name()));
        }
        // A registry would be asked about a large number in a key, and say no.
        if !decoded.needs.is_empty() && decoded.format != Step::Int64 {
            wrong.push(format!("{}: still needs {:?}", case.name(), decoded.needs));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} payloads:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    println!("{} payloads", cases.len());
}

#[test]
fn every_payload_comes_back_unedited_byte_for_byte() {
    let schemas = schemas();
    for case in cases() {
        let Some(body) = &case.body else { continue };
        let decoded = case.decode(Some(body), &schemas);
        let same = edit::encode(&decoded, &decoded.document).expect("an unedited payload");
        assert_eq!(&same.bytes, body, "{}", case.name());
        assert!(
            same.remarks.is_empty(),
            "{}: {:?}",
            case.name(),
            same.remarks
        );
    }
}

/// A text or number somewhere is changed, encoded, decoded, changed back: the payload must say the
/// same again, and where nothing was said about its bytes, they must be the same too.
#[test]
fn every_payload_survives_an_edit_and_its_undoing() {
    let schemas = schemas();
    let (mut edited, mut exact) = (0, 0);
    for case in cases() {
        let Some(body) = &case.body else { continue };
        let decoded = case.decode(Some(body), &schemas);
        let Some(changed) = changed(&decoded) else {
            continue;
        };
        let there = edit::encode(&decoded, &changed)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        let between = case.decode(Some(&there.bytes), &schemas);
        assert_eq!(alphabets(&between), alphabets(&decoded), "{}", case.name());
        assert_eq!(
            differences(&changed, &between.document),
            Vec::<String>::new(),
            "{}",
            case.name()
        );
        let back = edit::encode(&between, &decoded.document)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        let again = case.decode(Some(&back.bytes), &schemas);
        assert_eq!(
            differences(&decoded.document, &again.document),
            Vec::<String>::new(),
            "{}",
            case.name()
        );
        edited += 1;
        exact += usize::from(back.bytes == *body);
    }
    println!("{edited} payloads edited and undone, {exact} of them the same byte for byte");
    assert!(edited > 100, "{edited} were edited");
    assert!(
        exact * 10 > edited * 6,
        "{exact} of {edited} kept their bytes"
    );
}

/// The chips; without a sign of its own alphabet base64url looks like base64.
fn alphabets(decoded: &Decoded) -> Vec<String> {
    let chips = decoded.chips().into_iter();
    chips
        .map(|chip| chip.replace("base64url", "base64"))
        .collect()
}

/// The document with its first text that is not an enum's or a time's changed by one letter.
fn changed(decoded: &Decoded) -> Option<Document> {
    if edit::can_edit(decoded).is_err()
        || matches!(
            decoded.format,
            Step::Xml | Step::Text | Step::Hex | Step::Empty
        )
    {
        return None;
    }
    let mut document = decoded.document.clone();
    change(&mut document).then_some(document)
}

fn change(document: &mut Document) -> bool {
    match document {
        Document::Text(text) if text.len() != 36 && !matches!(text.as_str(), "NEW" | "PAID") => {
            text.push('x');
            true
        }
        Document::List(items) => items.iter_mut().any(change),
        Document::Map(entries) => entries
            .iter_mut()
            .filter(|(key, _)| key != "@type")
            .any(|(_, value)| change(value)),
        Document::Pairs(entries) => entries.iter_mut().any(|(_, value)| change(value)),
        Document::Number(number) => match number
            .as_i64()
            .filter(|value| value.unsigned_abs() < 1_000_000)
        {
            Some(value) => {
                *document = Document::int(value + 1);
                true
            }
            None => false,
        },
        _ => false,
    }
}

/// Every prefix of every payload, and every payload with one byte changed, ends in a document.
#[test]
fn damaged_payloads_never_panic() {
    let schemas = schemas();
    for case in cases() {
        let Some(body) = &case.body else { continue };
        let stride = (body.len() / 12).max(1);
        for at in (0..body.len()).step_by(stride) {
            let cut = case.decode(Some(&body[..at]), &schemas);
            assert!(
                !cut.report()
                    .iter()
                    .any(|line| line.contains("failed inside")),
                "{} cut at {at}",
                case.name()
            );
            let mut flipped = body.clone();
            flipped[at] ^= 0xa5;
            let decoded = case.decode(Some(&flipped), &schemas);
            assert!(
                !decoded
                    .report()
                    .iter()
                    .any(|line| line.contains("failed inside")),
                "{} changed at {at}",
                case.name()
            );
        }
    }
}
