//! A received SQS message as a delivery: what can be sent again in the message, what SQS says about it in the facts.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::{Message as SdkMessage, MessageSystemAttributeName as Name};
use bytes::Bytes;
use dlo_core::{Delivery, Lock, Message, Millis, Position, Value};

use crate::{attributes, queue::Queue};

/// The one system attribute that a sender may set.
pub(crate) const TRACE: &str = "AWSTraceHeader";
pub(crate) const GROUP: &str = "MessageGroupId";
pub(crate) const DEDUPLICATION: &str = "MessageDeduplicationId";

/// A fact of ours: when SQS will delete the message, from the queue's retention.
pub(crate) const EXPIRES: &str = "Expires";
/// A fact of ours: the limit of the queue that the message died in, where it is known.
pub(crate) const LIMIT: &str = "SourceMaxReceiveCount";

/// What is known of a queue when its messages arrive.
#[derive(Clone, Debug)]
pub(crate) struct Context<'a> {
    pub queue: &'a Queue,
    /// The limits of the queues whose dead letters come here, by ARN.
    pub limits: &'a BTreeMap<String, u64>,
}

/// The delivery, or `None` for a message without the two ids that everything else needs.
pub(crate) fn delivery(context: &Context<'_>, message: &SdkMessage) -> Option<Delivery> {
    let id = message.message_id()?;
    message.receipt_handle()?;
    let mut facts = system_attributes(message);
    facts.insert("MessageId".to_owned(), Value::text(id));
    let time = millis(&facts, "SentTimestamp");
    if let Some(expires) = expires(
        context.queue,
        time,
        facts.contains_key("DeadLetterQueueSourceArn"),
    ) {
        facts.insert(EXPIRES.to_owned(), Value::Time(i128::from(expires.0)));
    }
    if let Some(limit) = limit(context, &facts) {
        facts.insert(LIMIT.to_owned(), Value::Int(i128::from(limit)));
    }
    Some(Delivery {
        message: Message {
            key: None,
            headers: message
                .message_attributes()
                .map(attributes::to_headers)
                .unwrap_or_default(),
            properties: properties(&facts),
            body: Some(Bytes::from(message.body().unwrap_or_default().to_owned())),
        },
        position: Position::Id { id: id.to_owned() },
        lock: Some(Lock::new(id)),
        time,
        delivery_count: receives(message).map(|receives| receives.saturating_sub(1)),
        facts,
    })
}

/// How often SQS has handed the message out, this time included, over all queues it was in.
pub(crate) fn receives(message: &SdkMessage) -> Option<u64> {
    message
        .attributes()?
        .get(&Name::ApproximateReceiveCount)?
        .parse()
        .ok()
}

/// When SQS deletes a message that was sent at that time.
///
/// A standard queue counts from the original send, also in a dead-letter queue. A FIFO dead-letter queue counts from the move,
/// which SQS does not tell, so nothing is said there.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html>
fn expires(queue: &Queue, sent: Option<Millis>, was_moved: bool) -> Option<Millis> {
    if queue.is_fifo() && was_moved {
        return None;
    }
    let retention = i64::try_from(queue.retention.as_millis()).ok()?;
    sent.map(|sent| sent.plus(retention))
}

fn limit(context: &Context<'_>, facts: &BTreeMap<String, Value>) -> Option<u64> {
    let source = facts
        .get("DeadLetterQueueSourceArn")
        .and_then(Value::as_text);
    match source {
        Some(arn) => context.limits.get(arn).copied(),
        None => None,
    }
}

fn system_attributes(message: &SdkMessage) -> BTreeMap<String, Value> {
    let attributes = message.attributes().into_iter().flatten();
    attributes
        .map(|(name, value)| (name.as_str().to_owned(), Value::text(value.clone())))
        .collect()
}

/// Group and trace are kept when the message is sent again. The deduplication id is not among them: with the old one
/// SQS would take the message for a repetition and drop it within five minutes.
fn properties(facts: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    [GROUP, TRACE]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), facts.get(name)?.clone())))
        .collect()
}

fn millis(facts: &BTreeMap<String, Value>, name: &str) -> Option<Millis> {
    facts
        .get(name)
        .and_then(Value::as_text)?
        .parse()
        .ok()
        .map(Millis)
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName};

    use super::*;
    use crate::queue::tests::queue;

    const SOURCE: &str = "arn:aws:sqs:eu-west-1:1:orders";

    fn message() -> SdkMessage {
        SdkMessage::builder()
            .message_id("m-1")
            .receipt_handle("r-1")
            .body("{\"id\":1}")
            .attributes(Name::SentTimestamp, "1000")
            .attributes(Name::ApproximateReceiveCount, "4")
            .attributes(Name::MessageGroupId, "g")
            .attributes(Name::MessageDeduplicationId, "d")
            .attributes(Name::AwsTraceHeader, "Root=1")
            .attributes(Name::DeadLetterQueueSourceArn, SOURCE)
            .message_attributes(
                "n",
                MessageAttributeValue::builder()
                    .data_type("Number.int")
                    .string_value("4")
                    .build()
                    .expect("complete"),
            )
            .build()
    }

    fn deliver(name: &str) -> Delivery {
        let queue = queue(name, &[(QueueAttributeName::MessageRetentionPeriod, "60")]);
        let limits = BTreeMap::from([(SOURCE.to_owned(), 3)]);
        delivery(
            &Context {
                queue: &queue,
                limits: &limits,
            },
            &message(),
        )
        .expect("a delivery")
    }

    #[test]
    fn what_can_be_sent_again_and_what_sqs_says_are_apart() {
        let delivery = deliver("orders-dlq");
        assert_eq!(delivery.message.body.as_deref(), Some(&b"{\"id\":1}"[..]));
        assert_eq!(
            delivery.message.properties.keys().collect::<Vec<_>>(),
            [TRACE, GROUP]
        );
        assert_eq!(delivery.fact(DEDUPLICATION), Some("d"));
        assert_eq!(delivery.fact("DeadLetterQueueSourceArn"), Some(SOURCE));
        assert_eq!(delivery.facts.get(LIMIT), Some(&Value::Int(3)));
        assert_eq!(delivery.time, Some(Millis(1000)));
        assert_eq!(delivery.delivery_count, Some(3));
        assert_eq!(delivery.message.headers[0].typed.kind, "Number.int");
    }

    #[test]
    fn a_standard_message_expires_from_its_send_and_a_moved_fifo_one_is_not_known() {
        assert_eq!(
            deliver("orders-dlq").facts.get(EXPIRES),
            Some(&Value::Time(61_000))
        );
        assert_eq!(deliver("orders-dlq.fifo").facts.get(EXPIRES), None);
    }
}
