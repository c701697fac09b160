//! The .NET service buses: MassTransit, NServiceBus, Rebus, Wolverine, Brighter and EasyNetQ. They write the same header
//! names on every transport.

use super::{
    Confidence, Death, Pointer,
    field::{Field, name_in_address, text_time},
    marks::{Marks, Newest, Plain},
    spring_amqp::name_exceptions,
};

/// <https://masstransit.io/documentation/concepts/exceptions>
const MASSTRANSIT: Plain = Plain {
    dialect: "MassTransit",
    marks: &["MT-Fault-ExceptionType", "MT-Fault-Message", "MT-Reason"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "MT-Fault-ExceptionType"),
        (Field::Class, "MT-Reason"),
        (Field::Message, "MT-Fault-Message"),
        (Field::Stack, "MT-Fault-StackTrace"),
        (Field::Last, "MT-Fault-Timestamp"),
        (Field::Queue, "MT-Fault-InputAddress"),
        (Field::Handler, "MT-Fault-ConsumerType"),
        (Field::Attempts, "MT-Fault-RetryCount"),
    ],
    scope: "retries by MassTransit",
};

/// <https://docs.particular.net/nservicebus/messaging/headers#error-forwarding-headers>
const NSERVICEBUS: Plain = Plain {
    dialect: "NServiceBus",
    marks: &[
        "NServiceBus.FailedQ",
        "NServiceBus.ExceptionInfo.ExceptionType",
    ],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "NServiceBus.ExceptionInfo.ExceptionType"),
        (Field::Cause, "NServiceBus.ExceptionInfo.InnerExceptionType"),
        (Field::Message, "NServiceBus.ExceptionInfo.Message"),
        (Field::Stack, "NServiceBus.ExceptionInfo.StackTrace"),
        (Field::Queue, "NServiceBus.FailedQ"),
        (Field::Last, "NServiceBus.TimeOfFailure"),
        (Field::Sent, "NServiceBus.TimeSent"),
        (Field::Attempts, "NServiceBus.Retries"),
    ],
    scope: "delayed retries by NServiceBus",
};

/// <https://github.com/rebus-org/Rebus/wiki/Automatic-retries-and-error-handling>
const REBUS: Plain = Plain {
    dialect: "Rebus",
    marks: &["rbs2-error-details", "rbs2-source-queue"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Stack, "rbs2-error-details"),
        (Field::Queue, "rbs2-source-queue"),
        (Field::Sent, "rbs2-senttime"),
        (Field::Attempts, "rbs2-delivery-count"),
        (Field::Attempts, "rbs2-defer-count"),
    ],
    scope: "deliveries that Rebus counted",
};

/// <https://wolverinefx.net/guide/handlers/error-handling.html>. The names are so common that they prove little.
const WOLVERINE: Plain = Plain {
    dialect: "Wolverine",
    marks: &["exception-type"],
    confidence: Confidence::Weak,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "exception-type"),
        (Field::Message, "exception-message"),
        (Field::Stack, "exception-stack"),
        (Field::Last, "failed-at"),
        (Field::Queue, "original-destination"),
        (Field::Partition, "original-partition"),
        (Field::Offset, "original-offset"),
        (Field::Attempts, "attempts"),
    ],
    scope: "attempts that Wolverine counted",
};

const WOLVERINE_TIERS: Plain = Plain {
    dialect: "Wolverine retry tier",
    marks: &["wolverine-kafka-retry-source", "wolverine-kafka-retry-tier"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "wolverine-kafka-retry-exception-type"),
        (Field::Message, "wolverine-kafka-retry-exception-message"),
        (Field::Topic, "wolverine-kafka-retry-source"),
        (Field::Attempts, "wolverine-kafka-retry-attempt"),
        (Field::First, "wolverine-kafka-retry-first-failed"),
    ],
    scope: "attempts over all retry tiers",
};

/// <https://brightercommand.gitbook.io/paramore-brighter-documentation>. Capitalised on Kafka, not on SQS.
const BRIGHTER: Plain = Plain {
    dialect: "Brighter",
    marks: &["RejectionReason", "rejectionReason"],
    confidence: Confidence::Likely,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "RejectionReason"),
        (Field::Class, "rejectionReason"),
        (Field::Message, "RejectionMessage"),
        (Field::Message, "rejectionMessage"),
        (Field::Topic, "OriginalTopic"),
        (Field::Topic, "originalTopic"),
        (Field::Last, "RejectionTimestamp"),
        (Field::Last, "rejectionTimestamp"),
    ],
    scope: "",
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = read_masstransit(marks);
    deaths.append(&mut read_nservicebus(marks));
    deaths.append(&mut read_rebus(marks));
    deaths.append(&mut WOLVERINE_TIERS.read(marks));
    deaths.append(&mut read_wolverine(marks));
    deaths.append(&mut BRIGHTER.read(marks));
    deaths.extend(read_easynetq(marks));
    deaths
}

fn read_masstransit(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = MASSTRANSIT.read(marks);
    for death in &mut deaths {
        shorten_queue(death);
        if let Some(reason) = marks.text("MT-Reason").filter(|reason| *reason != "fault") {
            death.notes.push(format!(
                "MassTransit set it aside as {reason}: no consumer took it."
            ));
        }
    }
    deaths
}

fn shorten_queue(death: &mut Death) {
    if let Some(queue) = &mut death.origin.queue {
        *queue = name_in_address(queue).to_owned();
    }
}

fn read_nservicebus(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = NSERVICEBUS.read(marks);
    for death in &mut deaths {
        // A queue may carry its machine: orders@host.
        if let Some((queue, _)) = death
            .origin
            .queue
            .as_deref()
            .and_then(|name| name.split_once('@'))
        {
            death.origin.queue = Some(queue.to_owned());
        }
        for name in [
            "ServiceControl.RetryTo",
            "ServiceControl.TargetEndpointAddress",
        ] {
            if let Some(target) = marks.text(name) {
                death
                    .notes
                    .push(format!("{name} asks for retries to go to {target}."));
            }
        }
        if let Some(key) = marks.text("S3BodyKey").filter(|key| !key.is_empty()) {
            death.pointer = Some(Pointer::S3 {
                bucket: None,
                key: key.to_owned(),
                size: None,
            });
        }
    }
    deaths
}

/// Rebus writes one text of everything: times, then exceptions with their stacks.
fn read_rebus(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = REBUS.read(marks);
    for death in &mut deaths {
        name_exceptions(death, "rbs2-error-details");
        let details = death.reason.stack.as_deref();
        if let Some(message) = details
            .and_then(crate::group::stack::head_message)
            .map(str::to_owned)
        {
            death.reason.message = Some(message);
            death.note_source(Field::Message.path(), "rbs2-error-details");
        }
    }
    deaths
}

fn read_wolverine(marks: &Marks<'_>) -> Vec<Death> {
    if !marks.has("exception-message") {
        return Vec::new();
    }
    let mut deaths = WOLVERINE.read(marks);
    for death in &mut deaths {
        if death.last.is_some() {
            death.confidence = Confidence::Likely;
        }
        let address = death.origin.queue.take();
        let Some(address) = address else { continue };
        let name = name_in_address(&address).to_owned();
        let source = death.from.remove(Field::Queue.path()).unwrap_or_default();
        if address.starts_with("kafka:") || death.origin.partition.is_some() {
            death.origin.topic = Some(name);
            death.note_source(Field::Topic.path(), source);
        } else {
            death.origin.queue = Some(name);
            death.note_source(Field::Queue.path(), source);
        }
    }
    deaths
}

/// EasyNetQ's error queue holds a JSON body around the message
/// (<https://github.com/EasyNetQ/EasyNetQ/wiki/Error-Conditions>).
fn read_easynetq(marks: &Marks<'_>) -> Option<Death> {
    let json = marks.object_with(&[
        "\"RoutingKey\"",
        "\"Exchange\"",
        "\"Exception\"",
        "\"Message\"",
    ])?;
    let text = |name: &str| json.get(name)?.as_str().map(str::to_owned);
    let mut death = Death::new("EasyNetQ", Confidence::Sure);
    death.origin.exchange = text("Exchange");
    death.note_source(Field::Exchange.path(), "body /Exchange");
    death.origin.routing_keys = text("RoutingKey").into_iter().collect();
    death.note_source(Field::RoutingKey.path(), "body /RoutingKey");
    death.origin.queue = text("Queue");
    death.note_source(Field::Queue.path(), "body /Queue");
    death.last = text("DateTime").as_deref().and_then(text_time);
    death.note_source(Field::Last.path(), "body /DateTime");
    death.reason.stack = text("Exception");
    death.note_source(Field::Stack.path(), "body /Exception");
    name_exceptions(&mut death, "body /Exception");
    let stack = death.reason.stack.as_deref();
    death.reason.message = stack
        .and_then(crate::group::stack::head_message)
        .map(str::to_owned);
    death.note_source(Field::Message.path(), "body /Exception");
    Some(death)
}
