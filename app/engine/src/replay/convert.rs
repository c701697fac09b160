//! Headers and properties for another kind of broker. Only a replay to another broker needs it: on its own broker a message
//! keeps every type.

use dlo_core::{AddressKind, Header, Message, Value};

use super::plan::{Change, ChangeKind};
use crate::capture::value_text;

/// What the target understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Typed headers and properties.
    Amqp,
    /// Headers are bytes or null; there are no properties.
    Kafka,
    /// Attributes are strings, numbers or binary; few properties.
    Sqs,
}

fn shape(broker: &str, kind: AddressKind) -> Shape {
    match (broker, kind) {
        ("kafka", _) | ("memory" | "file", AddressKind::Topic) => Shape::Kafka,
        ("sqs", _) => Shape::Sqs,
        _ => Shape::Amqp,
    }
}

/// Changes what the target could not take: header types, properties that it does not have, a record key.
pub fn to_broker(
    message: &mut Message,
    from: &str,
    to: &str,
    kind: AddressKind,
    changes: &mut Vec<Change>,
) {
    if from == to || to == "memory" && kind != AddressKind::Topic {
        return;
    }
    let shape = shape(to, kind);
    if shape != Shape::Amqp {
        properties_to_headers(message, shape, changes);
    } else if let Some(key) = message.key.take() {
        added(changes, "header key", "the target has no record keys");
        message
            .headers
            .push(Header::new("key", "longstr", Value::Bytes(key)));
    }
    let before = message.headers.len();
    message.headers = message
        .headers
        .drain(..)
        .filter_map(|header| header_for(shape, header))
        .collect();
    if message.headers.len() < before {
        let why = "the target has no headers without a value";
        changes.push(change(
            ChangeKind::Stripped,
            format!("{} headers", before - message.headers.len()),
            why,
        ));
    }
}

fn properties_to_headers(message: &mut Message, shape: Shape, changes: &mut Vec<Change>) {
    let keeps =
        |name: &str| shape == Shape::Sqs && ["MessageGroupId", "AWSTraceHeader"].contains(&name);
    let (kept, moved) = std::mem::take(&mut message.properties)
        .into_iter()
        .partition(|(name, _)| keeps(name));
    message.properties = kept;
    for (name, value) in moved {
        added(
            changes,
            &format!("header {name}"),
            "the target has no such property",
        );
        message.headers.push(Header::new(name, "longstr", value));
    }
}

fn header_for(shape: Shape, header: Header) -> Option<Header> {
    let Header { name, typed } = header;
    Some(match (shape, typed.value) {
        (Shape::Kafka, Value::Null) => Header::new(name, "bytes", Value::Null),
        (Shape::Kafka, Value::Bytes(bytes)) => Header::new(name, "bytes", Value::Bytes(bytes)),
        (Shape::Kafka, value) => Header::new(name, "bytes", Value::text(value_text(&value))),
        (Shape::Sqs, Value::Null) => return None,
        (Shape::Sqs, Value::Int(int)) => Header::new(name, "Number", Value::text(int.to_string())),
        (Shape::Sqs, Value::Bytes(bytes)) => match std::str::from_utf8(&bytes) {
            Ok(_) if !bytes.is_empty() => Header::new(name, "String", Value::Bytes(bytes)),
            _ => Header::new(name, "Binary", Value::Bytes(bytes)),
        },
        (Shape::Sqs, value) => Header::new(name, "String", Value::text(value_text(&value))),
        (Shape::Amqp, Value::Null) => Header::new(name, "void", Value::Null),
        (Shape::Amqp, Value::Bytes(bytes)) => Header::new(name, "longstr", Value::Bytes(bytes)),
        (Shape::Amqp, value) => Header::new(name, typed.kind, value),
    })
}

fn added(changes: &mut Vec<Change>, what: &str, why: &str) {
    changes.push(change(ChangeKind::Added, what.to_owned(), why));
}

fn change(kind: ChangeKind, what: String, why: &str) -> Change {
    Change {
        kind,
        what,
        before: None,
        after: None,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amqp() -> Message {
        Message {
            headers: vec![
                Header::new("n", "int32", Value::Int(7)),
                Header::new("raw", "longstr", Value::Bytes(vec![255].into())),
                Header::new("nothing", "void", Value::Null),
            ],
            properties: [("content_type".to_owned(), Value::text("text/plain"))].into(),
            ..Message::default()
        }
    }

    fn check(to: &str, expected: &[(&str, &str)]) {
        let mut message = amqp();
        to_broker(
            &mut message,
            "rabbitmq",
            to,
            AddressKind::Queue,
            &mut Vec::new(),
        );
        let kinds: Vec<_> = message
            .headers
            .iter()
            .map(|header| (header.name.as_str(), header.typed.kind.as_ref()))
            .collect();
        assert_eq!(kinds, expected);
    }

    #[test]
    fn on_its_own_broker_nothing_changes() {
        let mut message = amqp();
        to_broker(
            &mut message,
            "rabbitmq",
            "rabbitmq",
            AddressKind::Queue,
            &mut Vec::new(),
        );
        assert_eq!(message, amqp());
    }

    #[test]
    fn headers_become_what_the_target_has() {
        check(
            "kafka",
            &[
                ("n", "bytes"),
                ("raw", "bytes"),
                ("nothing", "bytes"),
                ("content_type", "bytes"),
            ],
        );
        check(
            "sqs",
            &[
                ("n", "Number"),
                ("raw", "Binary"),
                ("content_type", "String"),
            ],
        );
    }
}
