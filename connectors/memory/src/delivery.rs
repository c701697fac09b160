//! A stored message as a delivery: with the facts and headers that its broker would add.

use std::collections::BTreeMap;

use dlo_core::{Delivery, Header, Lock, Millis, Position, Value};

use crate::{QueueKind, log::Record, queue::Stored};

/// A queue's message, at that index of the look.
pub(crate) fn of_stored(stored: &Stored, kind: QueueKind, index: u64, lock: Lock) -> Delivery {
    let mut message = stored.message.clone();
    if kind == QueueKind::Quorum && stored.count > 0 {
        let count = Value::Int(i128::from(stored.count));
        message
            .headers
            .push(Header::new("x-delivery-count", "int64", count));
    }
    let mut facts = if kind.is_sqs() {
        sqs_facts(stored)
    } else {
        amqp_facts(stored)
    };
    facts.extend(stored.facts.clone());
    let position = if kind.is_sqs() {
        Position::Id {
            id: stored.id.clone(),
        }
    } else {
        Position::Index { index }
    };
    Delivery {
        message,
        position,
        lock: Some(lock),
        time: time_of(stored, kind),
        delivery_count: delivered_before(stored, kind),
        facts,
    }
}

/// The receive that is going on does not count as one before; SQS's own count includes it.
fn delivered_before(stored: &Stored, kind: QueueKind) -> Option<u64> {
    match kind {
        QueueKind::Classic => None,
        QueueKind::Quorum => Some(stored.count),
        QueueKind::Standard | QueueKind::Fifo => Some(stored.count.saturating_sub(1)),
    }
}

/// A record of a log.
pub(crate) fn of_record(record: &Record, partition: i32, offset: i64) -> Delivery {
    let kind = ("timestamp_type".to_owned(), Value::text("CreateTime"));
    Delivery {
        message: record.message.clone(),
        position: Position::Offset { partition, offset },
        lock: None,
        time: Some(record.time),
        delivery_count: None,
        facts: BTreeMap::from([kind]),
    }
}

/// AMQP knows only the publisher's `timestamp`; SQS the time of sending.
fn time_of(stored: &Stored, kind: QueueKind) -> Option<Millis> {
    if kind.is_sqs() {
        return Some(stored.sent);
    }
    match stored.message.properties.get("timestamp") {
        Some(Value::Time(time)) => i64::try_from(*time).ok().map(Millis),
        _ => None,
    }
}

fn amqp_facts(stored: &Stored) -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("exchange".to_owned(), Value::text(&stored.exchange)),
        ("routing_key".to_owned(), Value::text(&stored.routing_key)),
        ("redelivered".to_owned(), Value::Bool(stored.redelivered)),
    ])
}

fn sqs_facts(stored: &Stored) -> BTreeMap<String, Value> {
    let mut facts = BTreeMap::from([
        ("SentTimestamp".to_owned(), number(stored.sent.0)),
        (
            "ApproximateReceiveCount".to_owned(),
            Value::text(stored.count.to_string()),
        ),
        ("SenderId".to_owned(), Value::text("AIDAMEMORYBROKER")),
    ]);
    if let Some(time) = stored.first_received {
        facts.insert(
            "ApproximateFirstReceiveTimestamp".to_owned(),
            number(time.0),
        );
    }
    if let Some(source) = &stored.source {
        let arn = format!("arn:aws:sqs:eu-west-1:000000000000:{source}");
        facts.insert("DeadLetterQueueSourceArn".to_owned(), Value::text(arn));
    }
    if stored.message.properties.contains_key("MessageGroupId") {
        let sequence = format!("{:020}", stored.place);
        facts.insert("SequenceNumber".to_owned(), Value::text(sequence));
    }
    facts
}

/// SQS writes every attribute as text.
fn number(value: i64) -> Value {
    Value::text(value.to_string())
}
