//! How fast each format is decoded beside the plain library call on the same bytes.
//!
//! `cargo bench -p dlo-payload` prints one line a format: our rate, the library's, and the ratio
//! (aim: at least 0.8). Ours includes detection, limits and the exact document.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    deprecated,
    reason = "a benchmark may fail loudly, and the one-call functions of apache-avro are what people use"
)]

use std::hint::black_box;
use std::io::Read as _;
use std::time::{Duration, Instant};

use dlo_payload::{Input, Schema, SchemaKey, SchemaKind, Schemas, Settings, decode};
use prost_reflect::DynamicMessage;
use serde_json::{Value, json};

const AVRO: &str = r#"{"type":"array","items":{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"total","type":"long"},{"name":"price","type":"double"},{"name":"note","type":["null","string"]},{"name":"tags","type":{"type":"array","items":"string"}}]}}"#;
const PROTO: &str = r#"syntax = "proto3"; message Orders { repeated Order orders = 1; } message Order { string id = 1; int64 total = 2; double price = 3; repeated string tags = 4; }"#;

fn main() {
    let orders: Vec<Value> = (0..5_000).map(order).collect();
    let orders = Value::Array(orders);
    let text = orders.to_string().into_bytes();
    let plain = Schemas::default();
    println!(
        "{:<14} {:>10} {:>12} {:>12} {:>7}",
        "format", "bytes", "ours MB/s", "library", "ratio"
    );

    line("json", &text, &plain, |bytes| {
        drop(black_box(serde_json::from_slice::<Value>(bytes).unwrap()))
    });

    let mut msgpack = Vec::new();
    rmpv::encode::write_value(&mut msgpack, &rmpv_value(&orders)).unwrap();
    line("msgpack", &msgpack, &plain, |bytes| {
        drop(black_box(
            rmpv::decode::read_value(&mut &bytes[..]).unwrap(),
        ))
    });

    let mut cbor = Vec::new();
    ciborium::into_writer(&cbor_value(&orders), &mut cbor).unwrap();
    line("cbor", &cbor, &plain, |bytes| {
        drop(black_box(
            ciborium::from_reader::<ciborium::Value, _>(bytes).unwrap(),
        ))
    });

    avro(&orders);
    protobuf(&orders);

    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, &text).unwrap();
        encoder.finish().unwrap()
    };
    line("gzip+json", &gzip, &plain, |bytes| {
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(bytes)
            .read_to_end(&mut unpacked)
            .unwrap();
        drop(black_box(
            serde_json::from_slice::<Value>(&unpacked).unwrap(),
        ));
    });
}

fn order(number: i64) -> Value {
    json!({"id": format!("order-{number}"), "total": number * 1_000_003, "price": number as f64 / 7.0, "note": if number % 3 == 0 { Value::Null } else { "a note of some length".into() }, "tags": ["red", "green", "blue"]})
}

fn avro(orders: &Value) {
    let schema = apache_avro::Schema::parse_str(AVRO).unwrap();
    let ours = Schema::new(SchemaKind::Avro, AVRO, SchemaKey::Confluent(1));
    let schemas = Schemas::default();
    schemas.insert(ours);
    let value = apache_avro::types::Value::Array(
        orders.as_array().unwrap().iter().map(avro_order).collect(),
    );
    let payload = apache_avro::to_avro_datum(&schema, value).unwrap();
    let framed = [&[0, 0, 0, 0, 1][..], &payload].concat();
    line("avro", &framed, &schemas, |bytes| {
        drop(black_box(
            apache_avro::from_avro_datum(&schema, &mut &bytes[5..], None).unwrap(),
        ))
    });
}

fn avro_order(order: &Value) -> apache_avro::types::Value {
    use apache_avro::types::Value as Avro;
    let text = |value: &Value| Avro::String(value.as_str().unwrap().to_owned());
    let note = match &order["note"] {
        Value::Null => Avro::Union(0, Box::new(Avro::Null)),
        note => Avro::Union(1, Box::new(text(note))),
    };
    Avro::Record(vec![
        ("id".into(), text(&order["id"])),
        ("total".into(), Avro::Long(order["total"].as_i64().unwrap())),
        (
            "price".into(),
            Avro::Double(order["price"].as_f64().unwrap()),
        ),
        ("note".into(), note),
        (
            "tags".into(),
            Avro::Array(order["tags"].as_array().unwrap().iter().map(text).collect()),
        ),
    ])
}

fn protobuf(orders: &Value) {
    let schemas = Schemas::default();
    schemas.insert(Schema::new(
        SchemaKind::Protobuf,
        PROTO,
        SchemaKey::Confluent(1),
    ));
    let mut payload = Vec::new();
    for order in orders.as_array().unwrap() {
        let mut inside = Vec::new();
        field(&mut inside, 0x0a, order["id"].as_str().unwrap().as_bytes());
        inside.push(0x10);
        varint(&mut inside, order["total"].as_u64().unwrap());
        inside.push(0x19);
        inside.extend(order["price"].as_f64().unwrap().to_le_bytes());
        for tag in order["tags"].as_array().unwrap() {
            field(&mut inside, 0x22, tag.as_str().unwrap().as_bytes());
        }
        field(&mut payload, 0x0a, &inside);
    }
    let folder = std::env::temp_dir().join(format!("dlo-ratio-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("o.proto"), PROTO).unwrap();
    let set = protox::compile(["o.proto"], [&folder]).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let pool = prost_reflect::DescriptorPool::from_file_descriptor_set(set).unwrap();
    let descriptor = pool.get_message_by_name("Orders").unwrap();
    let framed = [&[0, 0, 0, 0, 1, 0][..], &payload].concat();
    line("protobuf", &framed, &schemas, |bytes| {
        drop(black_box(
            DynamicMessage::decode(descriptor.clone(), &bytes[6..]).unwrap(),
        ))
    });
}

fn field(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn rmpv_value(value: &Value) -> rmpv::Value {
    match value {
        Value::Null => rmpv::Value::Nil,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| number.as_f64().unwrap().into(), Into::into),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => rmpv::Value::Array(items.iter().map(rmpv_value).collect()),
        Value::Object(entries) => rmpv::Value::Map(
            entries
                .iter()
                .map(|(key, value)| (key.as_str().into(), rmpv_value(value)))
                .collect(),
        ),
    }
}

fn cbor_value(value: &Value) -> ciborium::Value {
    match value {
        Value::Null => ciborium::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| number.as_f64().unwrap().into(), Into::into),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => ciborium::Value::Array(items.iter().map(cbor_value).collect()),
        Value::Object(entries) => ciborium::Value::Map(
            entries
                .iter()
                .map(|(key, value)| (key.as_str().into(), cbor_value(value)))
                .collect(),
        ),
    }
}

fn line(name: &str, bytes: &[u8], schemas: &Schemas, library: impl Fn(&[u8])) {
    let settings = Settings::default();
    let ours = rate(bytes, |bytes| {
        let decoded = black_box(decode(&Input::value(bytes), &settings, schemas));
        assert_eq!(
            decoded.chips().last().map(String::as_str),
            name.rsplit('+').next(),
            "{:?}",
            decoded.report()
        );
    });
    let theirs = rate(bytes, library);
    println!(
        "{name:<14} {:>10} {ours:>12.1} {theirs:>12.1} {:>7.2}",
        bytes.len(),
        ours / theirs
    );
}

/// The best of several rounds, in megabytes of payload a second: noise only makes it slower.
fn rate(bytes: &[u8], work: impl Fn(&[u8])) -> f64 {
    let mut best = f64::MAX;
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        let started = Instant::now();
        work(bytes);
        best = best.min(started.elapsed().as_secs_f64());
    }
    bytes.len() as f64 / 1e6 / best
}
