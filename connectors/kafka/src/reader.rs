//! A consumer that reads assigned partitions and belongs to no group.

use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

use dlo_core::{Error, ErrorKind, Isolation, Result};
use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer, base_consumer::PartitionQueue},
    error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code},
    message::BorrowedMessage,
};

use crate::{
    client::Voice,
    config::Settings,
    error::{cause, from_code, from_kafka},
};

/// The queue of one partition, split off from the reader's common one.
pub(crate) type Partition = PartitionQueue<Voice>;

/// How long nothing may come before the broker is asked whether it is still there.
const SUSPICIOUS: Duration = Duration::from_secs(12);
/// How long nothing may come although more is there and the broker answers.
const HOPELESS: Duration = Duration::from_secs(60);

/// What the consumer gave.
pub(crate) enum Event<'a> {
    Record(BorrowedMessage<'a>),
    /// The partition has no more at the moment.
    End(i32),
    /// Nothing came within the time.
    Quiet,
}

/// Whether silence is a sign that something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    Normal,
    Suspicious,
}

pub(crate) struct Reader {
    consumer: Arc<BaseConsumer<Voice>>,
    /// When something last came, or the broker last proved to be alive.
    alive: Cell<Instant>,
    /// When something last came.
    fed: Cell<Instant>,
}

impl Reader {
    pub(crate) fn new(settings: &Settings, isolation: Isolation) -> Result<Self> {
        Self::with_queues(settings, isolation, 1)
    }

    /// A reader whose partitions may be split into so many queues; together they hold what the common one would.
    pub(crate) fn with_queues(
        settings: &Settings,
        isolation: Isolation,
        queues: usize,
    ) -> Result<Self> {
        let consumer = settings
            .reading(isolation, queues)
            .create_with_context(settings.voice())
            .map_err(|error| from_kafka(&error, "look"))?;
        Ok(Self {
            consumer: Arc::new(consumer),
            alive: Cell::new(Instant::now()),
            fed: Cell::new(Instant::now()),
        })
    }

    /// Reads these partitions from these offsets on; what was assigned before is dropped with all that was prefetched.
    pub(crate) fn assign(&self, topic: &str, starts: &[(i32, i64)]) -> Result<()> {
        let mut list = TopicPartitionList::with_capacity(starts.len());
        for (partition, offset) in starts {
            list.add_partition_offset(topic, *partition, Offset::Offset(*offset))
                .map_err(|error| from_kafka(&error, "look"))?;
        }
        self.rest();
        self.consumer
            .assign(&list)
            .map_err(|error| from_kafka(&error, "look"))
    }

    /// A queue of its own for a partition that is not assigned yet; its records and its end come only there.
    pub(crate) fn split(&self, topic: &str, partition: i32) -> Result<Partition> {
        self.consumer
            .split_partition_queue(topic, partition)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Unexpected,
                    "look",
                    format!("partition {partition} has no queue in the client"),
                )
            })
    }

    /// Stops reading everything.
    pub(crate) fn release(&self) {
        let _ = self.consumer.unassign();
    }

    /// Stops fetching a partition that is done, so that its further records do not fill the queue. It stays paused, also
    /// when it is assigned again, so this is only for a reader that will not be used for it any more.
    pub(crate) fn pause(&self, topic: &str, partition: i32) {
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        // A partition that cannot be paused only costs bandwidth.
        let _ = self.consumer.pause(&list);
    }

    /// The next event, within `wait`.
    ///
    /// # Errors
    /// What the broker refuses; `Unreachable` when nothing has come for long and the broker does not answer.
    pub(crate) fn next(&self, wait: Duration, silence: Silence) -> Result<Event<'_>> {
        self.event(self.consumer.poll(wait), silence)
    }

    /// As [`Reader::next`], of a partition that was split off.
    pub(crate) fn next_of<'a>(
        &self,
        partition: &'a Partition,
        wait: Duration,
        silence: Silence,
    ) -> Result<Event<'a>> {
        self.event(partition.poll(wait), silence)
    }

    fn event<'a>(
        &self,
        polled: Option<KafkaResult<BorrowedMessage<'a>>>,
        silence: Silence,
    ) -> Result<Event<'a>> {
        match polled {
            Some(Ok(message)) => {
                self.rest();
                Ok(Event::Record(message))
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                self.rest();
                Ok(Event::End(partition))
            }
            Some(Err(error)) => match error.rdkafka_error_code() {
                Some(code) if passes(code) => self.quiet(silence),
                Some(code) => Err(self.explain(code)),
                None => Err(from_kafka(&error, "look")),
            },
            None => self.quiet(silence),
        }
    }

    fn rest(&self) {
        let now = Instant::now();
        self.alive.set(now);
        self.fed.set(now);
    }

    fn quiet<'a>(&self, silence: Silence) -> Result<Event<'a>> {
        if self.alive.get().elapsed() < SUSPICIOUS {
            return Ok(Event::Quiet);
        }
        match self.consumer.fetch_metadata(None, Duration::from_secs(3)) {
            Ok(_) => self.alive.set(Instant::now()),
            Err(error) => {
                let found = cause(&self.consumer.context().heard(), "look");
                return Err(found.unwrap_or_else(|| from_kafka(&error, "look")));
            }
        }
        if silence == Silence::Suspicious && self.fed.get().elapsed() > HOPELESS {
            return Err(Error::new(
                ErrorKind::Unreachable,
                "look",
                "the broker has more records but sent none for a minute",
            )
            .advise("Check the broker that leads the partition, and try again."));
        }
        Ok(Event::Quiet)
    }

    fn explain(&self, code: Code) -> Error {
        let heard = self.consumer.context().heard();
        match code {
            Code::Authentication | Code::SSL | Code::Resolve => {
                cause(&heard, "look").unwrap_or_else(|| from_code(code, "look", ""))
            }
            _ => from_code(code, "look", ""),
        }
    }
}

/// Errors that pass by themselves (a leader that moves, a broker that restarts), or that do not matter without a group.
fn passes(code: Code) -> bool {
    matches!(
        code,
        Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::OperationTimedOut
            | Code::RequestTimedOut
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::BrokerNotAvailable
            | Code::NetworkException
            | Code::GroupAuthorizationFailed
            | Code::CoordinatorNotAvailable
            | Code::CoordinatorLoadInProgress
            | Code::NotCoordinator
            | Code::OffsetNotAvailable
            | Code::FencedLeaderEpoch
            | Code::UnknownLeaderEpoch
            | Code::AutoOffsetReset
    )
}
