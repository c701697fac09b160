//! Looking at a classic or quorum queue: borrow, show, give back once.
//!
//! Separate from the session because a look has a connection of its own: what goes wrong on it cannot disturb a publish, and
//! closing it returns exactly what this look holds. The parts are [`crate::take`] (getting messages), [`crate::rescue`] (those
//! that a return would destroy) and [`crate::settle`] (acks and the giving back).

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use dlo_core::{
    Delivery, Disposition, Error, ErrorKind, Figure, Follow, Hold, Keeper, Lock, Look, Millis,
    Page, Result, Returned, Scan,
};
use lapin::{Channel, Connection};
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use crate::{
    rescue::Rescued,
    take::{Step, Window},
    version::GiveBack,
};

/// A page is handed out after this long even if it is not full, so that rows appear while slow rescues go on.
const PATIENCE: Duration = Duration::from_millis(250);

/// What the look has to keep to; fixed when it is opened.
#[derive(Debug)]
pub(crate) struct Rules {
    pub queue: String,
    pub give_back: GiveBack,
    /// The delivery limit, when the queue has one.
    pub limit: Option<u64>,
    /// Headers that are the broker's counts and not part of the message.
    pub brokers_own: &'static [&'static str],
    /// The most messages taken at once while some may die of being returned.
    pub careful_window: usize,
    /// Whether a rescue can work: the user may publish to the queue.
    pub can_rescue: bool,
    pub has_dead_letter_exchange: bool,
    /// When the broker would take the messages back by closing the channel.
    pub hold_for: Duration,
    pub most: u64,
    /// How many messages earlier looks returned, where a later look must take as many to keep the order.
    pub returned_before: u64,
    pub follow: Follow,
    /// Only these places are shown; the others are held all the same.
    pub wanted: Option<BTreeSet<u64>>,
    pub keeper: Arc<dyn Keeper>,
    /// Bytes of a message on average, as far as known before the look.
    pub average_bytes: Option<u64>,
}

/// Told when a look ends: how often its messages have now been returned, and how many there were.
pub(crate) type AfterReturn = Box<dyn Fn(u64, u64) + Send + Sync>;

/// An open look. Dropping it gives the messages back in the background.
pub(crate) struct LockLook {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub rules: Rules,
    pub connection: Connection,
    pub channel: Channel,
    pub state: AsyncMutex<State>,
    pub summary: Mutex<Summary>,
    pub after_return: AfterReturn,
}

/// What [`Look::hold`] tells without waiting for anybody.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    pub messages: u64,
    pub since: Option<Millis>,
}

/// What changes while the look is open.
#[derive(Default)]
pub(crate) struct State {
    /// The live consumer, while there is one.
    pub window: Option<Window>,
    /// How many windows there were: names the consumers in an order the broker keeps.
    pub windows: u64,
    /// Ready messages at the last count, less what was taken since.
    pub ready: u64,
    /// The most to take at once while counts are being learned; `None` when nothing can go wrong.
    pub ramp: Option<usize>,
    /// Received, and not yet examined.
    pub raw: VecDeque<lapin::message::Delivery>,
    /// Examined, and not yet handed out.
    pub rows: VecDeque<Delivery>,
    /// The delivery tag of every lock; `None` for a rescued message whose copy was not met yet.
    pub locks: HashMap<Lock, Option<u64>>,
    pub held: BTreeSet<u64>,
    /// All delivery tags up to this one were seen, so an ack of all of them touches no stranger.
    pub seen_through: u64,
    pub next_index: u64,
    /// Messages taken out of the queue so far, shown or not.
    pub taken: u64,
    /// How many are to be taken while the look is being closed; 0 before that.
    pub reach: u64,
    pub rescued: Rescued,
    /// The channel on which copies of rescued messages are published.
    pub copies: Option<Channel>,
    /// The highest delivery count seen.
    pub highest_count: u64,
    pub bytes_seen: u64,
    /// Windows in a row that brought nothing although messages were ready.
    pub empty_windows: u32,
    pub opened: Option<Instant>,
    pub settled_at: Option<Instant>,
    pub notes: Vec<String>,
    pub total: Figure<u64>,
    pub at_end: bool,
    pub finished: Option<Finished>,
}

/// How the look ended.
#[derive(Clone, Debug)]
pub(crate) enum Finished {
    Closed,
    Lost(Error),
}

impl LockLook {
    pub fn new(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        return_in_time(&inner);
        Self { inner }
    }
}

#[async_trait]
impl Look for LockLook {
    async fn next(&self, max: usize, cancel: &CancellationToken) -> Result<Page> {
        let inner = &self.inner;
        let (max, started) = (max.max(1), Instant::now());
        loop {
            let mut state = inner.state.lock().await;
            match &state.finished {
                Some(Finished::Closed) => return Ok(ended()),
                Some(Finished::Lost(error)) => return Err(error.clone()),
                None => {}
            }
            let patient = started.elapsed() < PATIENCE;
            if state.rows.len() >= max || state.at_end || (!patient && !state.rows.is_empty()) {
                return Ok(state.page(max));
            }
            match inner.step(&mut state, cancel).await {
                Ok(Step::Took) => {}
                Ok(Step::Waiting) if !state.rows.is_empty() => return Ok(state.page(max)),
                Ok(Step::Waiting) => {}
                Ok(Step::End) => state.at_end = true,
                Ok(Step::Cancelled) if !state.rows.is_empty() => return Ok(state.page(max)),
                Ok(Step::Cancelled) => return Err(Error::cancelled("look at the queue")),
                Err(error) => return Err(inner.note_failure(&mut state, error)),
            }
            inner.summarise(&state);
        }
    }

    async fn settle(&self, locks: &[Lock], how: Disposition) -> Vec<Result<()>> {
        let mut state = self.inner.state.lock().await;
        let answers = self.inner.settle(&mut state, locks, how).await;
        self.inner.summarise(&state);
        answers
    }

    /// AMQP cannot extend a hold: the broker's `consumer_timeout` runs from the delivery. What can be said is whether the
    /// connection that holds still stands.
    async fn extend(&self) -> Result<Option<Hold>> {
        let held = lock(&self.inner.summary).messages;
        if held > 0 && !self.inner.is_connected() {
            return Err(Error::new(
                ErrorKind::LockLost,
                "hold the messages",
                "the connection was lost, and the messages are back in the queue",
            )
            .with("queue", self.inner.rules.queue.clone())
            .advise("Look again when the broker answers."));
        }
        Ok(self.hold())
    }

    fn hold(&self) -> Option<Hold> {
        if !self.inner.is_connected() {
            return None;
        }
        let summary = *lock(&self.inner.summary);
        let since = summary.since.filter(|_| summary.messages > 0)?;
        let millis = i64::try_from(self.inner.rules.hold_for.as_millis()).unwrap_or(i64::MAX);
        Some(Hold {
            messages: summary.messages,
            until: since.plus(millis),
            at_most_until: Some(since.plus(millis)),
        })
    }

    async fn close(&self) -> Result<Returned> {
        Ok(self.inner.close().await)
    }
}

impl Drop for LockLook {
    fn drop(&mut self) {
        let inner = Arc::clone(&self.inner);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { inner.close().await });
        }
    }
}

impl fmt::Debug for LockLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockLook")
            .field("queue", &self.inner.rules.queue)
            .field("hold", &self.hold())
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Whether what was taken is still held.
    fn is_connected(&self) -> bool {
        self.channel.status().connected() && self.connection.status().connected()
    }

    /// A lost connection ends the look: what it held is in the queue again.
    pub fn note_failure(&self, state: &mut State, error: Error) -> Error {
        if !self.is_connected() {
            let error = error.with("queue", self.rules.queue.clone());
            state.finished = Some(Finished::Lost(error.clone()));
            self.summarise(state);
            return error;
        }
        error
    }

    pub fn summarise(&self, state: &State) {
        let mut summary = lock(&self.summary);
        summary.messages = match state.finished {
            None => state.held.len() as u64,
            Some(_) => 0,
        };
        if summary.messages > 0 && summary.since.is_none() {
            summary.since = Some(Millis::now());
        }
    }
}

impl State {
    fn page(&mut self, max: usize) -> Page {
        let deliveries: Vec<Delivery> = self.rows.drain(..self.rows.len().min(max)).collect();
        Page {
            scan: Scan {
                scanned: deliveries.len() as u64,
                total: self.total,
                notes: std::mem::take(&mut self.notes),
                ..Scan::default()
            },
            end: self.at_end && self.rows.is_empty(),
            deliveries,
        }
    }
}

/// The broker closes a channel that holds messages too long, which counts as a failed delivery: so they go back before that.
fn return_in_time(inner: &Arc<Inner>) {
    let (weak, patience) = (Arc::downgrade(inner), inner.rules.hold_for);
    tokio::spawn(async move {
        tokio::time::sleep(patience).await;
        let Some(inner) = weak.upgrade() else { return };
        let returned = inner.close().await;
        if returned.given_back > 0 {
            let error = Error::new(
                ErrorKind::LockLost,
                "hold the messages",
                "they were given back, because the broker would have taken them by force (consumer_timeout)",
            )
            .advise("Look again.");
            inner.state.lock().await.finished = Some(Finished::Lost(error));
        }
    });
}

fn ended() -> Page {
    Page {
        end: true,
        ..Page::default()
    }
}

/// A mutex that survives a panic elsewhere: the data are plain counts.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
