//! What Amazon SQS itself says of a redriven message. It stands in system attributes, which are facts beside the message
//! (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html>).

use dlo_core::{Delivery, Value};

use super::{
    Confidence, Death, Pointer,
    field::{Field, fill, name_in_address, text_int},
    marks::Marks,
};

/// SQS moved the message, because it was received too often without being deleted. It records no other reason.
pub(super) fn read(marks: &Marks<'_>) -> Option<Death> {
    let facts = &marks.delivery.facts;
    let source = marks.delivery.fact("DeadLetterQueueSourceArn")?;
    let mut death = Death::new("Amazon SQS", Confidence::Sure);
    death.reason.class = Some("maxReceiveCount".to_owned());
    death.origin.queue = Some(name_in_address(source).to_owned());
    for field in [Field::Class, Field::Queue] {
        death.note_source(field.path(), "DeadLetterQueueSourceArn");
    }
    for (field, name) in [
        (Field::Sent, "SentTimestamp"),
        (Field::First, "ApproximateFirstReceiveTimestamp"),
        (Field::Attempts, "ApproximateReceiveCount"),
    ] {
        if let Some(value) = facts.get(name) {
            fill(&mut death, field, value, name);
        }
    }
    death.scope = death
        .attempts
        .map(|_| "receives in all queues, looks included".into());
    death.notes.push(
        "SQS records no reason: the message was received more often than its queue allows and was never deleted.".to_owned(),
    );
    // A fact that the connector adds where it could read the settings of the queue that the message died in.
    if let Some(limit) = facts.get("SourceMaxReceiveCount").and_then(Value::as_int) {
        death.notes.push(format!(
            "That queue gives up a message after {limit} receives."
        ));
    }
    Some(death)
}

/// The S3 object that a body of the extended client points to
/// (<https://github.com/awslabs/amazon-sqs-java-extended-client-lib>).
pub(super) fn s3_pointer(delivery: &Delivery) -> Option<Pointer> {
    const CLASSES: [&str; 2] = [
        "software.amazon.payloadoffloading.PayloadS3Pointer",
        "com.amazon.sqs.javamessaging.MessageS3Pointer",
    ];
    let body = delivery.message.body.as_deref()?.trim_ascii_start();
    // A pointer is short, and everything else need not be parsed.
    if body.first() != Some(&b'[') || body.len() > 8192 {
        return None;
    }
    let (class, place): (String, serde_json::Value) = serde_json::from_slice(body).ok()?;
    let class = CLASSES.contains(&class.as_str());
    let text = |name: &str| place.get(name)?.as_str().map(str::to_owned);
    let key = text("s3Key").filter(|_| class)?;
    let size = ["ExtendedPayloadSize", "SQSLargePayloadSize"]
        .iter()
        .find_map(|name| delivery.message.header(name).and_then(text_size));
    Some(Pointer::S3 {
        bucket: text("s3BucketName"),
        key,
        size,
    })
}

fn text_size(value: &Value) -> Option<u64> {
    text_int(value).and_then(|size| u64::try_from(size).ok())
}
