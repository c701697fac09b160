//! Getting messages out of a queue without losing count of one.
//!
//! Separate because this is where order and completeness are decided. Messages are taken in windows: set the prefetch, consume,
//! receive that many, cancel, all on one channel, and hold everything. The cancel's answer proves that nothing is still on
//! its way, so a window is complete; and while no consumer is live, a settled message cannot make the broker push another
//! one past the limit of the look. Windows of one channel keep the queue's order when they are given back together.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use dlo_core::{Error, ErrorKind, Figure, Follow, Lock, Millis, Position, Result, Value};
use futures::{FutureExt, StreamExt};
use lapin::{
    Consumer,
    message::Delivery as Raw,
    options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    connect::answer,
    look::{Inner, State},
    values,
    version::GiveBack,
};

/// The most messages of one window, and the most bytes, so that a queue of large messages cannot fill the memory.
pub(crate) const WINDOW: usize = 5000;
const WINDOW_BYTES: u64 = 32 << 20;
/// As many are taken first when nobody knows how large they are.
const FIRST_WINDOW: usize = 500;
/// How long the next message of a window may take before the queue is counted again.
const IDLE: Duration = Duration::from_millis(300);
const FIRST_IDLE: Duration = Duration::from_secs(1);
/// After so many windows without a message, somebody else gets what is ready.
const PATIENCE: u32 = 3;

/// How the consumers of a look are called, before a number.
pub(crate) const LOOK_TAG: &str = "dlo-";
const DELIVERY_COUNT: &str = "x-delivery-count";
/// The counts that a quorum queue writes among a message's headers.
pub(crate) const QUORUM_COUNTS: &[&str] = &[DELIVERY_COUNT, "x-acquired-count"];

/// A live consumer.
pub(crate) struct Window {
    consumer: Consumer,
    size: usize,
    received: usize,
}

/// What one step of taking came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Took,
    /// Nothing is there at the moment.
    Waiting,
    End,
    Cancelled,
}

impl Inner {
    /// Receives what is there, opening and closing windows as needed.
    pub async fn step(&self, state: &mut State, cancel: &CancellationToken) -> Result<Step> {
        if state.window.is_none() {
            match self.room(state).await? {
                0 if self.rules.follow == Follow::Tail && state.next_index < self.rules.most => {
                    return Ok(wait_for_more(cancel).await);
                }
                0 => return Ok(Step::End),
                room => self.open_window(state, room).await?,
            }
        }
        self.receive(state, cancel).await
    }

    /// How many messages may be taken now; none when the look's limit or the queue's end is reached.
    async fn room(&self, state: &mut State) -> Result<u64> {
        let left = match state.reach {
            0 => self.rules.most.saturating_sub(state.next_index),
            reach => reach.saturating_sub(state.taken),
        };
        if left == 0 {
            return self.room_for_copies(state).await;
        }
        if state.ready == 0 {
            state.ready = self.count_ready().await?;
            if state.opened.is_none() {
                state.opened = Some(Instant::now());
                state.total = Figure::about(state.ready);
            }
        }
        if state.empty_windows >= PATIENCE {
            state.notes.push(format!(
                "{} messages are ready but none was delivered: another consumer gets them.",
                state.ready
            ));
            return Ok(0);
        }
        Ok(left.min(state.ready))
    }

    /// When the limit is reached and nothing but our own copies is left, they are taken so that their rows can be settled.
    async fn room_for_copies(&self, state: &mut State) -> Result<u64> {
        let copies = state.rescued.waiting() as u64;
        if copies == 0 || state.empty_windows > 0 {
            return Ok(0);
        }
        state.ready = self.count_ready().await?;
        Ok(if state.ready <= copies {
            state.ready
        } else {
            0
        })
    }

    /// Ready messages at this moment, which leaves out what this look holds.
    pub async fn count_ready(&self) -> Result<u64> {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let declared = self.channel.queue_declare(
            self.rules.queue.as_str().into(),
            options,
            FieldTable::default(),
        );
        let queue = answer("count the queue's messages", declared).await?;
        Ok(queue.message_count().into())
    }

    async fn open_window(&self, state: &mut State, room: u64) -> Result<()> {
        let size = self
            .window_size(state)
            .min(usize::try_from(room).unwrap_or(WINDOW))
            .max(1);
        self.set_prefetch(size).await?;
        state.windows += 1;
        // The broker gives messages back consumer by consumer, in the order of the consumers' names.
        let tag = format!("{LOOK_TAG}{:010}", state.windows);
        let consuming = self.channel.basic_consume(
            self.rules.queue.as_str().into(),
            tag.as_str().into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        let consumer = answer("look at the queue", consuming).await?;
        state.window = Some(Window {
            consumer,
            size,
            received: 0,
        });
        Ok(())
    }

    /// A round trip on the look's channel: when it is answered, the broker has read everything before it.
    pub async fn set_prefetch(&self, size: usize) -> Result<()> {
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        answer(
            "set the prefetch",
            self.channel.basic_qos(size, BasicQosOptions::default()),
        )
        .await
    }

    fn window_size(&self, state: &State) -> usize {
        let average = match state.next_index {
            0 => self.rules.average_bytes,
            taken => Some(state.bytes_seen / taken),
        };
        let by_bytes = average.map_or(FIRST_WINDOW, |average| {
            usize::try_from(WINDOW_BYTES / average.max(1)).unwrap_or(WINDOW)
        });
        by_bytes.min(state.ramp.unwrap_or(WINDOW)).clamp(1, WINDOW)
    }

    async fn receive(&self, state: &mut State, cancel: &CancellationToken) -> Result<Step> {
        let Some(window) = state.window.as_mut() else {
            return Ok(Step::Waiting);
        };
        let idle = if window.received == 0 {
            FIRST_IDLE
        } else {
            IDLE
        };
        let next = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(Step::Cancelled),
            next = timeout(idle, window.consumer.next()) => next,
        };
        match next {
            Ok(Some(delivery)) => {
                let mut next = Some(delivery);
                while let Some(delivery) = next {
                    let delivery =
                        delivery.map_err(|error| crate::error::of("look at the queue", &error))?;
                    window.received += 1;
                    state.raw.push_back(delivery);
                    next = window.consumer.next().now_or_never().flatten();
                }
                self.took(state).await?;
                Ok(Step::Took)
            }
            Ok(None) => Err(Error::new(
                ErrorKind::NotFound,
                "look at the queue",
                "the broker ended the look; the queue was deleted or moved",
            )),
            Err(_) => {
                let received = window.received;
                self.close_window(state).await?;
                state.empty_windows = if received == 0 {
                    state.empty_windows + 1
                } else {
                    0
                };
                self.examine(state).await?;
                state.ready = 0;
                Ok(Step::Waiting)
            }
        }
    }

    async fn took(&self, state: &mut State) -> Result<()> {
        state.empty_windows = 0;
        let full = state
            .window
            .as_ref()
            .is_some_and(|window| window.received >= window.size);
        let risky = state
            .raw
            .iter()
            .any(|raw| self.is_deadly(delivery_count(raw)));
        if full || risky {
            self.close_window(state).await?;
        }
        self.examine(state).await
    }

    /// Ends the live consumer and takes in what was still on its way.
    pub async fn close_window(&self, state: &mut State) -> Result<()> {
        let Some(mut window) = state.window.take() else {
            return Ok(());
        };
        let cancelling = self
            .channel
            .basic_cancel(window.consumer.tag(), BasicCancelOptions::default());
        answer("end the look's consumer", cancelling).await?;
        while let Ok(Some(delivery)) = timeout(FIRST_IDLE, window.consumer.next()).await {
            let delivery =
                delivery.map_err(|error| crate::error::of("look at the queue", &error))?;
            window.received += 1;
            state.raw.push_back(delivery);
        }
        state.ready = state.ready.saturating_sub(window.received as u64);
        state.ramp = state.ramp.map(|ramp| self.steeper(ramp, window.received));
        Ok(())
    }

    /// The next window may be larger when the whole of this one was harmless. A deadly one sets it back to 1 (see `examine`).
    fn steeper(&self, ramp: usize, received: usize) -> usize {
        if received < ramp {
            return ramp;
        }
        let factor = match self.rules.give_back {
            GiveBack::Nack => 2,
            GiveBack::CloseChannel => 16,
        };
        (ramp * factor).min(self.rules.careful_window)
    }

    /// Makes rows of what was received; rescues what a return would destroy.
    pub async fn examine(&self, state: &mut State) -> Result<()> {
        while let Some(raw) = state.raw.pop_front() {
            let count = delivery_count(&raw);
            state.taken += 1;
            state.highest_count = state.highest_count.max(count.unwrap_or_default());
            if raw.delivery_tag == state.seen_through + 1 {
                state.seen_through += 1;
            }
            state.bytes_seen += raw.data.len() as u64;
            if self.is_deadly(count) {
                state.ramp = Some(1);
                self.rescue(state, raw).await?;
            } else {
                self.hold(state, raw);
            }
        }
        Ok(())
    }

    /// Whether a lost connection of ours would make the broker act on the message.
    fn is_deadly(&self, count: Option<u64>) -> bool {
        let limit = self.rules.limit;
        count.is_some_and(|count| limit.is_some_and(|limit| count + 1 > limit))
    }

    fn hold(&self, state: &mut State, raw: Raw) {
        let tag = raw.delivery_tag;
        state.held.insert(tag);
        let lock = Lock::new(tag.to_string());
        let delivery = to_delivery(
            raw,
            Position::Index {
                index: state.next_index,
            },
            Some(lock.clone()),
            self.rules.brokers_own,
        );
        if let Some(row) = state.rescued.meet(&delivery.message) {
            state.locks.insert(row, Some(tag));
            return;
        }
        state.locks.insert(lock, Some(tag));
        self.push_row(state, delivery);
    }

    /// Hands the message out, unless the look has reached its limit or asks for other places only.
    pub fn push_row(&self, state: &mut State, delivery: dlo_core::Delivery) {
        if state.next_index >= self.rules.most {
            return;
        }
        let index = state.next_index;
        state.next_index += 1;
        let wanted = self.rules.wanted.as_ref();
        if wanted.is_none_or(|wanted| wanted.contains(&index)) {
            state.rows.push_back(delivery);
        }
    }
}

/// A delivery as the project speaks of it. The broker's own counts, which stand among the headers under these names, are
/// facts of the delivery and not of the message.
pub(crate) fn to_delivery(
    raw: Raw,
    position: Position,
    lock: Option<Lock>,
    brokers_own: &[&str],
) -> dlo_core::Delivery {
    let count = delivery_count(&raw).filter(|_| brokers_own.contains(&DELIVERY_COUNT));
    let seconds = raw
        .properties
        .timestamp()
        .and_then(|seconds| i64::try_from(seconds).ok());
    let mut message = values::to_message(&raw.properties, raw.data);
    let mut facts = BTreeMap::from([
        ("exchange".to_owned(), Value::text(raw.exchange.as_str())),
        (
            "routing_key".to_owned(),
            Value::text(raw.routing_key.as_str()),
        ),
        ("redelivered".to_owned(), Value::Bool(raw.redelivered)),
    ]);
    for header in message
        .headers
        .extract_if(.., |header| brokers_own.contains(&header.name.as_str()))
    {
        facts.insert(header.name, header.typed.value);
    }
    dlo_core::Delivery {
        message,
        position,
        lock,
        time: seconds
            .and_then(|seconds| seconds.checked_mul(1000))
            .map(Millis),
        delivery_count: count,
        facts,
    }
}

/// How often the broker says it delivered the message in vain (`x-delivery-count`, quorum queues).
pub(crate) fn delivery_count(raw: &Raw) -> Option<u64> {
    let headers = raw.properties.headers().as_ref()?;
    match headers.inner().get(DELIVERY_COUNT)? {
        AMQPValue::LongLongInt(count) => u64::try_from(*count).ok(),
        AMQPValue::LongInt(count) => u64::try_from(*count).ok(),
        AMQPValue::LongUInt(count) => Some((*count).into()),
        _ => None,
    }
}

/// A queue has no event for "something arrived" while no consumer is live.
async fn wait_for_more(cancel: &CancellationToken) -> Step {
    tokio::select! {
        () = cancel.cancelled() => Step::Cancelled,
        () = tokio::time::sleep(IDLE) => Step::Waiting,
    }
}
