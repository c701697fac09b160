//! What a topic can do, from its configuration.

use std::time::Duration;

use dlo_core::{Browse, Capability};
use rdkafka::admin::ConfigResource;

/// Bytes that a record batch with one record needs beside its key, value and headers: 61 of the batch, and up to 15 of the
/// record (<https://kafka.apache.org/documentation/#recordbatch>).
const OVERHEAD: u64 = 76;

/// The configuration of a topic, as far as it matters here
/// (<https://kafka.apache.org/documentation/#topicconfigs>).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicConfig {
    /// `delete`, `compact` or both with a comma.
    pub cleanup: String,
    /// `None` is for ever.
    pub retention: Option<Duration>,
    /// Bytes of a record batch.
    pub max_bytes: Option<u64>,
    /// `CreateTime` or `LogAppendTime`.
    pub timestamps: String,
    pub min_in_sync: Option<String>,
    /// Share groups may write their dead letters here (KIP-1191).
    pub takes_dead_letters: bool,
}

impl TopicConfig {
    pub(crate) fn read(resource: &ConfigResource) -> Self {
        let text = |name: &str| resource.get(name).and_then(|entry| entry.value.clone());
        let number = |name: &str| text(name).and_then(|value| value.parse::<i64>().ok());
        let unsigned = |name: &str| number(name).and_then(|value| u64::try_from(value).ok());
        Self {
            cleanup: text("cleanup.policy").unwrap_or_default(),
            retention: unsigned("retention.ms").map(Duration::from_millis),
            max_bytes: unsigned("max.message.bytes"),
            timestamps: text("message.timestamp.type").unwrap_or_default(),
            min_in_sync: text("min.insync.replicas"),
            takes_dead_letters: text("errors.deadletterqueue.group.enable").as_deref()
                == Some("true"),
        }
    }

    /// Kafka deletes a prefix only where the policy has `delete`.
    pub(crate) fn deletes(&self) -> bool {
        self.cleanup
            .split(',')
            .any(|policy| policy.trim() == "delete")
    }

    pub(crate) fn compacts(&self) -> bool {
        self.cleanup
            .split(',')
            .any(|policy| policy.trim() == "compact")
    }

    /// Bytes of key, value and headers that surely fit.
    pub(crate) fn max_payload(&self) -> Option<u64> {
        self.max_bytes.map(|bytes| bytes.saturating_sub(OVERHEAD))
    }
}

/// What a topic can do. Without its configuration (it may not be readable) nothing that deletes is offered.
pub(crate) fn capability(topic: &str, config: Option<&TopicConfig>) -> Capability {
    let publish = !is_internal(topic);
    let deletes = publish && config.is_some_and(TopicConfig::deletes);
    Capability {
        browse: Browse::ByOffset,
        browse_is_complete: true,
        browse_from_time: true,
        browse_from_offset: true,
        browse_by_partition: true,
        browse_tail: true,
        fetch: true,
        publish,
        publish_is_confirmed: publish,
        publish_with_key: publish,
        publish_with_headers: publish,
        publish_with_duplicate_headers: publish,
        publish_with_null_body: publish,
        publish_with_empty_body: publish,
        publish_with_time: publish
            && config.is_none_or(|config| config.timestamps != "LogAppendTime"),
        publish_to_partition: publish,
        publish_atomically: publish,
        publish_max_bytes: config.and_then(TopicConfig::max_payload),
        purge: deletes,
        truncate: deletes,
        tombstone: publish && config.is_some_and(TopicConfig::compacts),
        ..Capability::default()
    }
}

/// Topics in which the brokers keep their own state; writing there would break the cluster.
pub(crate) fn is_internal(topic: &str) -> bool {
    [
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__cluster_metadata",
    ]
    .contains(&topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(cleanup: &str) -> TopicConfig {
        TopicConfig {
            cleanup: cleanup.to_owned(),
            retention: None,
            max_bytes: Some(1_000_000),
            timestamps: "CreateTime".to_owned(),
            min_in_sync: None,
            takes_dead_letters: false,
        }
    }

    #[test]
    fn deleting_and_tombstones_follow_the_policy() {
        for (cleanup, truncate, tombstone) in [
            ("delete", true, false),
            ("compact", false, true),
            ("compact,delete", true, true),
        ] {
            let can = capability("orders", Some(&config(cleanup)));
            assert_eq!(
                (can.truncate, can.purge, can.tombstone),
                (truncate, truncate, tombstone),
                "{cleanup}"
            );
        }
        assert!(!capability("orders", None).truncate);
        assert!(!capability("__consumer_offsets", Some(&config("delete"))).publish);
    }
}
