//! Marks of further frameworks and brokers: Karafka, Symfony Messenger, Pulsar, Google Pub/Sub, ActiveMQ, Artemis and
//! Azure Service Bus. Most of them come to us through bridges and exports.

use super::{
    Confidence, Death,
    field::Field,
    marks::{Marks, Newest, Plain},
};

/// <https://karafka.io/docs/Pro-Enhanced-Dead-Letter-Queue/>
const KARAFKA: Plain = Plain {
    dialect: "Karafka",
    marks: &["source_topic"],
    confidence: Confidence::Likely,
    newest: Newest::Last,
    fields: &[
        (Field::Topic, "source_topic"),
        (Field::Partition, "source_partition"),
        (Field::Offset, "source_offset"),
        (Field::Group, "source_consumer_group"),
        (Field::Attempts, "source_attempts"),
    ],
    scope: "attempts that Karafka counted",
};

/// <https://pulsar.apache.org/docs/concepts-messaging/#dead-letter-topic>
const PULSAR: Plain = Plain {
    dialect: "Pulsar",
    marks: &["REAL_TOPIC"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Topic, "REAL_TOPIC"),
        (Field::Group, "REAL_SUBSCRIPTION"),
        (Field::Attempts, "RECONSUMETIMES"),
        (Field::Class, "EXCEPTION_TYPE"),
        (Field::Message, "EXCEPTION_MESSAGE"),
        (Field::Stack, "STACK_TRACE"),
    ],
    scope: "deliveries by the subscription",
};

/// <https://cloud.google.com/pubsub/docs/handling-failures#dead_letter_topic>
const PUBSUB: Plain = Plain {
    dialect: "Google Pub/Sub",
    marks: &["CloudPubSubDeadLetterSourceSubscription"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Group, "CloudPubSubDeadLetterSourceSubscription"),
        (Field::Attempts, "CloudPubSubDeadLetterSourceDeliveryCount"),
        (Field::Sent, "CloudPubSubDeadLetterSourceTopicPublishTime"),
        (
            Field::Message,
            "CloudPubSubDeadLetterSourceDeliveryErrorMessage",
        ),
    ],
    scope: "deliveries by the subscription",
};

/// <https://activemq.apache.org/components/classic/documentation/message-redelivery-and-dlq-handling>
const ACTIVEMQ: Plain = Plain {
    dialect: "ActiveMQ",
    marks: &["dlqDeliveryFailureCause"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[(Field::Message, "dlqDeliveryFailureCause")],
    scope: "",
};

/// <https://activemq.apache.org/components/artemis/documentation/latest/undelivered-messages.html>
const ARTEMIS: Plain = Plain {
    dialect: "ActiveMQ Artemis",
    marks: &[
        "_AMQ_ORIG_ADDRESS",
        "_AMQ_ORIG_QUEUE",
        "x-opt-ORIG-ADDRESS",
        "x-opt-ORIG-QUEUE",
    ],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Queue, "_AMQ_ORIG_QUEUE"),
        (Field::Queue, "x-opt-ORIG-QUEUE"),
        (Field::Topic, "_AMQ_ORIG_ADDRESS"),
        (Field::Topic, "x-opt-ORIG-ADDRESS"),
        (Field::Last, "_AMQ_ACTUAL_EXPIRY"),
        (Field::Last, "x-opt-ACTUAL-EXPIRY"),
    ],
    scope: "",
};

/// <https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues>
const SERVICE_BUS: Plain = Plain {
    dialect: "Azure Service Bus",
    marks: &["DeadLetterReason"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "DeadLetterReason"),
        (Field::Message, "DeadLetterErrorDescription"),
        (Field::Queue, "DeadLetterSource"),
    ],
    scope: "",
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = Vec::new();
    for dialect in [&PULSAR, &PUBSUB, &ACTIVEMQ, &ARTEMIS, &SERVICE_BUS] {
        deaths.append(&mut dialect.read(marks));
    }
    deaths.extend(read_symfony(marks));
    // Its name is so plain that an offset must stand beside it.
    if marks.has("source_offset") {
        deaths.append(&mut KARAFKA.read(marks));
    }
    deaths
}

/// Symfony writes each kind of stamp as a JSON array in a header named after the stamp's class
/// (<https://symfony.com/doc/current/messenger.html#saving-retrying-failed-messages>).
fn read_symfony(marks: &Marks<'_>) -> Option<Death> {
    let errors = newest_stamp(marks, "ErrorDetailsStamp");
    let moved = newest_stamp(marks, "SentToFailureTransportStamp");
    let tried = newest_stamp(marks, "RedeliveryStamp");
    if errors.is_none() && moved.is_none() {
        return None;
    }
    let mut death = Death::new("Symfony Messenger", Confidence::Sure);
    let mut take = |stamp: &Option<(String, serde_json::Value)>, field: Field, key: &str| {
        let (header, stamp) = stamp.as_ref()?;
        let value = match stamp.get(key)? {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let source = format!("{header} {key}");
        super::field::fill(&mut death, field, &dlo_core::Value::text(value), &source).then_some(())
    };
    take(&errors, Field::Class, "exceptionClass");
    take(&errors, Field::Message, "exceptionMessage");
    take(&moved, Field::Queue, "originalReceiverName");
    take(&tried, Field::Attempts, "retryCount");
    take(&tried, Field::Last, "redeliveredAt");
    death.scope = death.attempts.map(|_| "retries by Symfony".into());
    Some(death)
}

fn newest_stamp(marks: &Marks<'_>, class: &str) -> Option<(String, serde_json::Value)> {
    let headers = &marks.delivery.message.headers;
    let header = headers.iter().find(|header| {
        header.name.starts_with("X-Message-Stamp-") && header.name.ends_with(class)
    })?;
    let stamps: Vec<serde_json::Value> = serde_json::from_str(header.value().as_text()?).ok()?;
    Some((header.name.clone(), stamps.into_iter().next_back()?))
}
