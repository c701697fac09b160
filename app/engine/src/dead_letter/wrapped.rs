//! Messages inside messages: some producers of dead letters wrap the original into a body of their own. These functions find
//! it and give it back as it was. Separate from the deaths, because an unwrapped message is what a replay may have to publish.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use dlo_core::{Delivery, Header, Message, Value};
use serde_json::{Map, Value as Json, value::RawValue};

use super::marks::Marks;

/// What a replay has to do with the wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnReplay {
    /// The consumer never saw the wrapper: it must be taken off.
    Unwrap,
    /// Depends on whether the consumer reads the envelope or the raw message.
    Ask,
    /// The wrapper is how this producer writes on this broker: the consumer expects it.
    Keep,
}

/// A message that was found inside another.
#[derive(Clone, Debug, PartialEq)]
pub struct Unwrapped {
    /// The wrapper's maker, for example `EasyNetQ`.
    pub wrapper: &'static str,
    pub message: Message,
    pub on_replay: OnReplay,
    /// What a person should know. Sentences.
    pub notes: Vec<String>,
}

/// The original message inside a wrapper; `None` when the body is no wrapper we know.
pub fn unwrap(delivery: &Delivery) -> Option<Unwrapped> {
    let marks = Marks::new(delivery);
    easynetq(&marks)
        .or_else(|| lambda_destination(&marks))
        .or_else(|| lambda_kafka(&marks))
        .or_else(|| sns(&marks))
        .or_else(|| kombu(delivery))
}

fn easynetq(marks: &Marks<'_>) -> Option<Unwrapped> {
    let names = [
        "\"RoutingKey\"",
        "\"Exchange\"",
        "\"Message\"",
        "\"BasicProperties\"",
    ];
    let json = marks.object_with(&names)?;
    let mut message = Message {
        body: Some(Bytes::from(json.get("Message")?.as_str()?.to_owned())),
        ..Message::default()
    };
    let properties = json.get("BasicProperties")?.as_object()?;
    for (name, value) in properties {
        set_basic_property(&mut message, name, value);
    }
    if let Some(headers) = properties.get("Headers").and_then(Json::as_object) {
        message.headers = headers
            .iter()
            .map(|(name, value)| header(name, value))
            .collect();
    }
    let notes = if message.headers.is_empty() {
        vec![]
    } else {
        vec![
            "The wrapper keeps no AMQP types: headers are written as text, integers and booleans."
                .to_owned(),
        ]
    };
    Some(Unwrapped {
        wrapper: "EasyNetQ",
        message,
        on_replay: OnReplay::Unwrap,
        notes,
    })
}

/// The wrapper has .NET's names (`ContentType`), and beside each a `…Present` flag in old versions.
fn set_basic_property(message: &mut Message, name: &str, value: &Json) {
    const TEXTS: [(&str, &str); 9] = [
        ("ContentType", "content_type"),
        ("ContentEncoding", "content_encoding"),
        ("CorrelationId", "correlation_id"),
        ("ReplyTo", "reply_to"),
        ("Expiration", "expiration"),
        ("MessageId", "message_id"),
        ("Type", "type"),
        ("AppId", "app_id"),
        ("ClusterId", "cluster_id"),
    ];
    let text = TEXTS.iter().find(|(theirs, _)| *theirs == name);
    let value = match (name, text, value) {
        (_, Some((_, ours)), Json::String(text)) if !text.is_empty() => {
            Some((*ours, Value::text(text)))
        }
        ("DeliveryMode", _, Json::Number(number)) => number
            .as_i64()
            .filter(|mode| *mode > 0)
            .map(|mode| ("delivery_mode", Value::Int(mode.into()))),
        ("Priority", _, Json::Number(number)) => number
            .as_i64()
            .filter(|priority| *priority > 0)
            .map(|priority| ("priority", Value::Int(priority.into()))),
        ("Timestamp", _, Json::Number(number)) => number
            .as_i64()
            .filter(|seconds| *seconds > 0)
            .map(|seconds| ("timestamp", Value::Time(i128::from(seconds) * 1000))),
        _ => None,
    };
    if let Some((name, value)) = value {
        message.properties.insert(name.to_owned(), value);
    }
}

fn header(name: &str, value: &Json) -> Header {
    match value {
        Json::Null => Header::new(name, "void", Value::Null),
        Json::Bool(value) => Header::new(name, "bool", Value::Bool(*value)),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Header::new(name, "long", Value::Int(int.into())),
            None => Header::new(
                name,
                "double",
                Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            ),
        },
        Json::String(text) => Header::new(name, "longstr", Value::text(text)),
        other => Header::new(name, "longstr", Value::text(other.to_string())),
    }
}

/// The payload keeps its own bytes: numbers, order and duplicate keys stay as they were written.
fn lambda_destination(marks: &Marks<'_>) -> Option<Unwrapped> {
    let names = [
        "\"requestContext\"",
        "\"requestPayload\"",
        "\"functionArn\"",
    ];
    if !marks.body().is_some_and(|body| holds_all(body, &names)) {
        return None;
    }
    #[derive(serde::Deserialize)]
    struct Destination<'a> {
        #[serde(borrow, rename = "requestPayload")]
        payload: &'a RawValue,
    }
    let destination: Destination<'_> = serde_json::from_slice(marks.body()?).ok()?;
    Some(Unwrapped {
        wrapper: "AWS Lambda destination",
        message: Message {
            body: Some(Bytes::from(destination.payload.get().to_owned())),
            ..Message::default()
        },
        on_replay: OnReplay::Unwrap,
        notes: vec!["The event is what the function was called with: it goes to the function or to the event's source, not to the queue it lies in.".to_owned()],
    })
}

fn holds_all(body: &[u8], names: &[&str]) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| names.iter().all(|name| text.contains(name)))
}

/// One record of Lambda's Kafka on-failure topic. A batch of several cannot become one message.
fn lambda_kafka(marks: &Marks<'_>) -> Option<Unwrapped> {
    let json = marks.object_with(&["\"requestContext\"", "\"payload\""])?;
    let records = json.get("payload")?.get("records")?.as_object()?;
    let mut records = records.values().filter_map(Json::as_array).flatten();
    let record = records.next()?.as_object()?;
    if records.next().is_some() {
        return None;
    }
    Some(Unwrapped {
        wrapper: "AWS Lambda Kafka batch",
        message: Message {
            key: decoded(record, "key"),
            headers: kafka_headers(record),
            body: decoded(record, "value"),
            ..Message::default()
        },
        on_replay: OnReplay::Unwrap,
        notes: Vec::new(),
    })
}

fn decoded(record: &Map<String, Json>, name: &str) -> Option<Bytes> {
    let text = record.get(name)?.as_str()?;
    STANDARD.decode(text).ok().map(Bytes::from)
}

/// `[{"name": [byte, …]}, …]`, as Lambda hands Kafka's headers to a function.
fn kafka_headers(record: &Map<String, Json>) -> Vec<Header> {
    let headers = record.get("headers").and_then(Json::as_array);
    let entries = headers
        .into_iter()
        .flatten()
        .filter_map(Json::as_object)
        .flatten();
    entries
        .map(|(name, value)| {
            let bytes = value.as_array().map(|bytes| signed_bytes(bytes));
            Header::new(name, "bytes", bytes.map_or(Value::Null, Value::Bytes))
        })
        .collect()
}

/// Java prints bytes with their sign.
fn signed_bytes(bytes: &[Json]) -> Bytes {
    let bytes = bytes.iter().filter_map(Json::as_i64);
    bytes.map(|byte| (byte & 0xff) as u8).collect()
}

/// <https://docs.aws.amazon.com/sns/latest/dg/sns-sqs-as-subscriber.html>
fn sns(marks: &Marks<'_>) -> Option<Unwrapped> {
    let json = marks.object_with(&["\"Type\"", "\"TopicArn\"", "\"Message\"", "\"MessageId\""])?;
    if json.get("Type")?.as_str()? != "Notification" {
        return None;
    }
    let attributes = json.get("MessageAttributes").and_then(Json::as_object);
    let headers = attributes.into_iter().flatten();
    Some(Unwrapped {
        wrapper: "SNS envelope",
        message: Message {
            body: Some(Bytes::from(json.get("Message")?.as_str()?.to_owned())),
            headers: headers.filter_map(|(name, value)| sns_attribute(name, value)).collect(),
            ..Message::default()
        },
        on_replay: OnReplay::Ask,
        notes: vec!["A consumer of a subscription without raw delivery expects the envelope; one with raw delivery expects what is inside.".to_owned()],
    })
}

fn sns_attribute(name: &str, attribute: &Json) -> Option<Header> {
    let kind = attribute.get("Type")?.as_str()?.to_owned();
    let text = attribute.get("Value")?.as_str()?;
    let value = if kind.starts_with("Binary") {
        Value::Bytes(STANDARD.decode(text).ok()?.into())
    } else {
        Value::text(text)
    };
    Some(Header::new(name, kind, value))
}

/// Celery's transport on SQS: JSON, usually in base64, around body, headers and properties
/// (<https://docs.celeryq.dev/projects/kombu/en/stable/reference/kombu.transport.SQS.html>).
fn kombu(delivery: &Delivery) -> Option<Unwrapped> {
    let body = delivery.message.body.as_deref()?;
    let plain = if body.first() == Some(&b'{') {
        body.to_vec()
    } else {
        // Base64 of `{"`; most bodies are refused here.
        STANDARD
            .decode(body.starts_with(b"ey").then_some(body)?)
            .ok()?
    };
    if !holds_all(
        &plain,
        &["\"content-encoding\"", "\"properties\"", "\"headers\""],
    ) {
        return None;
    }
    let json: Json = serde_json::from_slice(&plain).ok()?;
    let properties = json.get("properties")?.as_object()?;
    let inner = json.get("body")?.as_str()?;
    let body = match properties.get("body_encoding").and_then(Json::as_str) {
        Some("base64") => STANDARD.decode(inner).ok()?.into(),
        _ => Bytes::from(inner.to_owned()),
    };
    let headers = json.get("headers").and_then(Json::as_object);
    let headers = headers.into_iter().flatten();
    let mut message = Message {
        headers: headers.map(|(name, value)| header(name, value)).collect(),
        body: Some(body),
        ..Message::default()
    };
    for (theirs, ours) in [
        ("content-type", "content_type"),
        ("content-encoding", "content_encoding"),
    ] {
        if let Some(text) = json.get(theirs).and_then(Json::as_str) {
            message
                .properties
                .insert(ours.to_owned(), Value::text(text));
        }
    }
    Some(Unwrapped {
        wrapper: "Celery on SQS (Kombu)",
        message,
        on_replay: OnReplay::Keep,
        notes: vec!["Celery expects this wrapper: replay the message as it is.".to_owned()],
    })
}
