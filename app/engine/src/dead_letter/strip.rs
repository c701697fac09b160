//! Which marks of a death a replay leaves behind, and why. A consumer that finds its own retry counter gives up at once, and a
//! broker's old marks look like a new death; everything else of the message is kept.
//!
//! Separate from the readers, because what is read is not always what is stripped, and pure, so that a plan can show it as
//! a diff.

use dlo_core::{Message, Value};

use super::Death;
use crate::{
    capture::value_text,
    replay::plan::{Change, ChangeKind},
};

/// A message without the marks of its death.
#[derive(Clone, Debug, PartialEq)]
pub struct Stripped {
    pub message: Message,
    /// What was left behind, in the message's order.
    pub changes: Vec<Change>,
}

/// Takes the marks off a message. Headers and properties named in `keep` stay.
///
/// Names that only one framework uses are always taken off; common ones (`exception-type`, `source_topic`) only when `death`
/// was read from them.
pub fn strip(message: &Message, death: Option<&Death>, keep: &[String]) -> Stripped {
    let mut stripped = message.clone();
    let mut changes = Vec::new();
    stripped.headers.retain(|header| {
        let why = (!keep.contains(&header.name))
            .then(|| why_header(&header.name, death))
            .flatten();
        if let Some(why) = why {
            changes.push(change(
                format!("header {}", header.name),
                header.value(),
                why,
            ));
        }
        why.is_none()
    });
    stripped.properties.retain(|name, value| {
        let why = (!keep.contains(name)).then(|| why_property(name)).flatten();
        if let Some(why) = why {
            changes.push(change(format!("property {name}"), value, why));
        }
        why.is_none()
    });
    Stripped {
        message: stripped,
        changes,
    }
}

fn change(what: String, value: &Value, why: &str) -> Change {
    Change {
        kind: ChangeKind::Stripped,
        what,
        before: Some(value_text(value)),
        after: None,
        why: why.to_owned(),
    }
}

/// Why a replay leaves that header behind; `None` when it keeps it.
pub fn why_header(name: &str, death: Option<&Death>) -> Option<&'static str> {
    let exact = EXACT.iter().find(|(header, _)| *header == name);
    let prefixed = || PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    exact
        .or_else(prefixed)
        .map(|(_, why)| *why)
        .or_else(|| why_common(name, death?))
}

const FAULT: &str = "tells of the failure that is being replayed; a new one writes its own";
const BROKER: &str =
    "is the broker's own mark of the death; it would stay visible and look like a new one";
const COUNTER: &str =
    "counts deliveries; with the old count the consumer or the broker gives up at once";
const FAN_OUT: &str = "sends copies to further routing keys, which have had the message already";

/// Names that mean one thing only.
const EXACT: [(&str, &str); 33] = [
    ("x-death", BROKER),
    ("x-opt-deaths", BROKER),
    ("x-delivery-count", COUNTER),
    ("x-acquired-count", COUNTER),
    ("CC", FAN_OUT),
    ("BCC", FAN_OUT),
    ("x-original-exchange", FAULT),
    ("x-original-routingKey", FAULT),
    ("x-exception-message", FAULT),
    ("x-exception-stacktrace", FAULT),
    ("x-exception-fqcn", FAULT),
    ("x-original-topic", FAULT),
    ("x-original-partition", FAULT),
    ("x-original-offset", FAULT),
    ("x-original-timestamp", FAULT),
    ("x-original-timestamp-type", FAULT),
    ("kafka_deliveryAttempt", COUNTER),
    ("springDeserializerExceptionKey", FAULT),
    ("springDeserializerExceptionValue", FAULT),
    ("rbs2-error-details", FAULT),
    ("rbs2-source-queue", FAULT),
    ("rbs2-delivery-count", COUNTER),
    ("rbs2-defer-count", COUNTER),
    ("dlqDeliveryFailureCause", FAULT),
    ("_AMQ_ACTUAL_EXPIRY", FAULT),
    ("x-opt-ACTUAL-EXPIRY", FAULT),
    ("REAL_TOPIC", FAULT),
    ("REAL_SUBSCRIPTION", FAULT),
    ("ORIGIN_MESSAGE_ID", FAULT),
    ("ORIGIN_MESSAGE_IDY_TIME", FAULT),
    ("RECONSUMETIMES", COUNTER),
    ("DELAY_TIME", COUNTER),
    ("RETRY_TOPIC", FAULT),
];

/// Beginnings of names that mean one thing only.
const PREFIXES: [(&str, &str); 25] = [
    ("x-first-death-", BROKER),
    ("x-last-death-", BROKER),
    ("kafka_dlt-", FAULT),
    ("kafka_original-", FAULT),
    ("kafka_exception-", FAULT),
    ("kafka_key-exception-", FAULT),
    ("retry_topic-", COUNTER),
    ("__connect.errors.", FAULT),
    ("__streams.errors.", FAULT),
    ("__dlq.errors.", FAULT),
    ("dead-letter-", FAULT),
    ("dead_letter_", FAULT),
    ("delayed-retry-", COUNTER),
    ("MT-Fault-", FAULT),
    ("MT-Reason", FAULT),
    ("MT-Host-", FAULT),
    ("NServiceBus.Retries", COUNTER),
    ("NServiceBus.FailedQ", FAULT),
    ("NServiceBus.TimeOfFailure", FAULT),
    ("NServiceBus.ExceptionInfo.", FAULT),
    ("ServiceControl.EditOf", FAULT),
    ("wolverine-kafka-retry-", COUNTER),
    ("CloudPubSubDeadLetterSource", FAULT),
    ("_AMQ_ORIG_", FAULT),
    ("x-opt-ORIG-", FAULT),
];

/// Names that an application may use itself: they go only when a death of that dialect was read.
const COMMON: [(&str, &[&str]); 9] = [
    (
        "Wolverine",
        &[
            "exception-type",
            "exception-message",
            "exception-stack",
            "failed-at",
            "original-destination",
            "original-partition",
            "original-offset",
            "attempts",
        ],
    ),
    (
        "Brighter",
        &[
            "RejectionReason",
            "RejectionMessage",
            "RejectionTimestamp",
            "OriginalTopic",
            "OriginalType",
            "rejectionReason",
            "rejectionMessage",
            "rejectionTimestamp",
            "originalTopic",
            "originalMessageType",
        ],
    ),
    (
        "Karafka",
        &[
            "source_topic",
            "source_partition",
            "source_offset",
            "source_consumer_group",
            "source_attempts",
            "source_trace_id",
        ],
    ),
    (
        "Watermill",
        &[
            "reason_poisoned",
            "topic_poisoned",
            "handler_poisoned",
            "subscriber_poisoned",
        ],
    ),
    ("Spring AMQP", &["retry_count", "retry-count"]),
    ("AWS Lambda", &["RequestID", "ErrorCode", "ErrorMessage"]),
    (
        "EventBridge",
        &[
            "RULE_ARN",
            "TARGET_ARN",
            "ERROR_CODE",
            "ERROR_MESSAGE",
            "EXHAUSTED_RETRY_CONDITION",
            "RETRY_ATTEMPTS",
        ],
    ),
    (
        "EventBridge Scheduler",
        &[
            "SCHEDULE_ARN",
            "TARGET_ARN",
            "ERROR_CODE",
            "ERROR_MESSAGE",
            "EXECUTION_ID",
            "EXHAUSTED_RETRY_CONDITION",
            "IS_PAYLOAD_TRUNCATED",
            "RETRY_ATTEMPTS",
            "SCHEDULED_TIME",
        ],
    ),
    (
        "Azure Service Bus",
        &[
            "DeadLetterReason",
            "DeadLetterErrorDescription",
            "DeadLetterSource",
        ],
    ),
];

fn why_common(name: &str, death: &Death) -> Option<&'static str> {
    let symfony = || {
        [
            "ErrorDetailsStamp",
            "RedeliveryStamp",
            "SentToFailureTransportStamp",
        ]
        .iter()
        .any(|stamp| name.starts_with("X-Message-Stamp-") && name.ends_with(stamp))
    };
    let told = death.all().any(|death| {
        COMMON
            .iter()
            .any(|(dialect, names)| *dialect == death.dialect && names.contains(&name))
            || (death.dialect == "Symfony Messenger" && symfony())
    });
    told.then_some(FAULT)
}

/// Why a replay leaves that property behind; `None` when it keeps it.
pub fn why_property(name: &str) -> Option<&'static str> {
    match name {
        // RabbitMQ closes the channel when it is not the connection's own user
        // (https://www.rabbitmq.com/docs/validated-user-id).
        "user_id" => Some("must name the user that publishes, which is now ours"),
        // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
        "MessageDeduplicationId" => Some(
            "was used before: within five minutes SQS would accept the message and not deliver it; a fresh one is given",
        ),
        _ => None,
    }
}
