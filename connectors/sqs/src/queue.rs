//! A queue's facts, parsed once from the attributes that SQS gives as text.
//!
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html>

use std::{collections::HashMap, time::Duration};

use aws_sdk_sqs::types::QueueAttributeName as Name;
use serde::Deserialize;

/// What SQS takes in one message and in one batch, body and attributes together.
pub(crate) const MAX_BYTES: u64 = 1_048_576;

/// Messages in flight that a queue may have.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
pub(crate) const MAX_IN_FLIGHT: u64 = 120_000;

/// SQS's default retention, for a server that does not tell.
const RETENTION: Duration = Duration::from_secs(4 * 24 * 3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Standard,
    /// Order is kept per message group, and duplicates are suppressed for 5 minutes.
    Fifo,
}

/// How the encryption of messages at rest is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    None,
    /// With keys of SQS itself.
    Sqs,
    Kms(String),
}

/// Where a queue's dead letters go, and after how many receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedrivePolicy {
    pub target_arn: String,
    pub max_receives: u64,
}

/// Which queues may name this one as their dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedriveAllowPolicy {
    /// `allowAll`, `denyAll` or `byQueue`.
    pub permission: String,
    pub source_arns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub name: String,
    pub url: String,
    pub arn: String,
    pub order: Order,
    pub deduplicates_by_content: bool,
    /// `queue` or `messageGroup` (FIFO).
    pub deduplication_scope: Option<String>,
    /// `perQueue` or `perMessageGroupId` (FIFO).
    pub throughput_limit: Option<String>,
    pub visible: Option<u64>,
    pub in_flight: Option<u64>,
    pub delayed: Option<u64>,
    pub retention: Duration,
    pub visibility_timeout: Duration,
    pub delay: Duration,
    pub max_bytes: u64,
    pub encryption: Encryption,
    pub redrive: Option<RedrivePolicy>,
    pub redrive_allow: Option<RedriveAllowPolicy>,
    pub has_policy: bool,
}

impl Queue {
    pub fn parse(url: &str, attributes: &HashMap<Name, String>) -> Self {
        let text = |name: Name| {
            attributes
                .get(&name)
                .cloned()
                .filter(|value| !value.is_empty())
        };
        let number = |name: Name| text(name).and_then(|value| value.parse::<u64>().ok());
        let seconds = |name: Name| number(name).map(Duration::from_secs);
        let yes = |name: Name| text(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let name = name_in_url(url).to_owned();
        let fifo = yes(Name::FifoQueue) || name.ends_with(".fifo");
        Self {
            url: url.to_owned(),
            arn: text(Name::QueueArn).unwrap_or_default(),
            order: if fifo { Order::Fifo } else { Order::Standard },
            deduplicates_by_content: yes(Name::ContentBasedDeduplication),
            deduplication_scope: text(Name::DeduplicationScope),
            throughput_limit: text(Name::FifoThroughputLimit),
            visible: number(Name::ApproximateNumberOfMessages),
            in_flight: number(Name::ApproximateNumberOfMessagesNotVisible),
            delayed: number(Name::ApproximateNumberOfMessagesDelayed),
            retention: seconds(Name::MessageRetentionPeriod).unwrap_or(RETENTION),
            visibility_timeout: seconds(Name::VisibilityTimeout).unwrap_or(Duration::from_secs(30)),
            delay: seconds(Name::DelaySeconds).unwrap_or_default(),
            max_bytes: number(Name::MaximumMessageSize)
                .unwrap_or(MAX_BYTES)
                .min(MAX_BYTES),
            encryption: match text(Name::KmsMasterKeyId) {
                Some(key) => Encryption::Kms(key),
                None if yes(Name::SqsManagedSseEnabled) => Encryption::Sqs,
                None => Encryption::None,
            },
            redrive: text(Name::RedrivePolicy)
                .as_deref()
                .and_then(RedrivePolicy::parse),
            redrive_allow: text(Name::RedriveAllowPolicy)
                .as_deref()
                .and_then(RedriveAllowPolicy::parse),
            has_policy: text(Name::Policy).is_some(),
            name,
        }
    }

    pub fn is_fifo(&self) -> bool {
        self.order == Order::Fifo
    }

    /// Visible, in flight and delayed together; `None` when the server told none of them.
    pub fn messages(&self) -> Option<u64> {
        [self.visible, self.in_flight, self.delayed]
            .into_iter()
            .flatten()
            .reduce(|a, b| a + b)
    }
}

impl RedrivePolicy {
    /// SQS writes the number as a number, older tools wrote it as text.
    fn parse(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Raw {
            dead_letter_target_arn: String,
            max_receive_count: serde_json::Value,
        }
        let raw: Raw = serde_json::from_str(json).ok()?;
        let max_receives = match &raw.max_receive_count {
            serde_json::Value::String(text) => text.parse().ok()?,
            number => number.as_u64()?,
        };
        Some(Self {
            target_arn: raw.dead_letter_target_arn,
            max_receives,
        })
    }

    pub fn target(&self) -> &str {
        name_in_arn(&self.target_arn)
    }
}

impl RedriveAllowPolicy {
    fn parse(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Raw {
            redrive_permission: String,
            #[serde(default)]
            source_queue_arns: Vec<String>,
        }
        let raw: Raw = serde_json::from_str(json).ok()?;
        Some(Self {
            permission: raw.redrive_permission,
            source_arns: raw.source_queue_arns,
        })
    }
}

/// The queue's name: the last part of its URL's path.
pub(crate) fn name_in_url(url: &str) -> &str {
    url.trim_end_matches('/').rsplit('/').next().unwrap_or(url)
}

/// The queue's name: the last part of its ARN.
pub(crate) fn name_in_arn(arn: &str) -> &str {
    arn.rsplit(':').next().unwrap_or(arn)
}

/// The account in an ARN, for a queue of somebody else.
pub(crate) fn account_in_arn(arn: &str) -> Option<&str> {
    arn.split(':').nth(4).filter(|account| !account.is_empty())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn queue(name: &str, attributes: &[(Name, &str)]) -> Queue {
        let attributes = attributes
            .iter()
            .map(|(name, value)| (name.clone(), (*value).to_owned()))
            .collect();
        Queue::parse(
            &format!("http://localhost:1/000000000000/{name}"),
            &attributes,
        )
    }

    #[test]
    fn policies_are_read_in_both_spellings_of_the_number() {
        for count in ["3", "\"3\""] {
            let json = format!(
                r#"{{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:d","maxReceiveCount":{count}}}"#
            );
            let queue = queue("q", &[(Name::RedrivePolicy, &json)]);
            let policy = queue.redrive.expect("a policy");
            assert_eq!((policy.target(), policy.max_receives), ("d", 3));
        }
        let json =
            r#"{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:eu-west-1:1:s"]}"#;
        let queue = queue("q", &[(Name::RedriveAllowPolicy, json)]);
        assert_eq!(
            queue.redrive_allow.map(|allow| allow.source_arns.len()),
            Some(1)
        );
    }

    #[test]
    fn numbers_and_kinds_are_read() {
        let queue = queue(
            "orders.fifo",
            &[
                (Name::FifoQueue, "true"),
                (Name::ApproximateNumberOfMessages, "5"),
                (Name::ApproximateNumberOfMessagesNotVisible, "2"),
                (Name::MessageRetentionPeriod, "60"),
                (Name::MaximumMessageSize, "1024"),
                (Name::SqsManagedSseEnabled, "true"),
            ],
        );
        assert!(queue.is_fifo());
        assert_eq!(
            (queue.messages(), queue.retention.as_secs(), queue.max_bytes),
            (Some(7), 60, 1024)
        );
        assert_eq!(queue.encryption, Encryption::Sqs);
    }
}
