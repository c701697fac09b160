//! What a queue can do.

use dlo_core::{Browse, Capability};

use crate::{check::MAX_ATTRIBUTES, queue::Queue};

/// Whether AWS would move this queue's messages back: only a dead-letter queue of SQS queues.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Movable {
    Yes,
    No,
}

pub(crate) fn of(queue: &Queue, movable: Movable) -> Capability {
    Capability {
        browse: Browse::ByLock,
        browse_is_complete: false,
        browse_counts_as_delivery: true,
        settle_ack: true,
        settle_release: true,
        publish: true,
        publish_is_confirmed: true,
        publish_with_headers: true,
        publish_max_bytes: Some(queue.max_bytes),
        publish_max_headers: u32::try_from(MAX_ATTRIBUTES).ok(),
        order_per_group: queue.is_fifo(),
        redrive: movable == Movable::Yes,
        purge: true,
        ..Capability::default()
    }
}
