//! Publishing: what goes out, where to, and the broker's answer.

use crate::{Address, Message, Millis, Position};

/// Which partition a message goes to. Brokers without partitions ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Partitioning {
    /// By the key, as Java's default partitioner does it (murmur2); without a key by the broker's choice.
    #[default]
    ByKey,
    Exact(i32),
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub address: Address,
    /// The AMQP routing key when the address is an exchange. For a queue it is not used: the message goes to that queue alone.
    pub routing_key: Option<String>,
    pub partitioning: Partitioning,
}

impl Target {
    pub fn new(address: Address) -> Self {
        Self {
            address,
            routing_key: None,
            partitioning: Partitioning::ByKey,
        }
    }
}

/// One message on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub target: Target,
    pub message: Message,
    /// The message's own time where the broker lets a publisher set it (Kafka); `None` is now.
    pub time: Option<Millis>,
}

/// How a batch is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atomicity {
    /// Each message by itself.
    #[default]
    Each,
    /// All or none, in one transaction. Needs [`crate::Capability::publish_atomically`].
    All,
}

/// The broker's word that it has stored a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Where it is now, where the broker tells (Kafka: partition and offset; SQS: message id).
    pub position: Option<Position>,
    /// The broker's answer in words, for the record, for example `confirmed` or `sequence number 188…`.
    pub answer: String,
}

/// Who would get a message published to a target, as far as it can be found out without publishing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// False when the address is known not to exist.
    pub exists: bool,
    /// Queues, consumer groups or subscriptions that would get it.
    pub reaches: Vec<String>,
    /// True when `reaches` is known to be all of them.
    pub complete: bool,
    /// What a person should know: a missing permission, a full queue. Sentences.
    pub notes: Vec<String>,
}
