//! The handle of a broker in memory: what a test or the demo does with it as an administrator and as an ordinary client.
//!
//! A connector's session (`session`) uses the same state, but only through the traits of `dlo-core`.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dlo_core::{
    Address, AddressKind, Error, Message, Millis, Outgoing, Partitioning, Position, Receipt,
    Result, Session, Target,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    ExchangeKind, Injection, LogSettings, QueueSettings, Reason,
    clock::millis,
    exchange::Exchange,
    log::{Fate, Group, Log},
    queue::{Owner, Queue},
    session::MemorySession,
    state::{State, not_found},
};

/// A broker in memory. Clones are handles of the same broker; it lives as long as one of them or a session does.
#[derive(Clone)]
pub struct Broker {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    version: watch::Sender<u64>,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").finish_non_exhaustive()
    }
}

impl Default for Broker {
    fn default() -> Self {
        Self::new()
    }
}

/// A message that an ordinary consumer took and has not settled yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    pub queue: String,
    pub message: Message,
    pub exchange: String,
    pub routing_key: String,
    token: u64,
}

/// A record as it stands in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    pub partition: i32,
    pub offset: i64,
    pub time: Millis,
    pub message: Message,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionEnd {
    Commit,
    Abort,
    /// It hangs: readers of committed records stop before it.
    Never,
}

impl Broker {
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State::new()),
                version: watch::Sender::new(0),
            }),
        }
    }

    /// A session as the connector would open it.
    pub fn connect(&self) -> Arc<dyn Session> {
        Arc::new(MemorySession::open(self.clone()))
    }

    /// The broker's time.
    pub fn now(&self) -> Millis {
        self.with(|state| state.now())
    }

    /// Declares a queue; an existing one keeps its messages and gets the new settings.
    pub fn declare_queue(&self, name: &str, settings: QueueSettings) -> Address {
        self.with(|state| match state.queues.get_mut(name) {
            Some(queue) => queue.settings = settings,
            None => {
                let queue = Queue::new(name, settings);
                state.queues.insert(name.to_owned(), queue);
            }
        });
        Address::queue(name)
    }

    /// Declares a topic or stream; an existing one stays as it is.
    pub fn declare_log(&self, name: &str, settings: LogSettings) -> Address {
        let kind = settings.kind;
        self.with(|state| {
            let log = || Log::new(name, settings);
            state.logs.entry(name.to_owned()).or_insert_with(log);
        });
        Address {
            kind,
            name: name.to_owned(),
        }
    }

    pub fn declare_exchange(&self, name: &str, kind: ExchangeKind) -> Address {
        self.with(|state| {
            let exchange = || Exchange::new(kind);
            state
                .exchanges
                .entry(name.to_owned())
                .or_insert_with(exchange);
        });
        Address::exchange(name)
    }

    /// Binds a queue to an exchange.
    ///
    /// # Errors
    /// `NotFound` when there is no such exchange.
    pub fn bind(&self, exchange: &str, queue: &str, key: &str) -> Result<()> {
        self.with(|state| {
            let found = state.exchanges.get_mut(exchange);
            let found = found.ok_or_else(|| not_found("bind the queue", "exchange", exchange))?;
            found.bind(queue, key);
            Ok(())
        })
    }

    /// Deletes a destination with everything in it; bindings to it end.
    pub fn delete(&self, at: &Address) {
        self.with(|state| {
            state.version += 1;
            match at.kind {
                AddressKind::Exchange => drop(state.exchanges.remove(&at.name)),
                _ => {
                    state.queues.remove(&at.name);
                    state.logs.remove(&at.name);
                    for exchange in state.exchanges.values_mut() {
                        exchange.unbind(&at.name);
                    }
                }
            }
        });
    }

    /// Publishes as an ordinary producer does, untouched by faults.
    ///
    /// # Errors
    /// As [`Session::publish`].
    pub fn publish(&self, target: &Target, message: Message) -> Result<Receipt> {
        self.publish_at(target, message, None)
    }

    /// The same with the message's own time (logs only).
    ///
    /// # Errors
    /// As [`Session::publish`].
    pub fn publish_at(
        &self,
        target: &Target,
        message: Message,
        time: Option<Millis>,
    ) -> Result<Receipt> {
        let out = Outgoing {
            target: target.clone(),
            message,
            time,
        };
        self.with(|state| state.publish(&out))
    }

    /// Takes the next message of a queue as an ordinary consumer does, and holds it for the queue's visibility time-out.
    pub fn take(&self, queue: &str) -> Option<Taken> {
        self.with(|state| state.take_as_client(queue))
    }

    /// Acknowledges: the message is gone. False when it was not held any more.
    pub fn ack(&self, taken: &Taken) -> bool {
        self.with(|state| {
            let stored = state.remove(&taken.queue, taken.token, Owner::CLIENT);
            stored.is_some()
        })
    }

    /// Rejects without requeueing: the message goes where the queue's dead letters go. False when it was not held.
    pub fn reject(&self, taken: &Taken) -> bool {
        self.with(|state| state.reject_as_client(taken.queue.as_str(), taken.token))
    }

    /// Gives it back to its place in the queue.
    pub fn requeue(&self, taken: &Taken) {
        self.with(|state| state.give_back(&taken.queue, taken.token, Owner::CLIENT));
    }

    /// Takes and acknowledges everything that a consumer can get.
    pub fn drain(&self, queue: &str) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(taken) = self.take(queue) {
            self.ack(&taken);
            messages.push(taken.message);
        }
        messages
    }

    /// Everything in a queue in order, held messages included, without touching it.
    pub fn content(&self, queue: &str) -> Vec<Message> {
        self.with(|state| {
            let queue = state.queues.get(queue);
            let content = queue.map(Queue::content).unwrap_or_default();
            content
                .iter()
                .map(|stored| stored.message.clone())
                .collect()
        })
    }

    /// Messages of a queue that a consumer could get, or the span of a log.
    pub fn depth(&self, name: &str) -> u64 {
        self.with(|state| match state.logs.get(name) {
            Some(log) => log.span(),
            None => state.queues.get(name).map_or(0, Queue::ready_count),
        })
    }

    /// Messages that somebody holds.
    pub fn held(&self, queue: &str) -> u64 {
        self.with(|state| state.queues.get(queue).map_or(0, Queue::held_count))
    }

    /// The records of a log, partition by partition.
    pub fn records(&self, log: &str) -> Vec<LogRecord> {
        self.with(|state| {
            let Some(log) = state.logs.get(log) else {
                return Vec::new();
            };
            let of = |(partition, log): (i32, &crate::log::PartitionLog)| {
                let records = log.records.iter().map(move |(offset, record)| LogRecord {
                    partition,
                    offset: *offset,
                    time: record.time,
                    message: record.message.clone(),
                });
                records.collect::<Vec<_>>()
            };
            log.numbered().flat_map(of).collect()
        })
    }

    /// Writes records in one transaction and ends it; leaves a gap for its end, and for each record when it is aborted.
    ///
    /// # Errors
    /// `NotFound` when there is no such log.
    pub fn transact(
        &self,
        log: &str,
        messages: Vec<Message>,
        end: TransactionEnd,
    ) -> Result<Vec<Position>> {
        self.with(|state| {
            let now = state.now();
            let transaction = state.log(log)?.begin();
            let positions = messages.into_iter().map(|message| {
                let fate = Fate::Open(transaction);
                state.append_record(log, message, now, Partitioning::ByKey, fate)
            });
            let positions = positions.collect::<Result<Vec<_>>>()?;
            match end {
                TransactionEnd::Commit => state.log(log)?.end(transaction, Fate::Stands),
                TransactionEnd::Abort => state.log(log)?.end(transaction, Fate::Aborted),
                TransactionEnd::Never => {}
            }
            Ok(positions)
        })
    }

    /// Compacts a log now, if it is declared so.
    pub fn compact(&self, log: &str) {
        self.with(|state| {
            if let Ok(log) = state.log(log) {
                log.compact();
            }
        });
    }

    /// Says that a group of that many members has read up to this offset.
    pub fn commit(&self, log: &str, group: &str, members: u32, partition: i32, offset: i64) {
        self.with(|state| {
            let Ok(log) = state.log(log) else { return };
            let group: &mut Group = log.groups.entry(group.to_owned()).or_default();
            group.members = members;
            group.committed.insert(partition, offset);
        });
    }

    /// Makes something go wrong from now on.
    pub fn inject(&self, injection: Injection) {
        self.with(|state| state.faults.add(injection));
    }

    /// Ends all faults that have not struck yet.
    pub fn clear_faults(&self) {
        self.with(|state| state.faults.clear());
    }

    /// Breaks all sessions, as a restart of the broker does; what they held is back.
    pub fn break_connections(&self) {
        self.with(State::break_all);
    }

    /// Works on the state as it is now, after everything that is due.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        state.catch_up();
        let result = work(&mut state);
        let version = state.version;
        drop(state);
        self.shared.version.send_if_modified(|known| {
            let changed = *known != version;
            *known = version;
            changed
        });
        result
    }

    /// Reads the state without catching up.
    pub(crate) fn peek<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears of changes from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    /// Waits until something has changed, is due by itself, or the wait is cancelled.
    pub(crate) async fn wait(
        &self,
        changes: &mut watch::Receiver<u64>,
        cancel: &CancellationToken,
    ) -> Result<()> {
        const LONGEST: Duration = Duration::from_secs(3_600);
        let due = self.peek(|state| {
            let next = state.next_event();
            next.map_or(LONGEST, |time| state.clock.until(time))
        });
        // A due time in the past would spin, and one that is a millisecond off as well.
        let due = due.clamp(Duration::from_millis(2), LONGEST);
        tokio::select! {
            () = cancel.cancelled() => Err(Error::cancelled("wait for the next message")),
            _ = changes.changed() => Ok(()),
            () = tokio::time::sleep(due) => Ok(()),
        }
    }
}

impl State {
    pub(crate) fn take_as_client(&mut self, queue: &str) -> Option<Taken> {
        let visibility = self.queues.get(queue)?.settings.visibility;
        let until = self.now().plus(millis(visibility));
        let token = self.take(queue, Owner::CLIENT, None, until).ok()??;
        let stored = &self.queues.get(queue)?.get_held(token)?.stored;
        Some(Taken {
            queue: queue.to_owned(),
            message: stored.message.clone(),
            exchange: stored.exchange.clone(),
            routing_key: stored.routing_key.clone(),
            token,
        })
    }

    /// Adds what a client library writes on a message before it rejects it.
    pub(crate) fn change_held(
        &mut self,
        queue: &str,
        taken: &Taken,
        change: impl FnOnce(&mut Message),
    ) {
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.change_held(taken.token, change);
        }
    }

    pub(crate) fn reject_as_client(&mut self, queue: &str, token: u64) -> bool {
        match self.remove(queue, token, Owner::CLIENT) {
            Some(stored) => {
                self.bury(queue, stored, Reason::Rejected);
                true
            }
            None => false,
        }
    }
}

impl Taken {
    pub(crate) fn token(&self) -> u64 {
        self.token
    }
}

/// Brokers that share a name within this process.
pub(crate) fn shared(name: &str, fresh: impl FnOnce() -> Broker) -> Broker {
    static NAMED: Mutex<BTreeMap<String, Broker>> = Mutex::new(BTreeMap::new());
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.entry(name.to_owned()).or_insert_with(fresh).clone()
}
