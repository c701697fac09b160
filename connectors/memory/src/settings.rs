//! How queues, logs and exchanges are declared: the settings of real brokers that decide what looking costs and where dead
//! letters go.

use std::time::Duration;

use dlo_core::AddressKind;

/// Whose rules a queue follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// RabbitMQ's classic queue: no delivery count, given back in place.
    Classic,
    /// RabbitMQ's quorum queue as of 4.0: every return counts against the delivery limit.
    Quorum,
    /// SQS standard queue: every receive counts, messages come back when their visibility time-out ends.
    Standard,
    /// SQS FIFO queue: as standard, with groups in order and deduplication.
    Fifo,
}

impl QueueKind {
    /// True for the two of Amazon SQS.
    pub fn is_sqs(self) -> bool {
        matches!(self, Self::Standard | Self::Fifo)
    }

    /// The broker's own words for it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Classic => "classic queue",
            Self::Quorum => "quorum queue",
            Self::Standard => "standard queue",
            Self::Fifo => "FIFO queue",
        }
    }
}

/// Where a queue's dead letters go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetterTo {
    /// RabbitMQ's `x-dead-letter-exchange` and `x-dead-letter-routing-key`; the exchange `""` is the default one.
    Exchange {
        exchange: String,
        routing_key: Option<String>,
    },
    /// SQS's redrive policy: to that queue when it was received more often than this.
    Queue {
        queue: String,
        max_receive_count: u32,
    },
}

/// How a queue is declared. Begin with [`QueueSettings::classic`] and its siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    pub kind: QueueKind,
    pub dead_letter: Option<DeadLetterTo>,
    /// Returns after which a quorum queue dead-letters or drops a message.
    pub delivery_limit: Option<u32>,
    /// RabbitMQ's `x-message-ttl`, or the retention period of SQS (which deletes without dead-lettering).
    pub time_to_live: Option<Duration>,
    /// RabbitMQ's `x-max-length`: the oldest are dead-lettered as `maxlen`.
    pub max_length: Option<usize>,
    /// How long an ordinary consumer's receive hides a message (SQS), or how long it may stay unacknowledged (RabbitMQ).
    pub visibility: Duration,
    /// Consumers that are said to be there; looking warns of them.
    pub consumers: u32,
}

/// RabbitMQ's `consumer_timeout`: a channel that holds a message longer is closed.
const ACK_TIMEOUT: Duration = Duration::from_secs(30 * 60);

impl QueueSettings {
    fn of(kind: QueueKind) -> Self {
        Self {
            kind,
            dead_letter: None,
            delivery_limit: None,
            time_to_live: None,
            max_length: None,
            visibility: ACK_TIMEOUT,
            consumers: 0,
        }
    }

    pub fn classic() -> Self {
        Self::of(QueueKind::Classic)
    }

    /// A quorum queue with the default limit of RabbitMQ 4: 20 returns.
    pub fn quorum() -> Self {
        Self::of(QueueKind::Quorum).with_delivery_limit(20)
    }

    /// A standard queue with the default retention of 4 days and visibility time-out of 30 s.
    pub fn standard() -> Self {
        Self::of(QueueKind::Standard)
            .with_visibility(Duration::from_secs(30))
            .with_time_to_live(Duration::from_secs(4 * 86_400))
    }

    /// A FIFO queue with the same defaults.
    pub fn fifo() -> Self {
        Self {
            kind: QueueKind::Fifo,
            ..Self::standard()
        }
    }

    /// Dead letters go to an exchange (`""` for the default one), with this key instead of their own where it is given.
    pub fn with_dead_letter_exchange(
        mut self,
        exchange: impl Into<String>,
        routing_key: Option<&str>,
    ) -> Self {
        self.dead_letter = Some(DeadLetterTo::Exchange {
            exchange: exchange.into(),
            routing_key: routing_key.map(str::to_owned),
        });
        self
    }

    /// SQS's redrive policy.
    pub fn with_redrive(mut self, queue: impl Into<String>, max_receive_count: u32) -> Self {
        self.dead_letter = Some(DeadLetterTo::Queue {
            queue: queue.into(),
            max_receive_count,
        });
        self
    }

    pub fn with_delivery_limit(mut self, limit: u32) -> Self {
        self.delivery_limit = Some(limit);
        self
    }

    pub fn with_time_to_live(mut self, time: Duration) -> Self {
        self.time_to_live = Some(time);
        self
    }

    pub fn with_max_length(mut self, messages: usize) -> Self {
        self.max_length = Some(messages);
        self
    }

    pub fn with_visibility(mut self, time: Duration) -> Self {
        self.visibility = time;
        self
    }

    pub fn with_consumers(mut self, consumers: u32) -> Self {
        self.consumers = consumers;
        self
    }
}

/// Whether a log forgets by age or keeps the newest record of each key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cleanup {
    #[default]
    Delete,
    Compact,
}

/// How a log is declared: a Kafka topic, or a RabbitMQ stream (one partition, addressed as a queue).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    pub kind: AddressKind,
    pub partitions: i32,
    pub cleanup: Cleanup,
    pub retention: Option<Duration>,
    /// `max.message.bytes`.
    pub max_bytes: u64,
    /// What is configured to send its dead letters here, for example a connector or a consumer group.
    pub dead_letters_of: Vec<String>,
}

impl LogSettings {
    pub fn topic(partitions: i32) -> Self {
        Self {
            kind: AddressKind::Topic,
            partitions: partitions.max(1),
            cleanup: Cleanup::Delete,
            retention: Some(Duration::from_secs(7 * 86_400)),
            max_bytes: 1_048_588,
            dead_letters_of: Vec::new(),
        }
    }

    pub fn stream() -> Self {
        Self {
            kind: AddressKind::Queue,
            partitions: 1,
            retention: None,
            max_bytes: 16 << 20,
            ..Self::topic(1)
        }
    }

    pub fn compacted(mut self) -> Self {
        self.cleanup = Cleanup::Compact;
        self.retention = None;
        self
    }

    pub fn with_retention(mut self, time: Duration) -> Self {
        self.retention = Some(time);
        self
    }

    pub fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    pub fn with_dead_letters_of(mut self, source: impl Into<String>) -> Self {
        self.dead_letters_of.push(source.into());
        self
    }
}

/// How an exchange chooses its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    Direct,
    Topic,
    Fanout,
}
