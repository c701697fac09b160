//! A queue, topic, exchange or subscription with the facts a person decides by.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Capability, Figure, LookCost, Millis};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressKind {
    Queue,
    Topic,
    Exchange,
    Subscription,
}

/// The name of a destination. Names are the broker's: a queue name, a topic name, for SQS the queue's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    pub kind: AddressKind,
    pub name: String,
}

impl Address {
    pub fn queue(name: impl Into<String>) -> Self {
        Self {
            kind: AddressKind::Queue,
            name: name.into(),
        }
    }

    pub fn topic(name: impl Into<String>) -> Self {
        Self {
            kind: AddressKind::Topic,
            name: name.into(),
        }
    }

    pub fn exchange(name: impl Into<String>) -> Self {
        Self {
            kind: AddressKind::Exchange,
            name: name.into(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Whether a destination holds dead letters, and how we know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeadLetters {
    #[default]
    No,
    Yes(Evidence),
}

/// Why we think that a destination holds dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The broker's configuration says so; the text names what, for example `x-dead-letter-exchange of orders`.
    Configuration(String),
    /// Messages in it carry dead-letter marks.
    Headers(String),
    /// Only its name looks like it: a hint.
    Name,
}

/// One partition of a topic (Kafka), or the one log of a stream (partition 0).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    pub id: i32,
    /// The first offset that is still there.
    pub log_start: i64,
    /// The offset after the last record.
    pub high_watermark: i64,
    /// The end of what committed transactions and plain records reach; `None` where unknown.
    pub last_stable: Option<i64>,
    pub leader: Option<i32>,
}

/// A consumer group's progress on one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupLag {
    pub partition: i32,
    pub committed: Option<i64>,
    /// Records between the committed offset and the end.
    pub lag: Option<i64>,
}

/// Who reads a topic, and how far they have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerGroup {
    pub name: String,
    /// In the broker's words, for example `Stable` or `Empty`.
    pub state: String,
    pub members: Option<u32>,
    pub lags: Vec<GroupLag>,
}

/// A destination with its facts, as far as they could be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub address: Address,
    /// What it is in the broker's words, for example `quorum queue`, `FIFO queue`, `topic`.
    pub label: String,
    pub dead_letters: DeadLetters,
    /// The destinations whose dead letters come here.
    pub sources: Vec<String>,
    /// Where its own dead letters go.
    pub dead_letters_to: Option<String>,
    /// Messages that wait: ready (RabbitMQ), visible (SQS), between log start and end (Kafka).
    pub depth: Figure<u64>,
    /// Messages held by somebody at the moment.
    pub in_flight: Figure<u64>,
    pub delayed: Figure<u64>,
    pub consumers: Figure<u64>,
    /// Time of the oldest message.
    pub oldest: Figure<Millis>,
    /// When the first message expires.
    pub expires: Figure<Millis>,
    /// How long messages are kept.
    pub retention: Option<Duration>,
    pub capability: Capability,
    pub partitions: Vec<Partition>,
    pub groups: Vec<ConsumerGroup>,
    /// Further facts in the broker's words and in a good order for showing: `("delivery limit", "20")`.
    pub facts: Vec<(String, String)>,
    /// What looking costs here with default settings.
    pub look: LookCost,
}

impl Destination {
    /// A destination of which nothing is known yet.
    pub fn new(address: Address, label: impl Into<String>) -> Self {
        Self {
            address,
            label: label.into(),
            dead_letters: DeadLetters::No,
            sources: Vec::new(),
            dead_letters_to: None,
            depth: Figure::unknown(),
            in_flight: Figure::unknown(),
            delayed: Figure::unknown(),
            consumers: Figure::unknown(),
            oldest: Figure::unknown(),
            expires: Figure::unknown(),
            retention: None,
            capability: Capability::default(),
            partitions: Vec::new(),
            groups: Vec::new(),
            facts: Vec::new(),
            look: LookCost::default(),
        }
    }

    pub fn holds_dead_letters(&self) -> bool {
        self.dead_letters != DeadLetters::No
    }
}

/// True when a name looks like one that people and frameworks give to dead-letter destinations. Only a hint.
pub fn name_looks_dead(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts: Vec<&str> = name.split(['.', '-', '_', ':', '/']).collect();
    let words = [
        "dlq",
        "dlt",
        "dlx",
        "dead",
        "deadletter",
        "deadletters",
        "poison",
        "skipped",
        "xq",
    ];
    parts.iter().any(|part| words.contains(part))
        || ["dead-letter", "dead_letter", "deadletter"]
            .iter()
            .any(|text| name.contains(text))
        || parts.first() == Some(&"error")
        || parts
            .last()
            .is_some_and(|last| ["error", "errors"].contains(last))
        || name.ends_with("dlq")
}

#[cfg(test)]
mod tests {
    use super::name_looks_dead;

    #[test]
    fn names_of_frameworks_are_recognised_and_plain_ones_are_not() {
        for name in [
            "orders.dlq",
            "orders-dlt",
            "orders.DLT",
            "error.orders.group",
            "dead-letter-topic-in",
            "dlq.orders",
            "orders_error",
            "orders_skipped",
            "error",
            "default.XQ",
            "EasyNetQ_Default_Error",
            "wolverine-dead-letter-queue",
            "ActiveMQ.DLQ",
            "OrdersDLQ",
        ] {
            assert!(name_looks_dead(name), "{name}");
        }
        for name in ["orders", "deadline", "terrors", "audit.copy", "mirror"] {
            assert!(!name_looks_dead(name), "{name}");
        }
    }
}
