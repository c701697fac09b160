//! Looking: reading messages without removing them.
//!
//! A look is an object with an end. While it is open a lock broker's messages are held; [`Look::close`] gives them back, once
//! and politely. An offset broker holds nothing, so closing only frees memory.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{Delivery, Figure, Millis, Position, Result};

/// Where a look begins. Lock brokers always begin at the head of the queue ([`Start::Oldest`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The newest `limit` records, newest first over all partitions.
    #[default]
    Newest,
    Oldest,
    /// Forward from these offsets; partitions that are not named are not read.
    Offsets(Vec<(i32, i64)>),
    /// Forward from the first record at or after this time.
    Time(Millis),
    /// Only these positions. Lock brokers scan for them and hold everything they pass.
    Positions(Vec<Position>),
}

/// Which records of transactions an offset broker shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    #[default]
    ReadCommitted,
    /// Also records of open and aborted transactions; they look like all others.
    ReadUncommitted,
}

/// What happens at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    #[default]
    Stop,
    /// Waits for what arrives next (live tail).
    Tail,
}

/// Whether the person has seen and accepted what the look costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    /// [`Verdict::Ask`] is refused.
    #[default]
    Unasked,
    /// [`Verdict::Ask`] is allowed; [`Verdict::Refuse`] never is.
    Given,
}

/// What is asked of a look.
#[derive(Clone, Debug)]
pub struct LookRequest {
    pub start: Start,
    /// The most messages to deliver in the whole look.
    pub limit: u64,
    /// Only these partitions; `None` is all.
    pub partitions: Option<Vec<i32>>,
    pub isolation: Isolation,
    pub follow: Follow,
    /// How long locks are asked for at a time; they are extended while the look is in use.
    pub hold: Duration,
    pub consent: Consent,
    /// Saves a message before the connector does something to it that a crash could turn into a loss.
    pub keeper: Arc<dyn Keeper>,
}

impl LookRequest {
    /// A look at up to `limit` messages with default settings, which cannot save copies.
    pub fn new(limit: u64) -> Self {
        Self {
            start: Start::default(),
            limit,
            partitions: None,
            isolation: Isolation::default(),
            follow: Follow::default(),
            hold: Duration::from_secs(300),
            consent: Consent::default(),
            keeper: Arc::new(NoKeeper),
        }
    }
}

/// Saves a copy of a message durably. The engine implements it; connectors call it before a rescue
/// (a message that its broker would destroy when it is given back).
#[async_trait]
pub trait Keeper: Debug + Send + Sync {
    /// Returns only when the copy would survive a crash of this process.
    async fn keep(&self, delivery: &Delivery) -> Result<()>;
}

/// A keeper that cannot save: every rescue is refused.
#[derive(Clone, Copy, Debug)]
pub struct NoKeeper;

#[async_trait]
impl Keeper for NoKeeper {
    async fn keep(&self, _: &Delivery) -> Result<()> {
        Err(crate::Error::new(
            crate::ErrorKind::Refused,
            "save a copy of the message",
            "this look has no place to save messages in",
        ))
    }
}

/// Whether a look may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It costs nothing or what it costs harms nobody.
    #[default]
    Fine,
    /// It costs something that the person should read, but the look may begin.
    Warn,
    /// It can harm somebody, so it needs consent ([`Consent::Given`]).
    Ask,
    /// It would do harm, so it is not done.
    Refuse,
}

/// What a look costs, computed from the destination's real settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookCost {
    pub verdict: Verdict,
    /// One line for the screen, for example `holds up to 10,000 messages for this session and returns them; counts one
    /// delivery of 20`.
    pub line: String,
    /// Why it warns, asks or refuses, each a sentence that says what to do.
    pub reasons: Vec<String>,
    /// How many more looks are possible before the broker acts on a message; `None` when unlimited.
    pub looks_left: Option<u64>,
}

/// The connector's own handle of a held message. It is good only within the look that gave it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lock(pub Arc<str>);

impl Lock {
    pub fn new(token: impl AsRef<str>) -> Self {
        Self(Arc::from(token.as_ref()))
    }
}

/// What to do with a held message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// Remove it.
    Ack,
    /// Give it back now.
    Release,
    /// Send it to the destination's own dead-letter target.
    DeadLetter,
}

/// Until when held messages stay held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// How many messages are held.
    pub messages: u64,
    /// When the broker takes them back by itself unless they are extended.
    pub until: Millis,
    /// The time after which they cannot be extended any more, where the broker has such a limit.
    pub at_most_until: Option<Millis>,
}

/// What a scan passed over, so that it can be said honestly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Positions passed in this page, delivered or not.
    pub scanned: u64,
    /// How many there are in all, as far as known at this moment.
    pub total: Figure<u64>,
    /// Offsets without a record: control records, aborted transactions, compaction.
    pub gaps: u64,
    /// Messages that could not be read; each has a note.
    pub errors: u64,
    /// What a person should know, for example `group A is cut after 10 messages`. Sentences.
    pub notes: Vec<String>,
}

/// Some messages of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub deliveries: Vec<Delivery>,
    pub scan: Scan,
    /// True when the end, the limit or the budget of the look is reached.
    pub end: bool,
}

/// What became of the held messages when a look was closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    pub given_back: u64,
    /// Messages that were no longer ours to give back (lock lost, connection lost): they are in the queue again, or will be
    /// when the broker notices.
    pub lost_hold: u64,
    /// Messages that a give-back would have destroyed, saved and put back as confirmed copies at the end of the queue.
    pub rescued: u64,
    /// What a person should know about it. Sentences.
    pub notes: Vec<String>,
}

/// An open look.
///
/// Dropping it without [`Look::close`] must give messages back too, as well as the broker allows (at least by closing the
/// channel), but nobody learns how that went.
#[async_trait]
pub trait Look: Debug + Send + Sync {
    /// The next up to `max` messages, in order. Waits for at least one, unless the end is reached.
    ///
    /// - After `end` it keeps answering empty pages with `end` set, except in a tail.
    /// - When cancelled it returns [`crate::ErrorKind::Cancelled`] or what it has; held messages stay held until `close`.
    /// - A lost connection is an error; what was held is then back in the queue.
    async fn next(&self, max: usize, cancel: &CancellationToken) -> Result<Page>;

    /// Settles held messages, with one answer per lock in the same order.
    ///
    /// - Ack returns `Ok` only when the broker has surely processed it as far as its protocol can tell.
    /// - A lock that ran out gives [`crate::ErrorKind::LockLost`], a lost connection [`crate::ErrorKind::OutcomeUnknown`].
    /// - Offset brokers answer [`crate::ErrorKind::Unsupported`].
    async fn settle(&self, locks: &[Lock], how: Disposition) -> Vec<Result<()>>;

    /// Extends all locks by the request's hold time; `None` where nothing is held.
    async fn extend(&self) -> Result<Option<Hold>>;

    /// What is held at the moment, without asking the broker.
    fn hold(&self) -> Option<Hold>;

    /// Gives back everything that is still held, once, in the order that keeps the queue's order. Further calls do nothing.
    async fn close(&self) -> Result<Returned>;
}
