//! What we add to what producers wrote: a person's mapping, the order of deaths, what a replay leaves behind, and the speed.

use super::*;

#[test]
fn a_persons_own_mapping_comes_first_and_says_what_is_wrong() {
    let mapping: Mapping = serde_json::from_str(
        r#"{"x-error":"reason.message","x-tries":"attempts","x-part":"origin.partition"}"#,
    )
    .expect("a mapping");
    let mut dead = texts(&[("x-error", "no"), ("x-tries", "3"), ("x-part", "many")]);
    dead.message
        .headers
        .push(x_death(&[("q", "rejected", 1, 5)]));
    let death = read(&dead, &mapping).expect("a death");
    assert_eq!(
        (
            death.dialect.as_ref(),
            death.attempts,
            death.origin.partition
        ),
        ("own mapping", Some(3), None)
    );
    assert_eq!((death.earlier.len(), death.place()), (1, Some("q")));
    let wrong: Mapping = serde_json::from_str(r#"{"a":"reason"}"#).expect("a mapping");
    assert!(wrong.problems()[0].starts_with("a is mapped to reason, which is no field"));
    assert!(mapping.problems().is_empty());
}

#[test]
fn known_times_decide_what_is_newest() {
    let time = |millis: i64| Millis(millis).to_string();
    let with = |fault: i64| {
        let mut dead = texts(&[
            ("MT-Fault-ExceptionType", "A"),
            ("MT-Fault-Message", "m"),
            ("MT-Fault-Timestamp", &time(fault)),
        ]);
        dead.message
            .headers
            .push(x_death(&[("q", "rejected", 1, 1000)]));
        deaths(&dead)
            .into_iter()
            .map(|death| death.dialect.into_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(with(2_000_000), ["MassTransit", "RabbitMQ"]);
    assert_eq!(with(500_000), ["RabbitMQ", "MassTransit"]);
}

#[test]
fn a_replay_leaves_the_marks_behind_and_keeps_the_rest() {
    let mut dead = dumped(SPRING_AMQP, 0);
    dead.message
        .headers
        .push(x_death(&[("q", "rejected", 1, 5)]));
    dead.message
        .headers
        .push(Header::new("CC", "array", Value::List(vec![])));
    dead.message
        .properties
        .insert("user_id".to_owned(), Value::text("guest"));
    dead.message
        .properties
        .insert("message_id".to_owned(), Value::text("m"));
    let death = read(&dead, &Mapping::default());
    let stripped = strip(&dead.message, death.as_ref(), &["CC".to_owned()]);
    let names: Vec<&str> = stripped
        .message
        .headers
        .iter()
        .map(|header| header.name.as_str())
        .collect();
    assert_eq!(names, ["big", "attempt", "when", "tenant", "ratio", "CC"]);
    assert_eq!(
        stripped.message.properties.keys().collect::<Vec<_>>(),
        ["message_id"]
    );
    assert_eq!(stripped.changes.len(), 6);
    assert!(
        stripped
            .changes
            .iter()
            .all(|change| !change.why.is_empty() && change.before.is_some())
    );
    assert_eq!(stripped.message.body, dead.message.body);
}

#[test]
fn common_names_are_stripped_only_when_they_were_marks() {
    let plain = texts(&[
        ("exception-type", "mine"),
        ("traceparent", "00-1"),
        ("__value_schema_id", "x"),
        ("__TypeId__", "t"),
    ]);
    assert_eq!(strip(&plain.message, None, &[]).changes, []);
    let wolverine = texts(&[
        ("exception-type", "A"),
        ("exception-message", "b"),
        ("tenant", "eu"),
    ]);
    let death = read(&wolverine, &Mapping::default());
    let left = strip(&wolverine.message, death.as_ref(), &[])
        .message
        .headers;
    assert_eq!(
        left.iter()
            .map(|header| header.name.as_str())
            .collect::<Vec<_>>(),
        ["tenant"]
    );
    for name in [
        "retry_topic-attempts",
        "x-first-death-queue",
        "kafka_dlt-original-topic",
        "dead-letter-reason",
        "NServiceBus.ExceptionInfo.Message",
    ] {
        assert!(why_header(name, None).is_some(), "{name}");
    }
    for name in [
        "NServiceBus.MessageId",
        "apicurio.value.globalId",
        "ce_id",
        "rbs2-msg-id",
        "ExtendedPayloadSize",
    ] {
        assert_eq!(why_header(name, None), None, "{name}");
    }
}

/// Run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "prints a rate, proves nothing"]
fn reading_speed() {
    let all = [
        dumped(SPRING_AMQP, 0),
        dumped(CELERY, 0),
        spring("sp.orders-dlt"),
        texts(&[("a", "b"); 10]),
    ];
    let start = std::time::Instant::now();
    let found = (0..25_000)
        .flat_map(|_| &all)
        .filter(|delivery| read(delivery, &Mapping::default()).is_some())
        .count();
    println!(
        "100,000 messages in {:?}, {found} dead letters",
        start.elapsed()
    );
}
