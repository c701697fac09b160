//! The shop's events, shaped like Kafka's topics: the events themselves, the dead-letter topic that Spring Kafka writes, and
//! that of a Connect sink.

use bytes::Bytes;
use dlo_core::{Header, Message, Millis, Partitioning, Position, Value};

use crate::{Broker, LogSettings, log::Fate, state::State};

use super::{encode, hours, minutes, random::Random};

pub(super) const EVENTS: &str = "orders.events";
const DEAD_EVENTS: &str = "orders.events-dlt";
const SINK_DEAD: &str = "dlq.orders-sink";

/// The id under which a registry would hold `assets/demo/order-placed-v7.avsc`.
const SCHEMA_V7: u32 = 12;

pub(super) fn declare(broker: &Broker) {
    broker.declare_log(EVENTS, LogSettings::topic(3));
    let dead = LogSettings::topic(3).with_dead_letters_of(EVENTS);
    broker.declare_log(DEAD_EVENTS, dead);
    let sink = LogSettings::topic(1).with_dead_letters_of(EVENTS);
    broker.declare_log(SINK_DEAD, sink);
    broker.declare_log("orders.latest", LogSettings::topic(2).compacted());
}

pub(super) fn fill(state: &mut State, random: &mut Random) {
    let now = state.now();
    fill_events(state, now, random);
    fill_spring(state, now, random);
    fill_connect(state, now, random);
    fill_latest(state, now, random);
}

/// Six hundred events of the last ten hours, and two groups that read them.
fn fill_events(state: &mut State, now: Millis, random: &mut Random) {
    for number in 0..600 {
        let time = now.plus(-minutes(600 - number));
        let event = order_placed(random.below(400), time, random);
        append(state, EVENTS, event, time, Partitioning::ByKey);
    }
    let Ok(log) = state.log(EVENTS) else { return };
    let ends: Vec<_> = log.numbered().map(|(id, log)| (id, log.next)).collect();
    for (group, behind) in [("billing", 40), ("shipping", 0)] {
        let group = log.groups.entry(group.to_owned()).or_default();
        group.members = 2;
        for (partition, end) in &ends {
            group.committed.insert(*partition, (end - behind).max(0));
        }
    }
}

/// An event in Confluent-framed Avro, keyed by its order.
pub(super) fn order_placed(order: u64, at: Millis, random: &mut Random) -> Message {
    let country = random.one_of(&["DE", "FR", "SE", "CH"]).unwrap_or("DE");
    let payload = encode::Avro::default()
        .string(&format!("o-{}", 410_000 + order))
        .string(&format!("c-{}", 1_000 + random.below(600)))
        .decimal(random.between(100, 90_000))
        .long(1)
        .string(country)
        .long(at.0);
    Message {
        key: Some(Bytes::from(format!("o-{}", 410_000 + order))),
        body: Some(encode::confluent(SCHEMA_V7, &payload.finish())),
        headers: vec![
            text(
                "traceparent",
                &format!("00-{}-{}-01", random.hex(32), random.hex(16)),
            ),
            text("ce_type", "shop.events.OrderPlaced"),
        ],
        ..Message::default()
    }
}

/// A hundred and twenty dead letters of the consumer `billing`, one in ten of which cannot even be read.
fn fill_spring(state: &mut State, now: Millis, random: &mut Random) {
    for number in 0..120_i64 {
        let died = now.plus(-hours(20) + minutes(10) * number);
        dead_event(state, number, died, random);
    }
}

/// One dead letter as Spring Kafka's `DeadLetterPublishingRecoverer` writes it.
pub(super) fn dead_event(state: &mut State, number: i64, died: Millis, random: &mut Random) {
    let mut message = order_placed(random.below(400), died.plus(-30_000), random);
    let partition = i32::try_from(number % 3).unwrap_or_default();
    let broken = number % 10 == 3;
    match number % 40 {
        // Two of a kind that every tool has to get right: a tombstone, and a compressed body.
        17 => message.body = None,
        27 => message.body = Some(encode::gzip(br#"{"orderId":"o-410999","total":12.30}"#)),
        _ if broken => {
            let body = message.body.take().unwrap_or_default();
            message.body = Some(body.slice(..body.len().saturating_sub(7)));
        }
        _ => {}
    }
    message
        .headers
        .extend(spring_marks(partition, number, died, broken));
    append(
        state,
        DEAD_EVENTS,
        message,
        died,
        Partitioning::Exact(partition),
    );
}

/// Numbers are big-endian binary, as Spring writes them.
fn spring_marks(partition: i32, number: i64, died: Millis, broken: bool) -> Vec<Header> {
    let (class, cause, message, stack) = if broken {
        (
            "org.springframework.kafka.support.serializer.DeserializationException",
            "org.apache.kafka.common.errors.SerializationException",
            "failed to deserialize",
            include_str!("../../../../assets/demo/deserialization.txt"),
        )
    } else {
        (
            "org.springframework.kafka.listener.ListenerExecutionFailedException",
            "java.lang.IllegalStateException",
            "Listener method 'void shop.billing.InvoiceListener.on(shop.events.OrderPlaced)' threw exception; no tax rate for country",
            include_str!("../../../../assets/demo/spring-kafka.txt"),
        )
    };
    let offset = 100 + number;
    let time = died.plus(-30_000).0;
    vec![
        text("kafka_dlt-exception-fqcn", class),
        text("kafka_dlt-exception-cause-fqcn", cause),
        text("kafka_dlt-exception-message", message),
        text("kafka_dlt-exception-stacktrace", stack),
        text("kafka_dlt-original-topic", EVENTS),
        binary("kafka_dlt-original-partition", &partition.to_be_bytes()),
        binary("kafka_dlt-original-offset", &offset.to_be_bytes()),
        binary("kafka_dlt-original-timestamp", &time.to_be_bytes()),
        text("kafka_dlt-original-timestamp-type", "CreateTime"),
        text("kafka_dlt-original-consumer-group", "billing"),
    ]
}

/// Forty records that a sink's JSON converter could not read, one of them not even UTF-8.
fn fill_connect(state: &mut State, now: Millis, random: &mut Random) {
    for number in 0..40_i64 {
        let died = now.plus(-minutes(40 * (40 - number)));
        let order = format!("o-{}", 410_000 + random.below(400));
        let mut body =
            format!("{{\"orderId\":\"{order}\",\"state\":\"shipped\",\"at\":").into_bytes();
        if number == 21 {
            body.extend([0xff, 0xfe, 0x80]);
        }
        let mut headers = vec![text("source", "warehouse")];
        headers.extend(connect_marks(number));
        let message = Message {
            key: Some(order.into()),
            body: Some(body.into()),
            headers,
            ..Message::default()
        };
        append(state, SINK_DEAD, message, died, Partitioning::ByKey);
    }
}

/// What Connect adds with `errors.deadletterqueue.context.headers.enable`, all of it text.
fn connect_marks(number: i64) -> Vec<Header> {
    let partition = (number % 3).to_string();
    let offset = (500 + number).to_string();
    [
        ("topic", EVENTS),
        ("partition", &partition),
        ("offset", &offset),
        ("connector.name", "orders-sink"),
        ("task.id", "0"),
        ("stage", "VALUE_CONVERTER"),
        ("class.name", "org.apache.kafka.connect.json.JsonConverter"),
        (
            "exception.class.name",
            "org.apache.kafka.connect.errors.DataException",
        ),
        (
            "exception.message",
            "Converting byte[] to Kafka Connect data failed due to serialization error: ",
        ),
        (
            "exception.stacktrace",
            include_str!("../../../../assets/demo/connect.txt"),
        ),
    ]
    .into_iter()
    .map(|(name, value)| text(&format!("__connect.errors.{name}"), value))
    .collect()
}

/// A compacted topic, so that its gaps and tombstones can be seen.
fn fill_latest(state: &mut State, now: Millis, random: &mut Random) {
    for number in 0..300 {
        let time = now.plus(-minutes(300 - number));
        let mut event = order_placed(random.below(60), time, random);
        if number % 25 == 24 {
            event.body = None;
        }
        append(state, "orders.latest", event, time, Partitioning::ByKey);
    }
    if let Ok(log) = state.log("orders.latest") {
        log.compact();
    }
}

pub(super) fn append(
    state: &mut State,
    log: &str,
    message: Message,
    time: Millis,
    to: Partitioning,
) -> Option<Position> {
    state
        .append_record(log, message, time, to, Fate::Stands)
        .ok()
}

fn text(name: &str, value: &str) -> Header {
    Header::new(name, "bytes", Value::text(value))
}

fn binary(name: &str, value: &[u8]) -> Header {
    Header::new(name, "bytes", Value::Bytes(Bytes::copy_from_slice(value)))
}
