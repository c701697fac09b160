//! A session of the connector on a broker in memory.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use dlo_core::{
    Address, AddressKind, Atomicity, Consent, Delivery, Destination, Error, ErrorKind, Figure,
    Isolation, Look, LookCost, LookRequest, Outgoing, Position, Receipt, RedriveRequest,
    RedriveTask, Result, Routes, ServerInfo, Session, Target, Verdict,
};

use crate::{
    Fault, Step,
    arrive::keys_of,
    broker::Broker,
    cost,
    facts::kind_word,
    look::{LockLook, OffsetLook, read_at},
    state::{Link, State, not_found},
};

#[derive(Debug)]
pub(crate) struct MemorySession {
    broker: Broker,
    guard: Arc<Guard>,
}

/// The session's connection: whether it stands, and what goes wrong on it. Looks share it.
#[derive(Debug)]
pub(crate) struct Guard {
    broker: Broker,
    session: u64,
}

impl Guard {
    pub fn session(&self) -> u64 {
        self.session
    }

    pub fn link(&self) -> Link {
        self.broker.peek(|state| state.link(self.session))
    }

    /// # Errors
    /// `Unreachable` when the connection does not stand.
    pub fn check(&self) -> Result<()> {
        let what = match self.link() {
            Link::Open => return Ok(()),
            Link::Closed => "the session was closed",
            Link::Lost => "the connection was lost",
        };
        Err(Error::new(ErrorKind::Unreachable, "use the session", what).advise("Connect again."))
    }

    /// Lets the faults of this step strike, and gives those that the caller has to act out.
    pub async fn enter(&self, step: Step, destination: &str) -> Result<Vec<Fault>> {
        self.check()?;
        let struck = self
            .broker
            .with(|state| state.faults.strike(step, destination));
        let mut rest = Vec::new();
        for fault in struck {
            match fault {
                Fault::Slow(_, time) => tokio::time::sleep(time).await,
                Fault::PermissionDenied(_) => return Err(denied(destination)),
                Fault::Throttled(_) => return Err(throttled()),
                Fault::ConnectionLost(_) => {
                    self.lose();
                    self.check()?;
                }
                fault => rest.push(fault),
            }
        }
        Ok(rest)
    }

    pub fn lose(&self) {
        self.broker
            .with(|state| state.disconnect(self.session, Link::Lost));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.broker
            .with(|state| state.disconnect(self.session, Link::Closed));
    }
}

impl MemorySession {
    pub fn open(broker: Broker) -> Self {
        let session = broker.with(State::connect);
        let guard = Guard {
            broker: broker.clone(),
            session,
        };
        Self {
            broker,
            guard: Arc::new(guard),
        }
    }

    async fn publish_one(&self, out: &Outgoing) -> Result<Receipt> {
        let faults = self
            .guard
            .enter(Step::Publish, &out.target.address.name)
            .await
            .map_err(|error| self.unknown_if_lost(error))?;
        for fault in &faults {
            match fault {
                Fault::PublishLost => return Err(unknown("no confirmation came")),
                Fault::PublishFails(kind) => {
                    let what = "the broker refused it";
                    return Err(Error::new(*kind, "publish the message", what));
                }
                _ => {}
            }
        }
        let receipt = self.broker.with(|state| state.publish(out))?;
        self.confirm(&faults).await?;
        Ok(receipt)
    }

    /// Acts out what goes wrong between storing and confirming.
    async fn confirm(&self, faults: &[Fault]) -> Result<()> {
        for fault in faults {
            match fault {
                Fault::ConfirmedLate(time) => tokio::time::sleep(*time).await,
                Fault::ConfirmLost => return Err(unknown("the confirmation was lost")),
                Fault::CrashAfterConfirm => self.guard.lose(),
                _ => {}
            }
        }
        Ok(())
    }

    /// A connection that breaks during a publish leaves its outcome open; one that was gone before does not.
    fn unknown_if_lost(&self, error: Error) -> Error {
        if self.guard.link() == Link::Lost && error.kind() == ErrorKind::Unreachable {
            return unknown("the connection was lost before the confirmation came");
        }
        error
    }

    async fn publish_all(&self, batch: &[Outgoing]) -> Vec<Result<Receipt>> {
        if let Err(error) = self.broker.with(|state| all_atomic(state, batch)) {
            return batch.iter().map(|_| Err(error.clone())).collect();
        }
        let checks: Vec<_> = self
            .broker
            .with(|state| batch.iter().map(|out| state.check(out)).collect());
        if checks.iter().all(Result::is_ok) {
            let mut answers = Vec::with_capacity(batch.len());
            for out in batch {
                answers.push(self.publish_one(out).await);
            }
            return answers;
        }
        let aborted = || {
            Error::new(
                ErrorKind::Rejected,
                "publish the message",
                "another message of its batch was refused, so none was stored",
            )
        };
        checks
            .into_iter()
            .map(|check| Err(check.err().unwrap_or_else(aborted)))
            .collect()
    }
}

/// Whether every target of a batch can be written to in one transaction.
fn all_atomic(state: &State, batch: &[Outgoing]) -> Result<()> {
    let unsupported = |out: &&Outgoing| {
        let described = state.describe(&out.target.address);
        described.is_ok_and(|known| !known.capability.publish_atomically)
    };
    match batch.iter().find(unsupported) {
        None => Ok(()),
        Some(out) => Err(Error::new(
            ErrorKind::Unsupported,
            "publish the batch as one",
            "the destination has no transactions",
        )
        .with("destination", &out.target.address.name)),
    }
}

#[async_trait]
impl Session for MemorySession {
    fn server(&self) -> ServerInfo {
        ServerInfo {
            product: self.broker.peek(|state| state.product.to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            facts: vec![("storage".to_owned(), "this process only".to_owned())],
        }
    }

    async fn destinations(&self) -> Result<Vec<Destination>> {
        self.guard.enter(Step::List, "").await?;
        Ok(self.broker.with(|state| state.destinations()))
    }

    async fn describe(&self, at: &Address) -> Result<Destination> {
        self.guard.enter(Step::List, &at.name).await?;
        self.broker.with(|state| state.describe(at))
    }

    async fn cost(&self, at: &Address, request: &LookRequest) -> Result<LookCost> {
        self.guard.enter(Step::List, &at.name).await?;
        self.broker.with(|state| cost_of(state, at, request))
    }

    async fn look(&self, at: &Address, request: LookRequest) -> Result<Arc<dyn Look>> {
        self.guard.enter(Step::Look, &at.name).await?;
        let cost = self.broker.with(|state| cost_of(state, at, &request))?;
        let allowed = match cost.verdict {
            Verdict::Fine | Verdict::Warn => true,
            Verdict::Ask => request.consent == Consent::Given,
            Verdict::Refuse => false,
        };
        if !allowed {
            return Err(refused(at, &cost));
        }
        let (broker, guard) = (self.broker.clone(), self.guard.clone());
        let is_log = self.broker.with(|state| is_log(state, at));
        if is_log {
            return Ok(Arc::new(OffsetLook::open(broker, guard, at, request)?));
        }
        Ok(Arc::new(LockLook::open(broker, guard, at, request)?))
    }

    async fn fetch(
        &self,
        at: &Address,
        positions: &[Position],
        isolation: Isolation,
    ) -> Result<Vec<Option<Delivery>>> {
        self.guard.enter(Step::Fetch, &at.name).await?;
        self.broker.with(|state| {
            if !state.describe(at)?.capability.fetch {
                return Err(unsupported("read single positions", at));
            }
            let log = state.log(&at.name)?;
            let read = |position| read_at(log, position, isolation);
            Ok(positions.iter().map(read).collect())
        })
    }

    async fn routes(&self, to: &Target) -> Result<Routes> {
        self.guard.enter(Step::List, &to.address.name).await?;
        Ok(self.broker.with(|state| routes_of(state, to)))
    }

    async fn publish(&self, batch: Vec<Outgoing>, atomicity: Atomicity) -> Vec<Result<Receipt>> {
        if atomicity == Atomicity::All {
            return self.publish_all(&batch).await;
        }
        let mut answers = Vec::with_capacity(batch.len());
        for out in &batch {
            answers.push(self.publish_one(out).await);
        }
        answers
    }

    async fn redrive(&self, request: &RedriveRequest) -> Result<RedriveTask> {
        self.guard.enter(Step::Any, &request.from.name).await?;
        self.broker.with(|state| {
            if !state.describe(&request.from)?.capability.redrive {
                return Err(unsupported(
                    "move the messages by the broker",
                    &request.from,
                ));
            }
            state.start_move(request)
        })
    }

    async fn redrives(&self, from: &Address) -> Result<Vec<RedriveTask>> {
        self.guard.enter(Step::List, &from.name).await?;
        Ok(self.broker.with(|state| {
            let moves = state.moves.iter().filter(|task| task.from == from.name);
            moves.map(crate::mover::Move::task).collect()
        }))
    }

    async fn cancel_redrive(&self, task: &RedriveTask) -> Result<()> {
        self.guard.check()?;
        self.broker.with(|state| state.stop_move(&task.id))
    }

    async fn purge(&self, at: &Address) -> Result<Figure<u64>> {
        self.guard.enter(Step::Purge, &at.name).await?;
        self.broker.with(|state| {
            if !state.describe(at)?.capability.purge {
                return Err(unsupported("purge the destination", at)
                    .advise("Records of a log go by retention, or by truncating it."));
            }
            state.version += 1;
            Ok(Figure::exact(state.queue(&at.name)?.purge()))
        })
    }

    async fn truncate(&self, at: &Address, before: &[(i32, i64)]) -> Result<()> {
        self.guard.enter(Step::Purge, &at.name).await?;
        self.broker.with(|state| {
            if !state.describe(at)?.capability.truncate {
                return Err(unsupported("truncate the destination", at)
                    .advise("Only a topic whose cleanup policy is delete can be truncated."));
            }
            state.version += 1;
            state.log(&at.name)?.truncate(before);
            Ok(())
        })
    }

    async fn close(&self) -> Result<()> {
        self.broker
            .with(|state| state.disconnect(self.guard.session(), Link::Closed));
        Ok(())
    }
}

fn cost_of(state: &mut State, at: &Address, request: &LookRequest) -> Result<LookCost> {
    if at.kind == AddressKind::Exchange {
        return Err(unsupported("look at the destination", at)
            .advise("Look at a queue that is bound to it."));
    }
    if is_log(state, at) {
        return Ok(cost::of_log());
    }
    let missing = || not_found("look at the destination", kind_word(at.kind), &at.name);
    let is_dead_letter_queue = !state.sources_of(&at.name).is_empty();
    let queue = state
        .queues
        .get(&at.name)
        .filter(|_| at.kind == AddressKind::Queue);
    let queue = queue.ok_or_else(missing)?;
    Ok(cost::of_queue(queue, request.limit, is_dead_letter_queue))
}

fn is_log(state: &State, at: &Address) -> bool {
    state
        .logs
        .get(&at.name)
        .is_some_and(|log| log.settings.kind == at.kind)
}

fn routes_of(state: &State, to: &Target) -> Routes {
    let name = to.address.name.as_str();
    if to.address.kind == AddressKind::Exchange {
        let exists = name.is_empty() || state.exchanges.contains_key(name);
        let out = Outgoing {
            target: to.clone(),
            message: dlo_core::Message::default(),
            time: None,
        };
        return Routes {
            exists,
            reaches: state.route_all(name, &keys_of(&out)),
            complete: true,
            notes: Vec::new(),
        };
    }
    if let Some(log) = state.logs.get(name) {
        let groups = log.groups.keys().cloned().collect();
        let note = "Every consumer group of the topic gets it, also those that had no failure.";
        return Routes {
            exists: true,
            reaches: groups,
            complete: true,
            notes: vec![note.to_owned()],
        };
    }
    let exists = state.queues.contains_key(name);
    Routes {
        exists,
        reaches: exists.then(|| name.to_owned()).into_iter().collect(),
        complete: true,
        notes: Vec::new(),
    }
}

fn refused(at: &Address, cost: &LookCost) -> Error {
    let advice = match cost.verdict {
        Verdict::Ask => "Give your consent if you accept that.",
        _ => "Nothing was touched.",
    };
    Error::new(
        ErrorKind::Refused,
        "look at the queue",
        cost.reasons.join(" "),
    )
    .with("queue", &at.name)
    .advise(advice)
}

fn unsupported(operation: &str, at: &Address) -> Error {
    let what = "this kind of destination cannot do it";
    Error::new(ErrorKind::Unsupported, operation, what).with(kind_word(at.kind), &at.name)
}

fn unknown(what: &str) -> Error {
    Error::new(ErrorKind::OutcomeUnknown, "publish the message", what)
        .advise("Look at the target to see whether it is there before you publish it again.")
}

fn denied(destination: &str) -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        "use the destination",
        "these credentials may not do it",
    )
    .with("destination", destination)
    .advise("Ask for the permission, or use another profile.")
}

fn throttled() -> Error {
    let wait = Duration::from_secs(1);
    Error::new(
        ErrorKind::Throttled,
        "use the destination",
        "the broker asks to slow down",
    )
    .advise(format!("Try again after {} s.", wait.as_secs()))
}
