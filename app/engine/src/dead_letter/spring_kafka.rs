//! Spring for Apache Kafka: `DeadLetterPublishingRecoverer`, retry topics, and Spring Cloud Stream's Kafka binder
//! (<https://docs.spring.io/spring-kafka/reference/kafka/annotation-error-handling.html#dlpr-headers>).
//!
//! Numbers are big-endian binary here, not text. Spring appends, so the last header of a name is the newest.

use super::{
    Confidence, Death,
    field::{Field, big_endian},
    marks::{Marks, Newest, Plain},
    spring_amqp::name_exceptions,
};

const SCOPE: &str = "deliveries over all retry topics";

const DEAD_LETTER: Plain = Plain {
    dialect: "Spring Kafka",
    marks: &["kafka_dlt-original-topic", "kafka_dlt-exception-fqcn"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "kafka_dlt-exception-fqcn"),
        (Field::Class, "kafka_dlt-key-exception-fqcn"),
        (Field::Cause, "kafka_dlt-exception-cause-fqcn"),
        (Field::Message, "kafka_dlt-exception-message"),
        (Field::Message, "kafka_dlt-key-exception-message"),
        (Field::Stack, "kafka_dlt-exception-stacktrace"),
        (Field::Stack, "kafka_dlt-key-exception-stacktrace"),
        (Field::Topic, "kafka_dlt-original-topic"),
        (Field::Partition, "kafka_dlt-original-partition"),
        (Field::Offset, "kafka_dlt-original-offset"),
        (Field::Sent, "kafka_dlt-original-timestamp"),
        (Field::Group, "kafka_dlt-original-consumer-group"),
        (Field::Attempts, "kafka_deliveryAttempt"),
    ],
    scope: "deliveries of the last topic",
};

const RETRY_TOPIC: Plain = Plain {
    dialect: "Spring Kafka retry topic",
    marks: &["kafka_original-topic", "kafka_exception-fqcn"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "kafka_exception-fqcn"),
        (Field::Class, "kafka_key-exception-fqcn"),
        (Field::Cause, "kafka_exception-cause-fqcn"),
        (Field::Message, "kafka_exception-message"),
        (Field::Message, "kafka_key-exception-message"),
        (Field::Stack, "kafka_exception-stacktrace"),
        (Field::Stack, "kafka_key-exception-stacktrace"),
        (Field::Topic, "kafka_original-topic"),
        (Field::Partition, "kafka_original-partition"),
        (Field::Offset, "kafka_original-offset"),
        (Field::Sent, "kafka_original-timestamp"),
        // The group keeps its dead-letter name in retry topics.
        (Field::Group, "kafka_dlt-original-consumer-group"),
    ],
    scope: SCOPE,
};

const CLOUD_STREAM: Plain = Plain {
    dialect: "Spring Cloud Stream",
    marks: &["x-original-topic"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "x-exception-fqcn"),
        (Field::Message, "x-exception-message"),
        (Field::Stack, "x-exception-stacktrace"),
        (Field::Topic, "x-original-topic"),
        (Field::Partition, "x-original-partition"),
        (Field::Offset, "x-original-offset"),
        (Field::Sent, "x-original-timestamp"),
    ],
    scope: SCOPE,
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = DEAD_LETTER.read(marks);
    for death in &mut deaths {
        name_exceptions(death, "kafka_dlt-exception-stacktrace");
    }
    let mut retried = RETRY_TOPIC.read(marks);
    for death in &mut retried {
        name_exceptions(death, "kafka_exception-stacktrace");
    }
    if let Some(newest) = retried.first_mut() {
        add_retries(marks, newest);
    }
    let mut streamed = CLOUD_STREAM.read(marks);
    for death in &mut streamed {
        name_exceptions(death, "x-exception-stacktrace");
    }
    deaths.append(&mut retried);
    deaths.append(&mut streamed);
    note_serialized_exceptions(marks, &mut deaths);
    deaths
}

/// The `retry_topic-…` headers repeat with every hop; only the last of each counts. Times are Java's `BigInteger` bytes,
/// attempts four bytes (one byte in old versions).
fn add_retries(marks: &Marks<'_>, death: &mut Death) {
    let number = |name| {
        marks
            .last(name)
            .and_then(dlo_core::Value::as_bytes)
            .and_then(|bytes| big_endian(bytes))
    };
    if let Some(attempts) =
        number("retry_topic-attempts").and_then(|count| u64::try_from(count).ok())
    {
        death.attempts = Some(attempts);
        death.scope = Some(SCOPE.into());
        death.note_source(Field::Attempts.path(), "retry_topic-attempts");
    }
    let time = number("retry_topic-original-timestamp").and_then(|time| i64::try_from(time).ok());
    if let Some(time) = time {
        death.sent = Some(dlo_core::Millis(time));
        death.note_source(Field::Sent.path(), "retry_topic-original-timestamp");
    }
}

/// A Java-serialized exception could run code when it is deserialized, so it never is.
fn note_serialized_exceptions(marks: &Marks<'_>, deaths: &mut [Death]) {
    let names = [
        "springDeserializerExceptionKey",
        "springDeserializerExceptionValue",
    ];
    for name in names.into_iter().filter(|name| marks.has(name)) {
        if let Some(death) = deaths.first_mut() {
            death.notes.push(format!(
                "{name} holds a Java-serialized exception, which is not opened because that could run code."
            ));
        }
    }
}
