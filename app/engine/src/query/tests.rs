//! Queries on messages, and mistakes at their place.

use std::collections::BTreeMap;

use dlo_core::{Delivery, Header, Message, Millis, Position, Value};

use super::*;
use crate::dead_letter::{Confidence, Death, Pointer};

fn delivery() -> Delivery {
    let body = r#"{"id":9007199254740993,"total":12.30,"status":"open","when":"2026-11-30T03:00:00Z","currency":null,"items":[{"sku":"AB-1"},{"sku":"CD-2"}],"a/b":1,"a b":true,"note":"10"}"#;
    Delivery {
        message: Message {
            key: Some("Order-17".into()),
            headers: vec![
                Header::new("tenant", "longstr", Value::text("EU")),
                Header::new("retries", "long", Value::Int(3)),
                Header::new("x y", "longstr", Value::text("spaced")),
                Header::new("tenant", "longstr", Value::text("second")),
                Header::new("nothing", "void", Value::Null),
            ],
            properties: BTreeMap::from([(
                "content_type".to_owned(),
                Value::text("application/json"),
            )]),
            body: Some(body.into()),
        },
        position: Position::Offset {
            partition: 2,
            offset: 1234,
        },
        lock: None,
        time: Millis::parse("2026-11-29T00:00:00Z"),
        delivery_count: Some(4),
        facts: BTreeMap::from([("exchange".to_owned(), Value::text("dlx"))]),
    }
}

fn death() -> Death {
    let mut death = Death::new("Spring Kafka", Confidence::Sure);
    death.reason.class = Some("x.ListenerExecutionFailedException".to_owned());
    death.reason.cause = Some("java.lang.IllegalStateException".to_owned());
    death.reason.message = Some("timeout: db-3".to_owned());
    death.origin.topic = Some("orders".to_owned());
    death.origin.group = Some("billing".to_owned());
    death.attempts = Some(3);
    death.last = Millis::parse("2026-11-30T02:50:00Z");
    death
}

fn matches(query: &str) -> bool {
    let (delivery, death) = (delivery(), death());
    let now = Millis::parse("2026-11-30T05:00:00Z").expect("a time");
    let mut subject = Subject::new(&delivery, Some(&death), now);
    subject.group = Some("IllegalStateException  Orders.price");
    subject.class = Some(Class::Transient);
    let parsed =
        Query::parse(query).unwrap_or_else(|error| panic!("{}", error.pointing_into(query)));
    parsed.matches(&subject)
}

fn yes(queries: &[&str]) {
    for query in queries {
        assert!(matches(query), "should match: {query}");
    }
}

fn no(queries: &[&str]) {
    for query in queries {
        assert!(!matches(query), "should not match: {query}");
    }
}

#[test]
fn words_are_found_anywhere_in_any_case() {
    yes(&[
        "",
        "  ",
        "ORDER-17",
        "timeout db-3",
        "\"timeout: db-3\"",
        "timeout: db-3",
        "spaced",
        "ab-1",
        "illegalstate",
        "'db-3'",
    ]);
    no(&["absent", "timeout absent", "\"timeout db-3\""]);
}

#[test]
fn and_or_not_and_parentheses() {
    yes(&[
        "timeout AND db-3",
        "absent OR timeout",
        "NOT absent",
        "-absent",
        "!absent",
        "absent || (timeout && -absent)",
        "timeout (absent OR db-3)",
        "NOT (absent OR missing)",
        "a OR b OR timeout",
    ]);
    no(&[
        "timeout AND absent",
        "NOT timeout",
        "-timeout",
        "timeout -db-3",
        "NOT (timeout OR absent)",
        "absent OR absent timeout",
    ]);
    // Lower-case words are words.
    no(&["timeout or absent", "not timeout and nothing"]);
}

#[test]
fn text_fields() {
    yes(&[
        "key:order",
        "key = Order-17",
        "key ~ ^Order",
        "reason:timeout",
        "reason:IllegalState",
        "class:illegal",
        "class:transient",
        "class = transient",
        "origin:orders",
        "origin = orders",
        "group:orders.price",
        "consumer:billing",
        "dialect:spring",
        "position = 2:1234",
        "message:db",
        "body:open",
        "key != x",
        "key !~ ^x",
        "exception:Listener",
    ]);
    no(&[
        "key = order-17",
        "key ~ ^order",
        "key:absent",
        "class:bug",
        "origin = order",
        "key != Order-17",
        "key !~ ^Order",
        "reason ~ ^db",
        "stack:x",
    ]);
    yes(&[
        "key ~ \"(?i)^order-\\d+$\"",
        "~ db-[0-9]",
        "reason ~ 'db-[0-9]+$'",
    ]);
}

#[test]
fn headers_properties_and_facts() {
    yes(&[
        "header.tenant",
        "header.tenant:eu",
        "header.tenant = EU",
        "header.tenant = second",
        "header.retries >= 3",
        "header.retries < 10",
        "header.\"x y\" = spaced",
        "header.nothing = null",
        "property.content_type:json",
        "fact.exchange = dlx",
        "NOT header.absent",
        "header.tenant ~ ^E",
    ]);
    no(&[
        "header.absent",
        "header.tenant = eu",
        "header.retries > 3",
        "header.tenant > 3",
        "header.tenant != EU",
        "property.absent",
        "header.tenant = null",
    ]);
}

#[test]
fn pointers_into_the_body() {
    yes(&[
        "/id = 9007199254740993",
        "/id > 9007199254740992",
        "/total = 12.3",
        "/total >= 12.30",
        "/status = open",
        "/status:OP",
        "/status ~ ^o",
        "/currency = null",
        "/currency",
        "/items/*/sku = CD-2",
        "/items/0/sku:ab",
        "/items:cd-2",
        "/*:open",
        "/a~1b = 1",
        "/\"a b\" = true",
        "/note > 9",
        "/note = 10",
        "/when > 2026-11-30T02:00:00Z",
        "NOT /absent",
        "/absent != 1",
        "/status != closed",
        "/status !~ z",
    ]);
    no(&[
        "/id = 9007199254740992",
        "/total = 12.31",
        "/status = OPEN",
        "/absent",
        "/absent = 1",
        "/items/2",
        "/items/*/sku = EF",
        "/status > open",
        "/currency = \"null\"",
        "/\"a b\" = 1",
        "/status != open",
        "/id > x",
    ]);
}

#[test]
fn numbers_and_ranges() {
    yes(&[
        "attempts >= 3",
        "attempts = 3",
        "attempts:3",
        "attempts:2..5",
        "deliveries < 5",
        "partition = 2",
        "offset > 1000",
        "offset:1234..1234",
        "size > 100",
        "size < 1kB",
        "size < 0.5KiB",
        "attempts != 4",
        "attempts>=3",
    ]);
    no(&[
        "attempts > 3",
        "attempts:4..5",
        "size > 1kB",
        "offset != 1234",
        "attempts != 3",
    ]);
}

#[test]
fn times_and_ages() {
    yes(&[
        "time > 2h",
        "time < 3h",
        "age > 2h",
        "time >= 2026-11-30",
        "time >= 2026-11-30T02:50",
        "time:2026-11-30",
        "time:2026-11-30T02:00..2026-11-30T03:00",
        "time > 02:40",
        "time < 02:51",
        "sent:2026-11-29",
        "last > 1h",
        "time <= 2026-11-30T02:50",
    ]);
    no(&[
        "time > 3h",
        "time > 2026-11-30",
        "time < 2h",
        "time > 2026-11-30T02:50",
        "time:2026-11-29",
        "first > 1s",
        "time != 2026-11-30",
    ]);
}

#[test]
fn null_empty_and_pointers() {
    let mut delivery = delivery();
    let now = Millis(0);
    let asked = |delivery: &Delivery, death: Option<&Death>, query: &str| {
        Query::parse(query)
            .expect(query)
            .matches(&Subject::new(delivery, death, now))
    };
    assert!(!asked(&delivery, None, "body = null") && !asked(&delivery, None, "is:dead"));
    delivery.message.body = None;
    for query in [
        "body = null",
        "is:null",
        "is:tombstone",
        "NOT is:empty",
        "body != x",
        "NOT /a",
    ] {
        assert!(asked(&delivery, None, query), "{query}");
    }
    delivery.message.body = Some("".into());
    for query in ["body = \"\"", "is:empty", "body != null"] {
        assert!(asked(&delivery, None, query), "{query}");
    }
    let mut death = death();
    death.pointer = Some(Pointer::Record {
        topic: "t".to_owned(),
        partition: 0,
        offset: 0,
    });
    assert!(asked(&delivery, Some(&death), "is:pointer is:dead"));
}

#[test]
fn a_decoded_body_is_searched_too() {
    let mut delivery = delivery();
    delivery.message.body = Some(vec![0, 1, 2].into());
    let json = serde_json::json!({"name": "Zoë", "n": 5});
    let mut subject = Subject::new(&delivery, None, Millis(0));
    subject.json = Some(&json);
    for query in ["zoë", "/name = Zoë", "/n = 5"] {
        assert!(
            Query::parse(query).expect(query).matches(&subject),
            "{query}"
        );
    }
    assert!(Query::parse("/n = 5").expect("a query").needs_json());
    assert!(!Query::parse("zoë").expect("a query").needs_json());
}

fn mistake(query: &str, column: usize, said: &str) {
    let error = Query::parse(query).expect_err(query);
    assert_eq!(error.column, column, "{query}: {error}");
    assert!(error.problem.contains(said), "{query}: {error}");
}

#[test]
fn mistakes_are_pointed_at_and_say_what_is_expected() {
    mistake(
        "attempts >=",
        12,
        "a number such as 3 is expected after attempts",
    );
    mistake("attempts >= many", 13, "\"many\" is no number");
    mistake(
        "time > soon",
        8,
        "a time such as 2026-11-30T02:40 or an age such as 2h",
    );
    mistake("time = 2h", 8, "an age is compared with");
    mistake("atempts >= 3", 1, "atempts is no field; use /atempts");
    mistake("x status = open", 3, "status is no field");
    mistake("(a OR b", 1, "this ( has no )");
    mistake("a OR b)", 7, "no ( for this )");
    mistake("a OR", 5, "something to look for is expected");
    mistake("OR a", 1, "before this word");
    mistake("()", 2, "before this )");
    mistake("é \"abc", 3, "this quote has no end");
    mistake("key ~ \"(\"", 7, "is no regular expression");
    mistake("key:", 5, "a text is expected after :");
    mistake("key > 3", 6, "this field holds text");
    mistake("attempts ~ 3", 11, "attempts is a number");
    mistake("attempts > 1..2", 12, "a range");
    mistake("is:odd", 4, "pointer, null, empty or dead is expected");
    mistake("header. = 3", 8, "a name is expected after header.");
    mistake("/a >", 5, "a value");
    mistake(&"(".repeat(100), 65, "nested deeper");
    mistake(&"NOT ".repeat(100), 260, "nested deeper");
    mistake(&"x".repeat(100_000), 1, "longer than");
    let error = Query::parse("key > 3").expect_err("a mistake");
    assert!(
        error
            .pointing_into("key > 3")
            .starts_with("key > 3\n     ^\nthis field"),
        "{}",
        error.pointing_into("key > 3")
    );
}

#[test]
fn every_line_of_the_help_is_a_query() {
    for line in help().lines() {
        let query = line.split("  ").next().unwrap_or_default();
        assert!(
            Query::parse(query).is_ok(),
            "{line}: {:?}",
            Query::parse(query)
        );
    }
}

#[test]
fn every_field_of_the_list_is_known() {
    for (name, _) in FIELDS {
        let dotted = ["header", "property", "fact"].contains(&name);
        assert!(dotted || field::Field::named(name).is_some(), "{name}");
    }
}

#[test]
fn nothing_typed_makes_it_panic() {
    let parts = [
        "(", ")", "\"", "'", "\\", "~", "/", "-", "!", "=", ">", "<", ":", "é", "key", "time",
        "attempts", "header.", "is", "NOT", "OR", "..", "~1", "1", " ", "2h",
    ];
    let mut state = 7u64;
    for _ in 0..1_000 {
        let mut query = String::new();
        for _ in 0..8 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            query.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        if let Err(error) = Query::parse(&query) {
            assert!(
                error.column <= query.chars().count() + 1,
                "{query}: {error}"
            );
        }
    }
}

/// Run with `--ignored --nocapture`.
#[test]
#[ignore = "prints rates, proves nothing"]
fn query_speed() {
    let (delivery, death) = (delivery(), death());
    let subject = Subject::new(&delivery, Some(&death), Millis(0));
    for query in [
        "absent",
        "attempts > 5",
        "/total = 3",
        "class:bug OR key:absent",
    ] {
        let parsed = Query::parse(query).expect(query);
        let start = std::time::Instant::now();
        let found = (0..100_000).filter(|_| parsed.matches(&subject)).count();
        println!(
            "{query}: 100,000 messages in {:?}, {found} match",
            start.elapsed()
        );
    }
}
