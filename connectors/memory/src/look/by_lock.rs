//! A look at a queue: takes messages one after another, holds them, and gives them back to their places.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use dlo_core::{
    Address, Delivery, Disposition, Error, ErrorKind, Figure, Follow, Hold, Lock, Look,
    LookRequest, Millis, Page, Position, Result, Returned, Scan, Start,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Fault, QueueKind, Reason, Step,
    broker::Broker,
    capability,
    clock::millis,
    delivery,
    queue::Owner,
    session::Guard,
    state::{GaveBack, Link, State},
};

/// Twelve hours after its first receive SQS takes a message back whatever is asked.
const SQS_LONGEST: i64 = 12 * 3_600_000;

#[derive(Debug)]
pub(crate) struct LockLook {
    broker: Broker,
    guard: Arc<Guard>,
    queue: String,
    kind: QueueKind,
    owner: Owner,
    request: LookRequest,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Messages taken so far; the next one gets this index.
    taken: u64,
    shown: u64,
    /// The place of the last one, so that what is released does not come again.
    last: Option<u64>,
    locks: BTreeMap<Lock, u64>,
    /// What is searched for and not found yet.
    wanted: Option<BTreeSet<Position>>,
    ended: bool,
    closed: bool,
}

impl LockLook {
    pub fn open(
        broker: Broker,
        guard: Arc<Guard>,
        at: &Address,
        request: LookRequest,
    ) -> Result<Self> {
        let wanted = match &request.start {
            Start::Newest | Start::Oldest => None,
            Start::Positions(positions) => Some(positions.iter().cloned().collect()),
            Start::Offsets(_) | Start::Time(_) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "look at the queue",
                    "a queue can only be looked at from its head",
                )
                .with("queue", &at.name));
            }
        };
        let (kind, owner) = broker.with(|state| -> Result<_> {
            let kind = state.queue(&at.name)?.kind();
            let look = state.number();
            let session = guard.session();
            Ok((kind, Owner { session, look }))
        })?;
        Ok(Self {
            broker,
            guard,
            queue: at.name.clone(),
            kind,
            owner,
            request,
            progress: Mutex::new(Progress {
                wanted,
                ..Progress::default()
            }),
        })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is there now, without waiting.
    fn take(&self, state: &mut State, max: usize) -> Result<Page> {
        let mut progress = self.progress();
        let mut page = Page::default();
        let until = self.until(state);
        while page.deliveries.len() < max && !self.is_done(&progress) {
            let token = state.take(&self.queue, self.owner, progress.last, until)?;
            let Some(token) = token else {
                progress.ended |= self.request.follow == Follow::Stop;
                break;
            };
            page.scan.scanned += 1;
            let delivery = self.record(state, &mut progress, token);
            page.deliveries.extend(delivery);
        }
        progress.ended |= self.is_done(&progress);
        page.end = progress.ended;
        page.scan.total = self.total(state, &progress);
        if page.end {
            page.scan.notes = notes(&state.queue(&self.queue)?.stalled_groups());
        }
        Ok(page)
    }

    /// Notes the lock of a message that was just taken; `None` for one that is only passed in a search.
    fn record(&self, state: &State, progress: &mut Progress, token: u64) -> Option<Delivery> {
        let held = state.queues.get(&self.queue)?.get_held(token)?;
        let lock = Lock::new(format!("{}-{token}", self.owner.look));
        let delivery = delivery::of_stored(&held.stored, self.kind, progress.taken, lock.clone());
        progress.last = Some(held.stored.place);
        progress.taken += 1;
        progress.locks.insert(lock, token);
        let is_wanted = match &mut progress.wanted {
            None => true,
            Some(wanted) => wanted.remove(&delivery.position),
        };
        progress.shown += u64::from(is_wanted);
        is_wanted.then_some(delivery)
    }

    fn is_done(&self, progress: &Progress) -> bool {
        progress.ended
            || progress.closed
            || progress.shown >= self.request.limit
            || progress.wanted.as_ref().is_some_and(BTreeSet::is_empty)
    }

    fn total(&self, state: &State, progress: &Progress) -> Figure<u64> {
        let left = state.queues.get(&self.queue).map_or(0, |q| q.ready_count());
        let total = progress.taken + left;
        if self.kind.is_sqs() {
            Figure::about(total)
        } else {
            Figure::exact(total)
        }
    }

    /// RabbitMQ lets nobody hold longer than its ack time-out; SQS as long as is asked for at a time.
    fn until(&self, state: &State) -> Millis {
        let hold = if self.kind.is_sqs() {
            millis(self.request.hold).min(SQS_LONGEST)
        } else {
            let queue = state.queues.get(&self.queue);
            queue.map_or(0, |queue| millis(queue.settings.visibility))
        };
        state.now().plus(hold)
    }

    fn told(&self, state: &State) -> Option<Hold> {
        let held = state.queues.get(&self.queue)?.held_by(self.owner);
        let until = held.iter().map(|(_, until)| *until).min()?;
        let at_most_until = if self.kind.is_sqs() {
            let first = held
                .iter()
                .filter_map(|(token, _)| state.queues.get(&self.queue)?.get_held(*token))
                .filter_map(|held| held.stored.first_received)
                .min();
            first.map(|time| time.plus(SQS_LONGEST))
        } else {
            Some(until)
        };
        Some(Hold {
            messages: held.len() as u64,
            until,
            at_most_until,
        })
    }

    async fn settle_one(&self, lock: &Lock, how: Disposition) -> Result<()> {
        let lost = || {
            Error::new(
                ErrorKind::LockLost,
                "settle the message",
                "its lock ran out or was used already",
            )
            .advise("Look at the queue again; the message is there unless somebody took it.")
        };
        match self.guard.link() {
            Link::Open => {}
            Link::Closed => return Err(lost()),
            Link::Lost => return Err(unknown("the connection is lost")),
        }
        let token = self.progress().locks.get(lock).copied().ok_or_else(lost)?;
        let faults = self.guard.enter(Step::Settle, &self.queue).await;
        let faults = faults.map_err(|error| match self.guard.link() {
            Link::Lost => unknown("the connection was lost on the way"),
            _ => error,
        })?;
        self.progress().locks.remove(lock);
        self.broker.with(|state| {
            if faults.contains(&Fault::LockLost) {
                state.give_back(&self.queue, token, self.owner);
            }
            self.apply(state, token, how).ok_or_else(lost)
        })?;
        if faults.contains(&Fault::SettleUnknown) {
            return Err(unknown("no answer came"));
        }
        Ok(())
    }

    fn apply(&self, state: &mut State, token: u64, how: Disposition) -> Option<()> {
        match how {
            Disposition::Ack => state.remove(&self.queue, token, self.owner).map(drop),
            Disposition::Release => {
                let gave = state.give_back(&self.queue, token, self.owner);
                (gave == GaveBack::Yes).then_some(())
            }
            Disposition::DeadLetter => {
                let stored = state.remove(&self.queue, token, self.owner)?;
                state.bury(&self.queue, stored, Reason::Rejected);
                Some(())
            }
        }
    }

    fn can(&self, how: Disposition) -> Result<()> {
        let has_target = self.broker.peek(|state| {
            let queue = state.queues.get(&self.queue);
            queue.is_some_and(|queue| capability::of_queue(&queue.settings).settle_dead_letter)
        });
        if how != Disposition::DeadLetter || has_target {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            "dead-letter the message",
            "the queue has no dead-letter exchange",
        )
        .with("queue", &self.queue))
    }

    /// Gives back what is still held, in the queue's order; says how many, and how many were not ours any more.
    fn give_back(&self) -> Returned {
        let mut progress = self.progress();
        progress.closed = true;
        let locks = std::mem::take(&mut progress.locks);
        drop(progress);
        self.broker.with(|state| {
            let held = state.queues.get(&self.queue).map(|q| q.held_by(self.owner));
            let held = held.unwrap_or_default();
            let mut given_back = 0;
            for (token, _) in held {
                let gave = state.give_back(&self.queue, token, self.owner);
                given_back += u64::from(gave == GaveBack::Yes);
            }
            let lost_hold = (locks.len() as u64).saturating_sub(given_back);
            let notes = (lost_hold > 0).then(|| {
                format!("{lost_hold} messages were back in the queue before they were given back.")
            });
            Returned {
                given_back,
                lost_hold,
                rescued: 0,
                notes: notes.into_iter().collect(),
            }
        })
    }
}

#[async_trait]
impl Look for LockLook {
    async fn next(&self, max: usize, cancel: &CancellationToken) -> Result<Page> {
        if cancel.is_cancelled() {
            return Err(Error::cancelled("read the next messages"));
        }
        self.guard.enter(Step::Look, &self.queue).await?;
        if self.progress().closed {
            return Ok(Page {
                end: true,
                ..Page::default()
            });
        }
        let mut changes = self.broker.changes();
        let mut scan = Scan::default();
        loop {
            changes.mark_unchanged();
            let mut page = self.broker.with(|state| self.take(state, max))?;
            page.scan.scanned += scan.scanned;
            if page.end || !page.deliveries.is_empty() {
                return Ok(page);
            }
            scan = page.scan;
            self.guard.check()?;
            self.broker.wait(&mut changes, cancel).await?;
        }
    }

    async fn settle(&self, locks: &[Lock], how: Disposition) -> Vec<Result<()>> {
        if let Err(error) = self.can(how) {
            return locks.iter().map(|_| Err(error.clone())).collect();
        }
        let mut answers = Vec::with_capacity(locks.len());
        for lock in locks {
            answers.push(self.settle_one(lock, how).await);
        }
        answers
    }

    async fn extend(&self) -> Result<Option<Hold>> {
        self.guard.check()?;
        Ok(self.broker.with(|state| {
            if self.kind.is_sqs() {
                let until = self.until(state);
                if let Some(queue) = state.queues.get_mut(&self.queue) {
                    queue.extend(self.owner, until, SQS_LONGEST);
                }
            }
            self.told(state)
        }))
    }

    fn hold(&self) -> Option<Hold> {
        self.broker.with(|state| self.told(state))
    }

    async fn close(&self) -> Result<Returned> {
        Ok(self.give_back())
    }
}

/// Dropping gives back as well; only nobody learns how that went.
impl Drop for LockLook {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn unknown(what: &str) -> Error {
    Error::new(ErrorKind::OutcomeUnknown, "settle the message", what)
        .advise("Look at the queue again to see whether the message is still there.")
}

fn notes(stalled: &[String]) -> Vec<String> {
    stalled
        .iter()
        .map(|group| {
            format!("Message group {group} is cut: the rest of it can be seen when these are given back.")
        })
        .collect()
}
