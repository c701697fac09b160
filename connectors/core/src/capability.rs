//! What a destination can do. Capability belongs to a destination, not to a broker: RabbitMQ's classic, quorum and stream
//! queues differ, as do SQS standard and FIFO queues.

/// How messages of a destination can be read without removing them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Browse {
    /// Not at all, for example a RabbitMQ exchange.
    #[default]
    None,
    /// By reading at an offset; it costs nobody anything.
    ByOffset,
    /// By borrowing: nobody else sees the message while it is held.
    ByLock,
}

/// Flags named verb, verb_with_variant or verb_max_size. The window enables and hides by them, the engine refuses before the
/// network by them, and the conformance suite picks its tests by them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capability {
    pub browse: Browse,
    /// A look can surely see every message (false for SQS, which has no cursor).
    pub browse_is_complete: bool,
    /// A look raises the count that the broker compares with a delivery limit.
    pub browse_counts_as_delivery: bool,
    pub browse_from_time: bool,
    pub browse_from_offset: bool,
    pub browse_by_partition: bool,
    /// New messages can be followed as they arrive.
    pub browse_tail: bool,
    /// Single positions can be read again ([`crate::Session::fetch`]).
    pub fetch: bool,
    /// A held message can be removed by its lock.
    pub settle_ack: bool,
    pub settle_release: bool,
    /// A held message can be sent to the destination's own dead-letter target.
    pub settle_dead_letter: bool,
    pub publish: bool,
    /// A publish is answered only when the broker stored it.
    pub publish_is_confirmed: bool,
    pub publish_with_key: bool,
    pub publish_with_headers: bool,
    /// Several headers may have the same name.
    pub publish_with_duplicate_headers: bool,
    /// A body may be null, which is not empty.
    pub publish_with_null_body: bool,
    pub publish_with_empty_body: bool,
    pub publish_with_time: bool,
    pub publish_to_partition: bool,
    /// A batch can be published wholly or not at all.
    pub publish_atomically: bool,
    /// Bytes of a message's body (SQS: with its attributes) that the destination takes.
    pub publish_max_bytes: Option<u64>,
    pub publish_max_headers: Option<u32>,
    /// Order is kept per group and a group stalls while one of its messages is held (SQS FIFO).
    pub order_per_group: bool,
    /// The broker can move all messages back by itself.
    pub redrive: bool,
    pub purge: bool,
    /// Everything before a position can be deleted (Kafka DeleteRecords).
    pub truncate: bool,
    /// A record with a null body removes the older ones of its key (Kafka compaction).
    pub tombstone: bool,
}
