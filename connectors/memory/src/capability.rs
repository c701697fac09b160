//! What each kind of destination can do, as the brokers that they are shaped like.

use dlo_core::{AddressKind, Browse, Capability};

use crate::{
    Cleanup, DeadLetterTo, LogSettings, QueueKind, QueueSettings,
    arrive::{AMQP_MAX_BYTES, SQS_MAX_BYTES, SQS_MAX_HEADERS},
};

pub(crate) fn of_queue(settings: &QueueSettings) -> Capability {
    if settings.kind.is_sqs() {
        of_sqs(settings.kind)
    } else {
        of_rabbitmq(settings)
    }
}

fn of_rabbitmq(settings: &QueueSettings) -> Capability {
    let has_target = matches!(settings.dead_letter, Some(DeadLetterTo::Exchange { .. }));
    Capability {
        browse: Browse::ByLock,
        browse_is_complete: true,
        browse_counts_as_delivery: settings.kind == QueueKind::Quorum,
        browse_tail: true,
        settle_ack: true,
        settle_release: true,
        settle_dead_letter: has_target,
        purge: true,
        publish_max_bytes: Some(AMQP_MAX_BYTES),
        publish_with_empty_body: true,
        ..publishing()
    }
}

fn of_sqs(kind: QueueKind) -> Capability {
    Capability {
        browse: Browse::ByLock,
        browse_counts_as_delivery: true,
        settle_ack: true,
        settle_release: true,
        purge: true,
        order_per_group: kind == QueueKind::Fifo,
        publish_max_bytes: Some(SQS_MAX_BYTES),
        publish_max_headers: Some(SQS_MAX_HEADERS),
        ..publishing()
    }
}

pub(crate) fn of_log(settings: &LogSettings) -> Capability {
    let is_topic = settings.kind == AddressKind::Topic;
    Capability {
        browse: Browse::ByOffset,
        browse_is_complete: true,
        browse_from_time: true,
        browse_from_offset: true,
        browse_by_partition: is_topic,
        browse_tail: true,
        fetch: true,
        publish_with_key: is_topic,
        publish_with_duplicate_headers: is_topic,
        publish_with_null_body: is_topic,
        publish_with_empty_body: true,
        publish_with_time: is_topic,
        publish_to_partition: is_topic,
        publish_atomically: is_topic,
        publish_max_bytes: Some(settings.max_bytes),
        truncate: is_topic && settings.cleanup == Cleanup::Delete,
        tombstone: is_topic && settings.cleanup == Cleanup::Compact,
        ..publishing()
    }
}

pub(crate) fn of_exchange() -> Capability {
    Capability {
        publish_max_bytes: Some(AMQP_MAX_BYTES),
        publish_with_empty_body: true,
        ..publishing()
    }
}

/// What all of them have in common.
fn publishing() -> Capability {
    Capability {
        publish: true,
        publish_is_confirmed: true,
        publish_with_headers: true,
        ..Capability::default()
    }
}
