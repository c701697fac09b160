//! The readers on what real producers wrote (`assets/deaths`), and on messages made after their source code.

mod ours;

use std::collections::BTreeMap;

use dlo_core::{Delivery, Header, Message, Millis, Position, Typed, Value};
use serde_json::Value as Json;

use super::{
    strip::{strip, why_header},
    wrapped::{OnReplay, unwrap},
    *,
};
use crate::group::fingerprint;

const CELERY: &str = include_str!("../../../../assets/deaths/rabbitmq/celery.json");
const DRAMATIQ: &str = include_str!("../../../../assets/deaths/rabbitmq/dramatiq.json");
const SPRING_AMQP: &str = include_str!("../../../../assets/deaths/rabbitmq/spring.json");
const WATERMILL: &str = include_str!("../../../../assets/deaths/rabbitmq/watermill.json");
const SPRING_KAFKA: &str = include_str!("../../../../assets/deaths/kafka/spring.dump");

fn delivery(headers: Vec<Header>, body: Option<&str>) -> Delivery {
    Delivery {
        message: Message {
            headers,
            body: body.map(|body| body.to_owned().into()),
            ..Message::default()
        },
        position: Position::Index { index: 0 },
        lock: None,
        time: Some(Millis(1_796_000_000_000)),
        delivery_count: None,
        facts: BTreeMap::new(),
    }
}

fn texts(headers: &[(&str, &str)]) -> Delivery {
    let headers = headers
        .iter()
        .map(|(name, text)| Header::new(*name, "longstr", Value::text(*text)));
    delivery(headers.collect(), Some("{}"))
}

fn deaths(delivery: &Delivery) -> Vec<Death> {
    read(delivery, &Mapping::default())
        .map(Death::split)
        .unwrap_or_default()
}

fn only(delivery: &Delivery) -> Death {
    let mut deaths = deaths(delivery);
    assert_eq!(deaths.len(), 1, "{deaths:#?}");
    deaths.remove(0)
}

fn amqp(value: &Json) -> Typed {
    let (kind, value) = (value[0].as_str().expect("a type"), &value[1]);
    match kind {
        "S" => Typed::new("longstr", Value::text(value.as_str().expect("text"))),
        "V" => Typed::new("void", Value::Null),
        "t" => Typed::new("bool", Value::Bool(value.as_bool().expect("bool"))),
        "T" => Typed::new(
            "timestamp",
            Value::Time(i128::from(value.as_i64().expect("time")) * 1000),
        ),
        "d" => Typed::new("double", Value::Float(value.as_f64().expect("float"))),
        "A" => Typed::new(
            "array",
            Value::List(value.as_array().expect("list").iter().map(amqp).collect()),
        ),
        "F" => Typed::new("table", Value::Table(amqp_table(value))),
        _ => Typed::new("long", Value::Int(value.as_i64().expect("int").into())),
    }
}

fn amqp_table(table: &Json) -> Vec<Header> {
    let entries = table.as_object().into_iter().flatten();
    entries
        .map(|(name, value)| Header {
            name: name.clone(),
            typed: amqp(value),
        })
        .collect()
}

fn dumped(dump: &str, index: usize) -> Delivery {
    let json: Json = serde_json::from_str(dump).expect("a dump");
    delivery(
        amqp_table(&json[index]["headers"]),
        json[index]["body"].as_str(),
    )
}

/// The first record of that topic in the dump. Cut values are those with `…` whose text is longer than what is quoted.
fn spring(topic: &str) -> Delivery {
    let mut lines = SPRING_KAFKA
        .lines()
        .skip_while(|line| !line.starts_with(&format!("### {topic} ")));
    lines.next();
    let lines = lines.take_while(|line| !line.starts_with("###"));
    let headers = lines
        .filter_map(|line| line.strip_prefix("  H "))
        .map(|line| {
            let (name, rest) = line.split_once(" = (").expect("a header");
            let rest = rest.split_once(") ").expect("a value").1;
            let value = match rest.split_once("  \"") {
                Some((_, quoted)) => Value::text(
                    quoted
                        .trim_end_matches('"')
                        .replace("\\n", "\n")
                        .replace("\\t", "\t"),
                ),
                None => Value::Bytes(
                    (0..rest.len())
                        .step_by(2)
                        .map(|at| u8::from_str_radix(&rest[at..at + 2], 16).expect("hex"))
                        .collect(),
                ),
            };
            Header::new(name, "bytes", value)
        });
    delivery(headers.collect(), Some("bad-1"))
}

#[test]
fn rabbitmq_and_celery() {
    let death = only(&dumped(CELERY, 0));
    assert_eq!(
        (death.dialect.as_ref(), death.confidence),
        ("RabbitMQ", Confidence::Sure)
    );
    assert_eq!(death.reason.class.as_deref(), Some("rejected"));
    assert_eq!(death.origin.queue.as_deref(), Some("celery"));
    assert_eq!(death.origin.exchange.as_deref(), Some(""));
    assert_eq!(death.origin.routing_keys, ["celery"]);
    assert_eq!(death.origin.handler.as_deref(), Some("shop.charge"));
    assert_eq!(death.attempts, Some(1));
    assert_eq!(
        death.scope.as_deref(),
        Some("deaths from this queue for this reason")
    );
    assert_eq!(
        (death.first, death.last),
        (Some(Millis(1_796_065_906_000)), death.first)
    );
    assert_eq!(
        death.from.get("reason.class").map(String::as_str),
        Some("x-death[0].reason")
    );
    assert_eq!(
        death.from.get("origin.handler").map(String::as_str),
        Some("task")
    );
    let retried = only(&dumped(CELERY, 2));
    assert!(
        retried
            .notes
            .iter()
            .any(|note| note.contains("again 1 times")),
        "{:?}",
        retried.notes
    );
}

#[test]
fn celery_without_a_death_is_no_dead_letter() {
    let mut alive = dumped(CELERY, 0);
    alive
        .message
        .headers
        .retain(|header| !header.name.starts_with("x-"));
    assert_eq!(deaths(&alive), []);
}

fn x_death(entries: &[(&str, &str, i64, i64)]) -> Header {
    let entries = entries.iter().map(|(queue, reason, count, seconds)| {
        let table = vec![
            Header::new("count", "long", Value::Int((*count).into())),
            Header::new("reason", "longstr", Value::text(*reason)),
            Header::new("queue", "longstr", Value::text(*queue)),
            Header::new(
                "time",
                "timestamp",
                Value::Time(i128::from(*seconds) * 1000),
            ),
            Header::new("exchange", "longstr", Value::text("orders")),
            Header::new(
                "routing-keys",
                "array",
                Value::List(vec![
                    Typed::new("longstr", Value::text("a")),
                    Typed::new("longstr", Value::text("b")),
                ]),
            ),
        ];
        Typed::new("table", Value::Table(table))
    });
    Header::new("x-death", "array", Value::List(entries.collect()))
}

#[test]
fn each_entry_of_x_death_is_a_death_in_the_brokers_order() {
    let headers = vec![x_death(&[
        ("work", "rejected", 3, 100),
        ("delay", "expired", 2, 200),
    ])];
    let deaths = deaths(&delivery(headers, None));
    let seen: Vec<_> = deaths
        .iter()
        .map(|death| (death.origin.queue.as_deref(), death.attempts, death.last))
        .collect();
    assert_eq!(
        seen,
        [
            (Some("work"), Some(3), None),
            (Some("delay"), Some(2), None)
        ]
    );
    assert_eq!(deaths[0].origin.routing_keys, ["a", "b"]);
}

#[test]
fn the_first_death_is_known_when_x_death_is_not() {
    let death = only(&texts(&[
        ("x-first-death-queue", "q"),
        ("x-first-death-reason", "maxlen"),
        ("x-first-death-exchange", ""),
    ]));
    assert_eq!(
        (death.reason.class.as_deref(), death.confidence),
        (Some("maxlen"), Confidence::Likely)
    );
    // x-death that is no list of tables tells nothing, and is no reason to fail.
    assert_eq!(deaths(&texts(&[("x-death", "nonsense")])), []);
    let lists = Value::List(vec![Typed::new("longstr", Value::text("x"))]);
    assert_eq!(
        deaths(&delivery(
            vec![Header::new("x-death", "array", lists)],
            None
        )),
        []
    );
}

#[test]
fn dramatiq_tells_its_exception_in_the_body() {
    let both = deaths(&dumped(DRAMATIQ, 1));
    assert_eq!(
        both.iter()
            .map(|death| death.dialect.as_ref())
            .collect::<Vec<_>>(),
        ["RabbitMQ", "Dramatiq"]
    );
    let dramatiq = &both[1];
    assert_eq!(dramatiq.reason.class.as_deref(), Some("RuntimeError"));
    assert_eq!(
        dramatiq.reason.message.as_deref(),
        Some("smtp refused a@example.org")
    );
    assert_eq!(dramatiq.origin.handler.as_deref(), Some("send"));
    assert_eq!(
        (dramatiq.attempts, dramatiq.last),
        (Some(1), Some(Millis(1_796_066_016_620)))
    );
    let joined = Death::join(both).expect("two");
    assert_eq!(
        (joined.class(), joined.place()),
        (Some("RuntimeError"), Some("mail"))
    );
    assert_eq!(fingerprint(Some(&joined)).label, "RuntimeError  tasks.send");
    let waiting = only(&dumped(DRAMATIQ, 0));
    assert_eq!(waiting.origin.queue.as_deref(), Some("mail"));
    assert!(
        waiting
            .notes
            .iter()
            .any(|note| note.contains("not dead yet"))
    );
}

#[test]
fn spring_amqp_names_exchange_and_key_but_no_queue() {
    let death = only(&dumped(SPRING_AMQP, 0));
    assert_eq!(death.dialect, "Spring AMQP");
    assert_eq!(
        death.reason.message.as_deref(),
        Some("stock service says no for {\"id\":\"o-1\",\"qty\":2}")
    );
    assert_eq!(
        death.reason.class.as_deref(),
        Some("org.springframework.amqp.rabbit.support.ListenerExecutionFailedException")
    );
    assert_eq!(
        (death.origin.exchange.as_deref(), death.origin.queue),
        (Some("sp.ex"), None)
    );
    assert_eq!(death.origin.routing_keys, ["orders.created"]);
}

#[test]
fn watermill_over_amqp_came_from_a_queue() {
    let death = only(&dumped(WATERMILL, 0));
    assert_eq!(
        death.reason.message.as_deref(),
        Some("stock service says no")
    );
    assert_eq!(
        (death.origin.queue.as_deref(), death.origin.topic),
        (Some("wm.orders"), None)
    );
    assert_eq!(death.origin.handler.as_deref(), Some("charge_handler"));
    assert_eq!(
        death.from.get("origin.queue").map(String::as_str),
        Some("topic_poisoned")
    );
}

#[test]
fn spring_kafka_reads_binary_numbers_and_the_real_cause() {
    let death = only(&spring("sp.orders-dlt"));
    assert_eq!(death.dialect, "Spring Kafka");
    assert_eq!(
        death.reason.cause.as_deref(),
        Some("java.lang.IllegalStateException")
    );
    assert_eq!(death.origin.topic.as_deref(), Some("sp.orders"));
    assert_eq!(
        (death.origin.partition, death.origin.offset),
        (Some(1), Some(1))
    );
    assert_eq!(death.origin.group.as_deref(), Some("g-orders"));
    assert_eq!(death.sent, Some(Millis(1_700_000_000_000)));
    assert_eq!(death.class(), Some("java.lang.IllegalStateException"));
    let ints = only(&spring("sp.ints-dlt"));
    assert_eq!(
        (ints.origin.partition, ints.origin.offset),
        (Some(0), Some(0))
    );
}

#[test]
fn of_spring_retry_headers_the_last_counts() {
    let death = only(&spring("sp.pay-dlt"));
    assert_eq!(death.dialect, "Spring Kafka retry topic");
    assert_eq!(
        (death.attempts, death.sent),
        (Some(4), Some(Millis(1_700_000_000_000)))
    );
    assert_eq!(death.origin.group.as_deref(), Some("g-pay"));
    assert_eq!(
        death.reason.cause.as_deref(),
        Some("java.lang.IllegalArgumentException")
    );
    assert_eq!(only(&spring("sp.pay-retry-300")).attempts, Some(2));
}

#[test]
fn appended_headers_are_several_deaths_newest_first() {
    let offset = |offset: u8| Value::Bytes(vec![0, 0, 0, 0, 0, 0, 0, offset].into());
    let headers = vec![
        Header::new("kafka_dlt-original-topic", "bytes", Value::text("orders")),
        Header::new("kafka_dlt-original-offset", "bytes", offset(1)),
        Header::new(
            "kafka_dlt-original-topic",
            "bytes",
            Value::text("orders-dlt"),
        ),
        Header::new("kafka_dlt-original-offset", "bytes", offset(2)),
        Header::new("kafka_dlt-exception-fqcn", "bytes", Value::text("a.B")),
    ];
    let spring = deaths(&delivery(headers, None));
    let seen: Vec<_> = spring
        .iter()
        .map(|death| {
            (
                death.origin.topic.as_deref(),
                death.origin.offset,
                death.reason.class.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (Some("orders-dlt"), Some(2), Some("a.B")),
            (Some("orders"), Some(1), None)
        ]
    );
    let smallrye = deaths(&texts(&[
        ("dead-letter-topic", "dlq-1"),
        ("dead-letter-reason", "late"),
        ("dead-letter-partition", "3"),
        ("dead-letter-topic", "orders"),
        ("dead-letter-reason", "early"),
        ("dead-letter-partition", "1"),
    ]));
    let seen: Vec<_> = smallrye
        .iter()
        .map(|death| (death.origin.topic.as_deref(), death.origin.partition))
        .collect();
    assert_eq!(seen, [(Some("dlq-1"), Some(3)), (Some("orders"), Some(1))]);
}

#[test]
fn kafka_itself_writes_text() {
    let connect = only(&texts(&[
        ("__connect.errors.topic", "c.in"),
        ("__connect.errors.partition", "0"),
        ("__connect.errors.offset", "12"),
        ("__connect.errors.connector.name", "sink"),
        ("__connect.errors.task.id", "0"),
        ("__connect.errors.stage", "VALUE_CONVERTER"),
        (
            "__connect.errors.class.name",
            "org.apache.kafka.connect.json.JsonConverter",
        ),
        (
            "__connect.errors.exception.class.name",
            "org.apache.kafka.connect.errors.DataException",
        ),
        (
            "__connect.errors.exception.message",
            "Converting byte[] failed",
        ),
    ]));
    assert_eq!(
        (connect.origin.topic.as_deref(), connect.origin.offset),
        (Some("c.in"), Some(12))
    );
    assert_eq!(
        connect.notes,
        ["Task 0 failed at stage VALUE_CONVERTER, in org.apache.kafka.connect.json.JsonConverter."]
    );
    let streams = only(&texts(&[
        ("__streams.errors.exception", "a.SerializationException"),
        ("__streams.errors.topic", "t"),
        ("__streams.errors.partition", "2"),
        ("__streams.errors.offset", "3"),
    ]));
    assert_eq!(
        (streams.reason.class.as_deref(), streams.origin.partition),
        (Some("a.SerializationException"), Some(2))
    );
}

#[test]
fn a_share_group_without_copy_is_a_pointer() {
    let mut dead = texts(&[
        ("__dlq.errors.topic", "orders"),
        ("__dlq.errors.partition", "1"),
        ("__dlq.errors.offset", "42"),
        ("__dlq.errors.group", "g"),
        ("__dlq.errors.delivery.count", "5"),
        ("__dlq.errors.message", "Offset rejected by client."),
    ]);
    let copied = only(&dead);
    assert_eq!((copied.pointer, copied.attempts), (None, Some(5)));
    dead.message.body = None;
    let pointer = only(&dead).pointer;
    assert_eq!(
        pointer,
        Some(Pointer::Record {
            topic: "orders".to_owned(),
            partition: 1,
            offset: 42
        })
    );
    assert_eq!(
        pointer.map(|pointer| pointer.describe()).as_deref(),
        Some("The record is at offset 42 of partition 1 of orders.")
    );
    dead.message.key = Some("k".into());
    assert_eq!(only(&dead).pointer, None, "a tombstone that was copied");
}

#[test]
fn the_dot_net_buses() {
    let stack = "System.InvalidOperationException: no price\n   at Shop.Pricing.Find(Order order) in /src/Pricing.cs:line 12";
    let mass = only(&texts(&[
        ("MT-Reason", "fault"),
        ("MT-Fault-ExceptionType", "System.InvalidOperationException"),
        ("MT-Fault-Message", "no price"),
        ("MT-Fault-StackTrace", stack),
        ("MT-Fault-Timestamp", "2026-11-30T03:10:00.1234567Z"),
        ("MT-Fault-InputAddress", "rabbitmq://host/vhost/orders"),
        ("MT-Fault-RetryCount", "3"),
    ]));
    assert_eq!(
        (mass.origin.queue.as_deref(), mass.attempts),
        (Some("orders"), Some(3))
    );
    assert_eq!(mass.last, Millis::parse("2026-11-30T03:10:00.123Z"));
    let bus = only(&texts(&[
        ("NServiceBus.FailedQ", "orders@host"),
        ("NServiceBus.TimeOfFailure", "2026-11-30 03:10:00:123456 Z"),
        (
            "NServiceBus.ExceptionInfo.ExceptionType",
            "System.Exception",
        ),
        ("NServiceBus.ExceptionInfo.Message", "m"),
        ("S3BodyKey", "bodies/1"),
    ]));
    assert_eq!(
        (bus.origin.queue.as_deref(), bus.last),
        (Some("orders"), Millis::parse("2026-11-30T03:10:00.123Z"))
    );
    assert!(matches!(bus.pointer, Some(Pointer::S3 { ref key, .. }) if key == "bodies/1"));
    let rebus = only(&texts(&[
        ("rbs2-source-queue", "orders"),
        (
            "rbs2-error-details",
            "5 unhandled exceptions\n11/30/2026 03:10:00: System.TimeoutException: late\n   at Shop.X.Y()",
        ),
    ]));
    assert_eq!(
        (
            rebus.reason.class.as_deref(),
            rebus.reason.message.as_deref()
        ),
        (Some("System.TimeoutException"), Some("late"))
    );
    let wolverine = only(&texts(&[
        ("exception-type", "A"),
        ("exception-message", "b"),
        ("failed-at", "1796065906123"),
        ("original-destination", "kafka://topic/orders"),
        ("original-partition", "1"),
        ("original-offset", "7"),
    ]));
    assert_eq!(
        (
            wolverine.origin.topic.as_deref(),
            wolverine.origin.offset,
            wolverine.confidence
        ),
        (Some("orders"), Some(7), Confidence::Likely)
    );
    assert_eq!(
        deaths(&texts(&[("exception-type", "A")])),
        [],
        "one common name proves nothing"
    );
    let brighter = only(&texts(&[
        ("rejectionReason", "DeliveryError"),
        ("rejectionMessage", "m"),
        ("originalTopic", "t"),
    ]));
    assert_eq!(brighter.origin.topic.as_deref(), Some("t"));
}

const EASYNETQ: &str = r#"{"RoutingKey":"orders.new","Exchange":"orders","Queue":"orders.work","Exception":"System.Exception: no\n   at Shop.A.B()","Message":"{\"id\":1}","DateTime":"2026-11-30T03:10:00Z","BasicProperties":{"ContentType":"application/json","ContentTypePresent":true,"DeliveryMode":2,"Headers":{"tenant":"eu","n":3},"Type":"Order"}}"#;

#[test]
fn easynetq_is_read_and_unwrapped() {
    let wrapped = delivery(vec![], Some(EASYNETQ));
    let death = only(&wrapped);
    assert_eq!(
        (
            death.origin.queue.as_deref(),
            death.reason.message.as_deref()
        ),
        (Some("orders.work"), Some("no"))
    );
    let inner = unwrap(&wrapped).expect("a wrapper");
    assert_eq!(
        (inner.wrapper, inner.on_replay),
        ("EasyNetQ", OnReplay::Unwrap)
    );
    assert_eq!(inner.message.body.as_deref(), Some(&b"{\"id\":1}"[..]));
    assert_eq!(
        inner.message.properties.get("type"),
        Some(&Value::text("Order"))
    );
    assert_eq!(
        inner.message.properties.get("delivery_mode"),
        Some(&Value::Int(2))
    );
    assert_eq!(inner.message.header("tenant"), Some(&Value::text("eu")));
}

fn with_facts(facts: &[(&str, &str)]) -> Delivery {
    let mut delivery = delivery(vec![], Some("{}"));
    delivery.facts = facts
        .iter()
        .map(|(name, text)| ((*name).to_owned(), Value::text(*text)))
        .collect();
    delivery
}

#[test]
fn sqs_tells_the_queue_and_the_count_but_no_reason() {
    let facts = [
        (
            "DeadLetterQueueSourceArn",
            "arn:aws:sqs:eu-west-1:000000000000:orders",
        ),
        ("ApproximateReceiveCount", "4"),
        ("SentTimestamp", "1796065906123"),
    ];
    let death = only(&with_facts(&facts));
    assert_eq!(
        (death.origin.queue.as_deref(), death.attempts),
        (Some("orders"), Some(4))
    );
    assert_eq!(death.sent, Some(Millis(1_796_065_906_123)));
    assert_eq!(
        deaths(&with_facts(&facts[1..])),
        [],
        "a live queue counts receives too"
    );
}

#[test]
fn an_s3_pointer_is_followed_by_name() {
    let body = r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]"#;
    let mut dead = with_facts(&[(
        "DeadLetterQueueSourceArn",
        "arn:aws:sqs:eu-west-1:000000000000:orders",
    )]);
    dead.message.body = Some(body.into());
    dead.message.headers.push(Header::new(
        "ExtendedPayloadSize",
        "Number",
        Value::text("300000"),
    ));
    let expected = Pointer::S3 {
        bucket: Some("b".to_owned()),
        key: "k".to_owned(),
        size: Some(300_000),
    };
    assert_eq!(only(&dead).pointer, Some(expected.clone()));
    assert_eq!(
        expected.describe(),
        "The body (300000 bytes) is in s3://b/k."
    );
    dead.message.body = Some(r#"["other",{"s3Key":"k"}]"#.into());
    assert_eq!(only(&dead).pointer, None);
}

#[test]
fn lambda_eventbridge_and_streams() {
    let body = r#"{"version":"1.0","timestamp":"2026-11-30T03:10:00.123Z","requestContext":{"requestId":"r","functionArn":"arn:aws:lambda:eu-west-1:0:function:charge:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":3},"requestPayload":{"id":12345678901234567890, "a":1,"a":2},"responseContext":{"statusCode":200,"functionError":"Unhandled"},"responsePayload":{"errorType":"KeyError","errorMessage":"'price'","stackTrace":["  File \"/var/task/app.py\", line 5, in handler\n    x\n"]}}"#;
    let dead = delivery(vec![], Some(body));
    let death = only(&dead);
    assert_eq!(
        (death.reason.class.as_deref(), death.attempts),
        (Some("KeyError"), Some(3))
    );
    assert_eq!(fingerprint(Some(&death)).label, "KeyError  app.handler");
    let inner = unwrap(&dead).expect("a wrapper");
    assert_eq!(
        inner.message.body.as_deref(),
        Some(&br#"{"id":12345678901234567890, "a":1,"a":2}"#[..]),
        "byte for byte"
    );

    let kinesis = r#"{"requestContext":{"functionArn":"f","condition":"RetryAttemptsExhausted","approximateInvokeCount":1},"responseContext":{},"KinesisBatchInfo":{"shardId":"shardId-0","startSequenceNumber":"1","endSequenceNumber":"5","batchSize":5,"streamArn":"arn:aws:kinesis:eu-west-1:0:stream/clicks"}}"#;
    let death = only(&delivery(vec![], Some(kinesis)));
    assert_eq!(death.origin.topic.as_deref(), Some("clicks"));
    let pointer = death.pointer.expect("a pointer");
    assert_eq!(
        pointer.describe(),
        "5 records of the kinesis stream arn:aws:kinesis:eu-west-1:0:stream/clicks of shardId-0 from 1 to 5."
    );

    let rule = only(&texts(&[
        ("RULE_ARN", "arn:aws:events:::rule/r"),
        ("TARGET_ARN", "t"),
        ("ERROR_CODE", "NO_PERMISSIONS"),
        ("ERROR_MESSAGE", "m"),
        ("RETRY_ATTEMPTS", "0"),
    ]));
    assert_eq!(
        (rule.dialect.as_ref(), rule.attempts),
        ("EventBridge", Some(0))
    );
    let queue = only(&texts(&[
        ("RequestID", "r"),
        ("ErrorCode", "200"),
        ("ErrorMessage", "m"),
    ]));
    assert_eq!(queue.dialect, "AWS Lambda");
    assert_eq!(deaths(&texts(&[("RequestID", "r")])), []);
}

#[test]
fn lambdas_kafka_batch_of_one_is_unwrapped() {
    let body = r#"{"requestContext":{"functionArn":"f"},"responseContext":{},"KafkaBatchInfo":{"batchSize":1},"payload":{"records":{"orders-0":[{"topic":"orders","partition":0,"offset":7,"headers":[{"h":[104,-1]}],"key":"azE=","value":"AP8="}]}}}"#;
    let dead = delivery(vec![], Some(body));
    assert_eq!(only(&dead).origin.topic.as_deref(), Some("orders"));
    let inner = unwrap(&dead).expect("a wrapper").message;
    assert_eq!(
        (inner.key.as_deref(), inner.body.as_deref()),
        (Some(&b"k1"[..]), Some(&[0, 255][..]))
    );
    assert_eq!(
        inner.header("h"),
        Some(&Value::Bytes(vec![104, 255].into()))
    );
}

#[test]
fn sns_and_celery_on_sqs_are_unwrapped_for_reading() {
    let body = r#"{"Type":"Notification","MessageId":"m","TopicArn":"arn:aws:sns:eu-west-1:0:t","Message":"{\"id\":1}","MessageAttributes":{"tenant":{"Type":"String","Value":"eu"},"b":{"Type":"Binary","Value":"AP8="}}}"#;
    let inner = unwrap(&delivery(vec![], Some(body))).expect("an envelope");
    assert_eq!(inner.on_replay, OnReplay::Ask);
    assert_eq!(inner.message.body.as_deref(), Some(&b"{\"id\":1}"[..]));
    assert_eq!(
        inner.message.header("b"),
        Some(&Value::Bytes(vec![0, 255].into()))
    );
    // Base64 of Kombu's JSON, whose body is base64 of `[[1],{},{}]`.
    let kombu = "eyJib2R5IjogIlcxc3hYU3g3ZlN4N2ZWMD0iLCAiY29udGVudC1lbmNvZGluZyI6ICJ1dGYtOCIsICJjb250ZW50LXR5cGUiOiAiYXBwbGljYXRpb24vanNvbiIsICJoZWFkZXJzIjogeyJ0YXNrIjogInNob3AuY2hhcmdlIn0sICJwcm9wZXJ0aWVzIjogeyJib2R5X2VuY29kaW5nIjogImJhc2U2NCJ9fQ==";
    let inner = unwrap(&delivery(vec![], Some(kombu))).expect("Kombu");
    assert_eq!(inner.on_replay, OnReplay::Keep);
    assert_eq!(inner.message.body.as_deref(), Some(&b"[[1],{},{}]"[..]));
    assert_eq!(
        inner.message.header("task"),
        Some(&Value::text("shop.charge"))
    );
    assert_eq!(unwrap(&delivery(vec![], Some("{\"Type\":\"x\"}"))), None);
}

#[test]
fn further_brokers_and_frameworks() {
    let dialect = |headers: &[(&str, &str)]| only(&texts(headers)).dialect.into_owned();
    assert_eq!(
        dialect(&[
            ("REAL_TOPIC", "persistent://a/b/c"),
            ("RECONSUMETIMES", "3")
        ]),
        "Pulsar"
    );
    assert_eq!(
        dialect(&[("CloudPubSubDeadLetterSourceSubscription", "s")]),
        "Google Pub/Sub"
    );
    assert_eq!(
        dialect(&[("dlqDeliveryFailureCause", "Delivery[7] exceeds")]),
        "ActiveMQ"
    );
    assert_eq!(dialect(&[("_AMQ_ORIG_QUEUE", "q")]), "ActiveMQ Artemis");
    assert_eq!(
        dialect(&[("DeadLetterReason", "TTLExpiredException")]),
        "Azure Service Bus"
    );
    assert_eq!(
        dialect(&[("source_topic", "t"), ("source_offset", "1")]),
        "Karafka"
    );
    assert_eq!(
        dialect(&[("delayed-retry-topic", "t"), ("delayed-retry-count", "2")]),
        "SmallRye delayed retry"
    );
    assert_eq!(dialect(&[("dead_letter_reason", "r")]), "SmallRye JMS");
    assert_eq!(
        dialect(&[("x-original-topic", "t"), ("x-exception-message", "m")]),
        "Spring Cloud Stream"
    );
    let symfony = only(&texts(&[
        (
            r"X-Message-Stamp-Symfony\Component\Messenger\Stamp\ErrorDetailsStamp",
            r#"[{"exceptionClass":"RuntimeException","exceptionMessage":"no"}]"#,
        ),
        (
            r"X-Message-Stamp-Symfony\Component\Messenger\Stamp\RedeliveryStamp",
            r#"[{"retryCount":1},{"retryCount":2}]"#,
        ),
    ]));
    assert_eq!(
        (symfony.reason.message.as_deref(), symfony.attempts),
        (Some("no"), Some(2))
    );
}
