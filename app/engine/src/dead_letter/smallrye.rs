//! SmallRye Reactive Messaging and Quarkus: dead-letter topics, delayed retry topics, and the JMS connector
//! (<https://smallrye.io/smallrye-reactive-messaging/latest/kafka/receiving-kafka-records/#failure-management>).
//!
//! SmallRye puts its headers before the old ones, so the first of a name is the newest.

use super::{
    Confidence, Death,
    field::Field,
    marks::{Marks, Newest, Plain},
};

const KAFKA: Plain = Plain {
    dialect: "SmallRye",
    marks: &[
        "dead-letter-topic",
        "dead-letter-exception-class-name",
        "dead-letter-reason",
    ],
    confidence: Confidence::Sure,
    newest: Newest::First,
    fields: &[
        (Field::Class, "dead-letter-exception-class-name"),
        (Field::Message, "dead-letter-reason"),
        (Field::Cause, "dead-letter-cause-class-name"),
        (Field::Topic, "dead-letter-topic"),
        (Field::Partition, "dead-letter-partition"),
        (Field::Offset, "dead-letter-offset"),
    ],
    scope: "",
};

const DELAYED_RETRY: Plain = Plain {
    dialect: "SmallRye delayed retry",
    marks: &["delayed-retry-topic", "delayed-retry-count"],
    confidence: Confidence::Sure,
    newest: Newest::First,
    fields: &[
        (Field::Class, "delayed-retry-exception-class-name"),
        (Field::Message, "delayed-retry-reason"),
        (Field::Cause, "delayed-retry-cause-class-name"),
        (Field::Topic, "delayed-retry-topic"),
        (Field::Partition, "delayed-retry-partition"),
        (Field::Offset, "delayed-retry-offset"),
        (Field::Attempts, "delayed-retry-count"),
        (Field::First, "delayed-retry-first-processing-timestamp"),
        (Field::Sent, "delayed-retry-original-timestamp"),
    ],
    scope: "retries over all retry topics",
};

const JMS: Plain = Plain {
    dialect: "SmallRye JMS",
    marks: &["dead_letter_reason", "dead_letter_exception_class_name"],
    confidence: Confidence::Sure,
    newest: Newest::First,
    fields: &[
        (Field::Class, "dead_letter_exception_class_name"),
        (Field::Message, "dead_letter_reason"),
        (Field::Cause, "dead_letter_cause_class_name"),
    ],
    scope: "",
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = KAFKA.read(marks);
    if let (Some(death), Some(cause)) = (deaths.first_mut(), marks.text("dead-letter-cause")) {
        death.notes.push(format!("Its cause said: {cause}"));
    }
    deaths.append(&mut DELAYED_RETRY.read(marks));
    deaths.append(&mut JMS.read(marks));
    deaths
}
