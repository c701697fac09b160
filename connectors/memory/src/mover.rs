//! The broker's own mover: SQS's message move task
//! (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html>).

use std::collections::BTreeSet;

use dlo_core::{
    Error, ErrorKind, Figure, Millis, RedriveRequest, RedriveState, RedriveTask, Result,
};

use crate::{
    DeadLetterTo,
    queue::Owner,
    state::{State, not_found},
};

/// Messages a second when nothing is asked for; AWS allows at most that many.
const FASTEST: u32 = 500;

/// One task.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub id: String,
    pub from: String,
    to: Option<String>,
    rate: u32,
    started: Millis,
    total: u64,
    moved: u64,
    state: RedriveState,
    failure: Option<String>,
}

impl Move {
    /// When the next message is due, while it runs.
    pub fn due(&self, now: Millis) -> Option<Millis> {
        (self.state == RedriveState::Running).then(|| now.plus(i64::from(1_000 / self.rate.max(1))))
    }

    pub fn task(&self) -> RedriveTask {
        RedriveTask {
            id: self.id.clone(),
            state: self.state,
            moved: Figure::about(self.moved),
            to_move: Figure::about(self.total),
            failure: self.failure.clone(),
        }
    }

    /// How many should have been moved by now.
    fn target(&self, now: Millis) -> u64 {
        let passed = u64::try_from(now.since(self.started)).unwrap_or_default();
        (1 + passed.saturating_mul(u64::from(self.rate)) / 1_000).min(self.total)
    }
}

impl State {
    /// Starts a move out of a dead-letter queue.
    pub fn start_move(&mut self, request: &RedriveRequest) -> Result<RedriveTask> {
        let from = request.from.name.clone();
        let total = self.queue(&from)?.ready_count();
        if !self.has_sqs_sources(&from) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "start the broker's own move",
                "only a dead-letter queue of another SQS queue can be moved",
            )
            .with("queue", from)
            .advise("Replay the messages instead."));
        }
        if let Some(to) = request
            .to
            .as_ref()
            .filter(|to| !self.queues.contains_key(&to.name))
        {
            return Err(not_found("start the broker's own move", "queue", &to.name));
        }
        if self
            .moves
            .iter()
            .any(|task| task.from == from && task.state == RedriveState::Running)
        {
            return Err(Error::new(
                ErrorKind::Refused,
                "start the broker's own move",
                "a move of this queue is already running",
            )
            .with("queue", from)
            .advise("Wait until it has ended, or cancel it."));
        }
        let task = Move {
            id: format!("move-{}", self.number()),
            from,
            to: request.to.as_ref().map(|to| to.name.clone()),
            rate: request.rate.unwrap_or(FASTEST).clamp(1, FASTEST),
            started: self.now(),
            total,
            moved: 0,
            state: RedriveState::Running,
            failure: None,
        };
        let answer = task.task();
        self.moves.insert(0, task);
        Ok(answer)
    }

    /// Stops a move; what was moved stays moved.
    pub fn stop_move(&mut self, id: &str) -> Result<()> {
        let task = self.moves.iter_mut().find(|task| task.id == id);
        let task = task.ok_or_else(|| not_found("cancel the move", "task", id))?;
        if task.state == RedriveState::Running {
            task.state = RedriveState::Cancelled;
        }
        Ok(())
    }

    /// Whether a queue of SQS sends its dead letters there.
    pub fn has_sqs_sources(&self, name: &str) -> bool {
        self.queues.values().any(|queue| {
            matches!(&queue.settings.dead_letter, Some(DeadLetterTo::Queue { queue, .. }) if queue == name)
        })
    }

    pub(crate) fn go_on_moving(&mut self, now: Millis) {
        let mut moves = std::mem::take(&mut self.moves);
        for task in moves
            .iter_mut()
            .filter(|task| task.state == RedriveState::Running)
        {
            while task.moved < task.target(now) && task.state == RedriveState::Running {
                self.move_one(task, now);
            }
            if task.moved >= task.total && task.state == RedriveState::Running {
                task.state = RedriveState::Completed;
            }
        }
        self.moves = moves;
    }

    fn move_one(&mut self, task: &mut Move, now: Millis) {
        let queue = self.queues.get_mut(&task.from);
        let Some(stored) = queue.and_then(|queue| queue.first_for(Owner::CLIENT, None)) else {
            // Somebody else took the rest.
            task.state = RedriveState::Completed;
            return;
        };
        let origin = task
            .to
            .clone()
            .or_else(|| stored.source.clone())
            .or_else(|| self.sources_of(&task.from).into_iter().next());
        let Some(target) = origin.filter(|to| self.queues.contains_key(to)) else {
            task.state = RedriveState::Failed;
            task.failure = Some("the source queue of a message does not exist any more".to_owned());
            if let Some(queue) = self.queues.get_mut(&task.from) {
                queue.put(stored);
            }
            return;
        };
        // A moved message is a new one: new id, new time, counted from nothing.
        self.arrive(&target, stored.message, "", &target, now);
        task.moved += 1;
    }

    /// The queues whose dead letters come to this one, by redrive policy or through an exchange.
    pub fn sources_of(&self, name: &str) -> Vec<String> {
        let mut sources = BTreeSet::new();
        for queue in self.queues.values() {
            let reaches = match &queue.settings.dead_letter {
                Some(DeadLetterTo::Queue { queue: target, .. }) => target == name,
                Some(DeadLetterTo::Exchange {
                    exchange,
                    routing_key,
                }) => self.reaches(exchange, routing_key.as_deref(), &queue.name, name),
                None => false,
            };
            if reaches {
                sources.insert(queue.name.clone());
            }
        }
        sources.into_iter().collect()
    }

    /// Whether dead letters of `source` can come to `target` through an exchange. Without a dead-letter key each message
    /// keeps its own, so every bound queue may get some.
    fn reaches(&self, exchange: &str, key: Option<&str>, source: &str, target: &str) -> bool {
        if source == target {
            return false;
        }
        match key {
            Some(key) => self
                .route_all(exchange, &[key.to_owned()])
                .iter()
                .any(|queue| queue == target),
            None => self
                .exchanges
                .get(exchange)
                .is_some_and(|exchange| exchange.bindings().any(|(queue, _)| queue == target)),
        }
    }
}
