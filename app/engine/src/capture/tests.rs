//! Round trips: whatever goes in comes out the same.

use std::{collections::BTreeMap, io::Cursor, time::Instant};

use bytes::Bytes;
use dlo_core::{Delivery, Header, Message, Millis, Position, Typed, Value};

use super::*;
use crate::dead_letter::{Confidence, Pointer};

fn delivery(message: Message) -> Delivery {
    Delivery {
        message,
        position: Position::Index { index: 3 },
        lock: None,
        time: Some(Millis(1_796_065_906_123)),
        delivery_count: None,
        facts: BTreeMap::new(),
    }
}

fn with_header(kind: &'static str, value: Value) -> Delivery {
    delivery(Message {
        headers: vec![Header::new("h", kind, value)],
        ..Message::default()
    })
}

/// Writes and reads; the message must be the same, and so must the second line.
fn check(delivery: &Delivery) -> String {
    let line = to_line(delivery, "rabbitmq", "orders.dlq", None);
    assert!(!line.contains(['\n', '\r']), "{line}");
    let read = parse_line(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_eq!(&read.delivery, delivery, "{line}");
    assert_eq!(read.to_line(), line);
    line
}

fn check_value(kind: &'static str, value: Value, json: &str) {
    let line = check(&with_header(kind, value.clone()));
    assert!(
        line.contains(&format!(r#""type":"{kind}","value":{json}}}"#)),
        "{line}"
    );
    // The same value as a property and inside a list.
    let mut message = Message::default();
    message.properties.insert("p".to_owned(), value.clone());
    check(&delivery(message));
    check(&with_header(
        "array",
        Value::List(vec![Typed::new(kind, value)]),
    ));
}

#[test]
fn the_line_has_the_names_and_forms_of_the_design() {
    let mut message = Message {
        headers: vec![
            Header::new("trace", "longstr", Value::text("a-1")),
            Header::new(
                "blob",
                "bytes",
                Value::Bytes(Bytes::from_static(b"\x00\xff")),
            ),
        ],
        body: Some(Bytes::from_static(b"{\"id\":1}")),
        ..Message::default()
    };
    let json = Value::text("application/json");
    message.properties.insert("content_type".to_owned(), json);
    let expected = concat!(
        r#"{"dlo":1,"broker":"rabbitmq","destination":"orders.dlq","position":{"index":3},"time":"2026-11-30T19:11:46.123Z","key":null,"#,
        r#""headers":[{"name":"trace","type":"longstr","value":{"text":"a-1"}},{"name":"blob","type":"bytes","value":{"base64":"AP8="}}],"#,
        r#""properties":{"content_type":"application/json"},"body":{"text":"{\"id\":1}"},"#,
        r#""sha256":"SHA"}"#
    );
    let sha = message.sha256();
    assert_eq!(check(&delivery(message)), expected.replace("SHA", &sha));
}

#[test]
fn every_kind_of_value_comes_back() {
    check_value("void", Value::Null, "null");
    check_value("bool", Value::Bool(true), r#"{"bool":true}"#);
    check_value(
        "long",
        Value::Int(9_007_199_254_740_993),
        r#"{"int":"9007199254740993"}"#,
    );
    for int in [
        i128::MIN,
        i128::MAX,
        u64::MAX.into(),
        i64::MIN.into(),
        0,
        -1,
    ] {
        check_value("long", Value::Int(int), &format!(r#"{{"int":"{int}"}}"#));
    }
    check_value("longstr", Value::text(""), r#"{"text":""}"#);
    check_value("longstr", Value::text("null"), r#"{"text":"null"}"#);
    check_value(
        "longstr",
        Value::text("\u{0}\n\"\\\u{7f}é😀\u{2028}"),
        "{\"text\":\"\\u0000\\n\\\"\\\\\u{7f}é😀\u{2028}\"}",
    );
    check_value(
        "bytes",
        Value::Bytes(Bytes::from_static(&[0xc3, 0x28])),
        r#"{"base64":"wyg="}"#,
    );
    check_value(
        "decimal",
        Value::Decimal {
            unscaled: 1230,
            scale: 2,
        },
        r#"{"decimal":"12.30"}"#,
    );
    check_value(
        "decimal",
        Value::Decimal {
            unscaled: -5,
            scale: 2,
        },
        r#"{"decimal":"-0.05"}"#,
    );
    check_value(
        "decimal",
        Value::Decimal {
            unscaled: 0,
            scale: 3,
        },
        r#"{"decimal":"0.000"}"#,
    );
    check_value(
        "decimal",
        Value::Decimal {
            unscaled: 7,
            scale: 0,
        },
        r#"{"decimal":"7"}"#,
    );
    check(&with_header(
        "decimal",
        Value::Decimal {
            unscaled: i128::MIN,
            scale: 255,
        },
    ));
    check_value(
        "timestamp",
        Value::Time(1_700_000_000_000),
        r#"{"time":"2023-11-14T22:13:20.000Z"}"#,
    );
    for time in [
        i128::from(u64::MAX) * 1000,
        -1,
        i128::from(i64::MAX),
        i128::from(i64::MIN),
    ] {
        check(&with_header("timestamp", Value::Time(time)));
    }
    let bytes: Vec<u8> = (0..=255).collect();
    check(&with_header("bytes", Value::Bytes(bytes.into())));
}

#[test]
fn floats_keep_all_their_bits() {
    check_value("double", Value::Float(1.5), r#"{"float":1.5}"#);
    check_value("double", Value::Float(f64::NAN), r#"{"float":"NaN"}"#);
    check_value(
        "double",
        Value::Float(f64::INFINITY),
        r#"{"float":"Infinity"}"#,
    );
    check_value(
        "double",
        Value::Float(f64::NEG_INFINITY),
        r#"{"float":"-Infinity"}"#,
    );
    check_value("double", Value::Float(-0.0), r#"{"float":-0.0}"#);
    for value in [
        0.1,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        1e16,
        f64::from(0.1_f32),
        f64::from(f32::MIN_POSITIVE),
    ] {
        check(&with_header("double", Value::Float(value)));
    }
    for bits in [
        0x7ff0_0000_0000_0001,
        0xfff8_0000_0000_0000,
        0x7ff8_dead_beef_0001,
    ] {
        check(&with_header("double", Value::Float(f64::from_bits(bits))));
    }
}

#[test]
fn tables_and_lists_come_back_also_empty_and_also_deep() {
    let entry = |value| {
        Value::Table(vec![
            Header::new("", "x", value),
            Header::new("", "y", Value::Null),
        ])
    };
    check_value("table", Value::Table(vec![]), "[]");
    check_value("map", Value::Table(vec![]), "[]");
    check_value("array", Value::List(vec![]), "[]");
    check_value("array", Value::Table(vec![]), r#"{"table":[]}"#);
    check_value("table", Value::List(vec![]), r#"{"list":[]}"#);
    check_value(
        "table",
        entry(Value::Int(1)),
        r#"[{"name":"","type":"x","value":{"int":"1"}},{"name":"","type":"y","value":null}]"#,
    );
    let mut deep = Value::Int(1);
    for level in 0..300 {
        let list = level % 3 == 0;
        deep = if list {
            Value::List(vec![
                Typed::new("t", deep),
                Typed::new("e", Value::List(vec![])),
            ])
        } else {
            entry(deep)
        };
        if [40, 46, 47, 48, 49, 50, 51, 60, 299].contains(&level) {
            check(&with_header("table", deep.clone()));
        }
    }
}

#[test]
fn null_empty_and_text_stay_three_things_in_key_and_body() {
    let kinds = [
        None,
        Some(Bytes::new()),
        Some(Bytes::from_static(b"null")),
        Some(Bytes::from_static(b"\xff")),
    ];
    for key in &kinds {
        for body in &kinds {
            let message = Message {
                key: key.clone(),
                body: body.clone(),
                ..Message::default()
            };
            check(&delivery(message));
        }
    }
}

#[test]
fn positions_facts_counts_and_missing_times_come_back() {
    for position in [
        Position::Offset {
            partition: i32::MAX,
            offset: i64::MAX,
        },
        Position::Index { index: u64::MAX },
        Position::Id {
            id: "a\"b".to_owned(),
        },
    ] {
        let mut delivery = delivery(Message::default());
        delivery.position = position;
        delivery.time = None;
        delivery.delivery_count = Some(u64::MAX);
        delivery
            .facts
            .insert("redelivered".to_owned(), Value::Bool(false));
        delivery
            .facts
            .insert("exchange".to_owned(), Value::text(""));
        check(&delivery);
    }
}

#[test]
fn headers_keep_order_and_duplicates() {
    let names = ["b", "a", "b", "", "b"];
    let headers = names.iter().enumerate();
    let headers =
        headers.map(|(index, name)| Header::new(*name, "bytes", Value::Int(index as i128)));
    check(&delivery(Message {
        headers: headers.collect(),
        ..Message::default()
    }));
}

#[test]
fn a_death_with_everything_comes_back() {
    let mut death = Death::new("Spring Kafka", Confidence::Likely);
    death.reason.class = Some("a.B".to_owned());
    death.reason.stack = Some("a.B: x\n\tat c.D".to_owned());
    death.origin.partition = Some(0);
    death.origin.offset = Some(i64::MAX);
    death.origin.exchange = Some(String::new());
    death.attempts = Some(3);
    death.scope = Some("retries".into());
    death.first = Some(Millis(1));
    death.note_source("reason.class", "kafka_dlt-exception-fqcn");
    death.pointer = Some(Pointer::Record {
        topic: "t".to_owned(),
        partition: 1,
        offset: 9_007_199_254_740_993,
    });
    death.earlier.push(Death::new("RabbitMQ", Confidence::Sure));
    let line = to_line(
        &delivery(Message::default()),
        "kafka",
        "t-dlt",
        Some(&death),
    );
    assert!(
        line.contains(r#""attempts":3,"#) && line.contains(r#""first":"1970-01-01T00:00:00.001Z""#),
        "{line}"
    );
    assert_eq!(parse_line(&line).map(|read| read.death), Ok(Some(death)));
}

fn problem(line: &str) -> Problem {
    parse_line(line).expect_err(line).problem
}

#[test]
fn damage_is_an_error_that_names_the_line() {
    let good = to_line(
        &delivery(Message {
            body: Some("hello".into()),
            ..Message::default()
        }),
        "b",
        "d",
        None,
    );
    let file = format!(
        "\u{feff}{good}\r\n\n{}\n{good}",
        good.replace("hello", "hullo")
    );
    let lines: Vec<_> = CaptureReader::new(Cursor::new(file)).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].is_ok() && lines[2].is_ok());
    let error = lines[1].as_ref().expect_err("a changed body").to_string();
    assert!(
        error.starts_with("line 3: the body does not match its sha256"),
        "{error}"
    );
    assert_eq!(
        problem(&good.replace("\"dlo\":1", "\"dlo\":2")),
        Problem::Newer(2)
    );
    assert_eq!(problem(r#"{"summary":{"seen":3}}"#), Problem::Summary);
    for (bad, said) in [
        ("{", "EOF"),
        ("[]", "invalid type"),
        ("{}", "no \"dlo\" field"),
        (r#"{"dlo":1,"position":{"index":1}}"#, "no \"destination\""),
        (r#"{"dlo":1,"destination":"d"}"#, "no \"position\""),
        (
            r#"{"dlo":1,"destination":"d","position":{"index":1,"id":"x"}}"#,
            "a position is",
        ),
        (
            r#"{"dlo":1,"body":{"base64":"?"}}"#,
            "base64 text is damaged",
        ),
        (r#"{"dlo":1,"body":{"hex":"00"}}"#, "\"hex\" is no form"),
        (r#"{"dlo":1,"body":{"int":"1"}}"#, "a key or body is null"),
        (
            r#"{"dlo":1,"headers":[{"name":"a"}]}"#,
            "missing field `value`",
        ),
        (
            r#"{"dlo":1,"headers":[{"name":"a","value":{"int":"1.5"}}]}"#,
            "\"1.5\" is no int",
        ),
        (r#"{"dlo":1,"time":"yesterday"}"#, "no RFC 3339 time"),
    ] {
        let error = parse_line(bad).expect_err(bad).to_string();
        assert!(error.contains(said), "{bad}: {error}");
    }
}

#[test]
fn a_newer_version_is_named_even_when_its_death_looks_different() {
    let line = r#"{"death":["other"],"dlo":7,"destination":"d","position":{"index":1}}"#;
    assert_eq!(problem(line), Problem::Newer(7));
}

#[test]
fn unknown_fields_are_kept_and_a_hand_written_line_is_taken() {
    let line = r#"{"dlo":1,"destination":"d","position":{"id":"x"},"properties":{"priority":4,"ratio":1.5},"owner":{"team":"A","n":12345678901234567890123}}"#;
    let read = parse_line(line).expect("a line by hand");
    assert_eq!(
        read.delivery.message.properties.get("priority"),
        Some(&Value::Int(4))
    );
    assert_eq!(
        read.delivery.message.properties.get("ratio"),
        Some(&Value::Float(1.5))
    );
    assert!(
        read.to_line()
            .ends_with(r#""owner":{"team":"A","n":12345678901234567890123}}"#)
    );
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_read() {
    let long = to_line(
        &delivery(Message {
            body: Some("x".repeat(5000).into()),
            ..Message::default()
        }),
        "b",
        "d",
        None,
    );
    let short = to_line(&delivery(Message::default()), "b", "d", None);
    let file = format!("{long}\n{short}\n");
    let lines: Vec<_> = CaptureReader::new(Cursor::new(file))
        .with_line_limit(1000)
        .collect();
    let error = lines[0].as_ref().expect_err("too long").to_string();
    assert!(
        error.starts_with("line 1: the line is longer than 1000 bytes"),
        "{error}"
    );
    assert!(lines[1].is_ok());
}

#[test]
fn a_file_is_never_overwritten_and_reads_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.ndjson");
    let captured = Captured::now("sqs", "q", delivery(Message::default()), None);
    let mut writer = CaptureWriter::create(&path).expect("a new file");
    writer.write(&captured).expect("space");
    assert_eq!(writer.finish_durably(), Ok(1));
    assert!(CaptureWriter::create(&path).is_err());
    let mut writer = CaptureWriter::append(&path).expect("the file");
    writer.write(&captured).expect("space");
    assert_eq!(writer.finish(), Ok(1));
    let read: Result<Vec<_>, _> = CaptureReader::open(&path).expect("the file").collect();
    assert_eq!(read, Ok(vec![captured.clone(), captured]));
}

/// A small generator, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn bytes(&mut self) -> Bytes {
        let length = self.next(20);
        let ascii = self.next(2) == 0;
        (0..length)
            .map(|_| self.next(if ascii { 128 } else { 256 }) as u8)
            .collect()
    }

    fn name(&mut self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.next(if depth == 0 { 7 } else { 9 }) {
            0 => Value::Null,
            1 => Value::Bool(self.next(2) == 0),
            2 => Value::Int(i128::from(self.0) << self.next(60)),
            3 => Value::Float(f64::from_bits(self.next(u64::MAX))),
            4 => Value::Decimal {
                unscaled: -i128::from(self.0),
                scale: self.next(256) as u8,
            },
            5 => Value::Bytes(self.bytes()),
            6 => Value::Time(i128::from(self.0 as i64) << self.next(20)),
            7 => Value::Table((0..self.next(4)).map(|_| self.header(depth - 1)).collect()),
            _ => Value::List(
                (0..self.next(4))
                    .map(|_| self.header(depth - 1).typed)
                    .collect(),
            ),
        }
    }

    fn header(&mut self, depth: u64) -> Header {
        let kind = ["longstr", "table", "array", "Number.int"][self.next(4) as usize];
        Header::new(self.name(), kind, self.value(depth))
    }
}

#[test]
fn random_messages_come_back() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2000 {
        let message = Message {
            key: (random.next(2) == 0).then(|| random.bytes()),
            headers: (0..random.next(5)).map(|_| random.header(4)).collect(),
            properties: (0..random.next(4))
                .map(|_| (random.name(), random.value(3)))
                .collect(),
            body: (random.next(4) > 0).then(|| random.bytes()),
        };
        check(&delivery(message));
    }
}

#[test]
fn a_file_made_to_annoy_is_an_error() {
    let levels = "\"t\",\"list\",1,".repeat(100_000);
    let line = format!(
        r#"{{"dlo":1,"destination":"d","position":{{"index":1}},"headers":[{{"name":"h","type":"t","value":{{"flat":["list",1,{levels}"t","value",null]}}}}]}}"#
    );
    let error = parse_line(&line).expect_err("too deep").to_string();
    assert!(error.contains("deeper than 2000 levels"), "{error}");
    for tokens in [
        "",
        "\"list\"",
        "\"list\",-1",
        "\"list\",1",
        "\"table\",1,\"a\"",
        "\"value\"",
        "\"value\",1,2",
        "\"odd\",1",
        "\"value\",{\"int\":\"x\"}",
    ] {
        let line = format!(
            r#"{{"dlo":1,"destination":"d","position":{{"index":1}},"properties":{{"p":{{"flat":[{tokens}]}}}}}}"#
        );
        assert!(parse_line(&line).is_err(), "{tokens}");
    }
}

#[test]
fn a_damaged_line_never_panics_and_never_passes_with_another_body() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let message = Message {
        headers: vec![random.header(3), random.header(3)],
        body: Some("a body".into()),
        ..Message::default()
    };
    let one = delivery(message);
    let good = to_line(&one, "b", "d", None).into_bytes();
    for _ in 0..5000 {
        let mut line = good.clone();
        for _ in 0..=random.next(3) {
            let at = random.next(line.len() as u64) as usize;
            line[at] = random.next(128) as u8;
        }
        let text = String::from_utf8_lossy(&line);
        if text.contains("sha256\":")
            && let Ok(read) = parse_line(&text)
        {
            assert_eq!(read.delivery.message.body, one.message.body, "{text}");
        }
    }
}

/// Run with `cargo test -p dlo-engine --release capture_speed -- --ignored --nocapture`.
#[test]
#[ignore = "prints rates, proves nothing"]
fn capture_speed() {
    let body = "{\"id\":1,\"name\":\"a \\\"b\\\" c\"}".repeat(40);
    let headers =
        (0..6).map(|n| Header::new(format!("header-{n}"), "longstr", Value::text("some value")));
    let one = delivery(Message {
        headers: headers.collect(),
        body: Some(body.into()),
        ..Message::default()
    });
    let start = Instant::now();
    let lines: Vec<String> = (0..50_000)
        .map(|_| to_line(&one, "rabbitmq", "orders.dlq", None))
        .collect();
    let bytes: usize = lines.iter().map(String::len).sum();
    let rate = |start: Instant| bytes as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!(
        "write {:.0} MB/s, {} messages of {} bytes",
        rate(start),
        lines.len(),
        lines[0].len()
    );
    let start = Instant::now();
    assert!(lines.iter().all(|line| parse_line(line).is_ok()));
    println!("read and check {:.0} MB/s", rate(start));
}

#[test]
fn a_table_for_people_is_safe_in_a_spreadsheet() {
    let mut one = delivery(Message {
        key: Some("=1+2".into()),
        headers: vec![Header::new("a", "longstr", Value::text("x,\"y\""))],
        body: Some("line 1\r\nline 2".into()),
        ..Message::default()
    });
    one.time = None;
    let row = csv_row(&one, "-queue", None);
    assert!(
        row.starts_with("\"'-queue\",3,,\"'=1+2\",,,,,,,\"a=x,\"\"y\"\"\",,14,"),
        "{row}"
    );
    assert!(row.ends_with(",\"line 1\r\nline 2\""), "{row}");
    assert_eq!(
        CSV_HEADER.split(',').count() - 1,
        15,
        "the last name holds one comma"
    );
    one.message.key = Some("-5".into());
    assert!(csv_row(&one, "q", None).starts_with("q,3,,-5,"));
}
