//! Damaged payloads: the corpus, changed at random, must always end in a document, within the limits.
//!
//! A few seconds by default; `DLO_FUZZ_SECONDS=600 cargo test -p dlo-payload --test mutations` runs
//! longer. Each run begins with another seed and prints it; `DLO_FUZZ_SEED` runs one again.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole file is a test that may fail loudly"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dlo_payload::{
    Document, Input, Schema, SchemaKey, SchemaKind, Schemas, Settings, Step, decode, edit,
};
use serde_json::Value;

/// Far more than the limit of five seconds: the machine may be busy, and a build for tests is slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// A small generator of numbers (xorshift): the same seed gives the same payloads.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit.max(1) as u64) as usize
    }
}

fn corpus() -> (Vec<Vec<u8>>, Schemas) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../assets/corpus");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the corpus");
    let lines = read("payloads.ndjson");
    let bodies = lines.lines().filter_map(|line| {
        let json: Value = serde_json::from_str(line).expect("a line of JSON");
        BASE64.decode(json["body"].as_str()?).ok()
    });
    let schemas = Schemas::default();
    let list: Vec<Value> = serde_json::from_str(&read("schemas.json")).expect("a list");
    for entry in &list {
        let Some(id) = entry["id"].as_u64() else {
            continue;
        };
        let kind: SchemaKind = serde_json::from_value(entry["kind"].clone()).expect("a kind");
        let text = entry["text"].as_str().expect("a text");
        schemas.insert(Schema::new(
            kind,
            text,
            SchemaKey::Confluent(u32::try_from(id).expect("an id")),
        ));
    }
    (bodies.filter(|body| !body.is_empty()).collect(), schemas)
}

fn damage(bodies: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut body = bodies[dice.below(bodies.len())].clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(body.len());
        match dice.below(7) {
            0 => body.truncate(at),
            1 => body.insert(at, dice.roll() as u8),
            2 => body.extend_from_slice(&dice.roll().to_be_bytes()),
            3 => body.splice(at..at, [0xff; 5]).for_each(drop),
            4 => {
                let other = &bodies[dice.below(bodies.len())];
                let from = dice.below(other.len());
                body.truncate(at);
                body.extend_from_slice(&other[from..]);
            }
            _ if !body.is_empty() => body[at] = dice.roll() as u8,
            _ => body.push(dice.roll() as u8),
        }
    }
    body
}

#[test]
fn damaged_payloads_end_in_a_document() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let clock = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("a clock")
        .as_nanos() as u64;
    let seed = number("DLO_FUZZ_SEED").unwrap_or(clock | 1);
    let until = Instant::now() + Duration::from_secs(number("DLO_FUZZ_SECONDS").unwrap_or(3));
    println!("DLO_FUZZ_SEED={seed}");
    let (bodies, schemas) = corpus();
    let formats: Vec<Step> = Step::all().collect();
    let mut dice = Dice(seed);
    let mut count = 0u64;
    while Instant::now() < until {
        let body = damage(&bodies, &mut dice);
        let recipe = match dice.below(4) {
            0 => format!("{}", formats[dice.below(formats.len())])
                .parse()
                .ok(),
            _ => None,
        };
        let settings = Settings {
            recipe,
            ..Settings::default()
        };
        let started = Instant::now();
        let decoded = decode(&Input::value(&body), &settings, &schemas);
        let problem = decoded
            .report()
            .into_iter()
            .find(|line| line.contains("failed inside"));
        assert_eq!(
            problem,
            None,
            "seed {seed}, payload {count}: {}",
            BASE64.encode(&body)
        );
        assert!(
            started.elapsed() < PATIENCE,
            "seed {seed}, payload {count} took {:?}: {}",
            started.elapsed(),
            BASE64.encode(&body)
        );
        let same = edit::encode(&decoded, &decoded.document).expect("an unedited payload");
        assert_eq!(
            same.bytes, body,
            "seed {seed}, payload {count}: unedited bytes stay"
        );
        // An edit may be refused, but must not panic either.
        let _ = edit::encode(
            &decoded,
            &Document::List(vec![decoded.document.clone(), Document::Null]),
        );
        count += 1;
    }
    println!("{count} damaged payloads");
    assert!(count > 100);
}

/// What a hostile producer would send: each ends in a note, soon and in little memory.
#[test]
fn bombs_end_in_a_note() {
    let schemas = Schemas::default();
    let avro = |id, text: &str| {
        drop(schemas.insert(Schema::new(
            SchemaKind::Avro,
            text,
            SchemaKey::Confluent(id),
        )))
    };
    avro(1, r#"{"type":"array","items":"null"}"#);
    avro(
        2,
        r#"{"type":"map","values":{"type":"array","items":{"type":"record","name":"E","fields":[]}}}"#,
    );
    avro(
        3,
        r#"{"type":"record","name":"T","fields":[{"name":"next","type":["null","T"]}]}"#,
    );
    schemas.insert(Schema::new(
        SchemaKind::Protobuf,
        "syntax = \"proto3\"; message M { M m = 1; repeated bool b = 2; }",
        SchemaKey::Confluent(4),
    ));
    let framed = |id: u32, payload: &[u8]| [&[0][..], &id.to_be_bytes(), payload].concat();
    let claim = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0];
    let mut nested = Vec::new();
    for _ in 0..200 {
        let mut length = Vec::new();
        let mut rest = nested.len();
        while rest >= 0x80 {
            length.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        length.push(rest as u8);
        nested = [&[0x0a][..], &length, &nested].concat();
    }
    let packed = [&[0x12, 0x80, 0x80, 0x80, 0x04][..], &vec![1; 8 << 20]].concat();
    let bombs: Vec<(&str, Vec<u8>)> = vec![
        ("2^48 nulls", framed(1, &claim)),
        (
            "a map of empty records",
            framed(2, &[&[2, 2, b'k'][..], &claim].concat()),
        ),
        ("a deep record", framed(3, &[2; 100_000])),
        ("a deep message", framed(4, &[&[0][..], &nested].concat())),
        (
            "eight million packed booleans",
            framed(4, &[&[0][..], &packed].concat()),
        ),
        ("a deep list of JSON", "[".repeat(2_000_000).into_bytes()),
        (
            "a deep object of JSON",
            "{\"a\":".repeat(400_000).into_bytes(),
        ),
        (
            "ten million numbers",
            format!("[{}1]", "1,".repeat(10_000_000)).into_bytes(),
        ),
        ("a deep list of MessagePack", vec![0x91; 1_000_000]),
        (
            "four billion items of MessagePack",
            b"\xdd\xff\xff\xff\xff\xc0\xc0".to_vec(),
        ),
        ("a deep list of CBOR", vec![0x9f; 1_000_000]),
        ("deep XML", "<a>".repeat(500_000).into_bytes()),
        ("a number of a million digits", vec![b'9'; 1_000_000]),
        (
            "base64 in base64",
            (0..12).fold(b"{\"a\":1}".to_vec(), |body, _| {
                BASE64.encode(body).into_bytes()
            }),
        ),
    ];
    for (name, bomb) in bombs {
        let started = Instant::now();
        let decoded = decode(&Input::value(&bomb), &Settings::default(), &schemas);
        assert!(
            started.elapsed() < PATIENCE,
            "{name} took {:?}",
            started.elapsed()
        );
        let noted = decoded.notes.iter().any(|note| !note.text.is_empty());
        assert!(
            noted || decoded.format == Step::Json,
            "{name}: {:?}",
            decoded.report()
        );
    }
}
