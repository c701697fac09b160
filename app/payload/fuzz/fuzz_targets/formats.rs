//! Any bytes, read as the format that the first byte chooses, with schemas of every kind.
#![no_main]

use std::sync::LazyLock;

use dlo_payload::{Input, Recipe, Schema, SchemaKey, SchemaKind, Schemas, Settings, Step, decode};
use libfuzzer_sys::fuzz_target;

const AVRO: &str = r#"{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]},{"name":"list","type":{"type":"array","items":"null"}},
  {"name":"map","type":{"type":"map","values":"double"}},{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
  {"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"e","type":{"type":"enum","name":"E","symbols":["A"]}}]}"#;
const PROTO: &str = r#"syntax = "proto3"; message M { M m = 1; repeated int32 n = 2; map<string, M> x = 3; string s = 4; bytes b = 5; double d = 6; }"#;

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
    let schemas = Schemas::default();
    schemas.insert(Schema::new(
        SchemaKind::Avro,
        AVRO,
        SchemaKey::Local("avro".into()),
    ));
    schemas.insert(Schema::new(
        SchemaKind::Protobuf,
        PROTO,
        SchemaKey::Local("proto".into()),
    ));
    schemas
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else {
        return;
    };
    let steps: Vec<Step> = Step::all().collect();
    let step = steps[usize::from(*first) % steps.len()].clone();
    let bound = if step == Step::Avro { "avro" } else { "proto" };
    let settings = Settings {
        recipe: Some(Recipe(vec![step])),
        bound: Some(SchemaKey::Local(bound.into())),
        ..Settings::default()
    };
    let decoded = decode(&Input::value(bytes), &settings, &*SCHEMAS);
    assert!(
        !decoded
            .report()
            .iter()
            .any(|line| line.contains("failed inside"))
    );
});
