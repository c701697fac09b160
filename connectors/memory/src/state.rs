//! Everything the broker holds, and what it does by itself as time passes. There are no background tasks: every access first
//! catches up with the clock, which makes it exact under paused time.

use std::collections::BTreeMap;

use dlo_core::{Error, ErrorKind, Message, Millis, Result};

use crate::{
    DeadLetterTo, QueueKind, Reason,
    clock::Clock,
    death::{self, Death},
    demo::Actor,
    exchange::Exchange,
    fault::Faults,
    log::Log,
    mover::Move,
    queue::{Held, Owner, Queue, Stored},
};

/// How a session stands to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Open,
    /// Closed by its own side.
    Closed,
    /// Broken: what was on its way is unknown.
    Lost,
}

#[derive(Debug)]
pub(crate) struct State {
    pub clock: Clock,
    /// What the broker calls itself.
    pub product: &'static str,
    pub queues: BTreeMap<String, Queue>,
    pub logs: BTreeMap<String, Log>,
    pub exchanges: BTreeMap<String, Exchange>,
    pub faults: Faults,
    pub moves: Vec<Move>,
    pub actors: Vec<Box<dyn Actor>>,
    /// Counts every change that somebody may wait for.
    pub version: u64,
    links: BTreeMap<u64, Link>,
    last: u64,
}

impl State {
    pub fn new() -> Self {
        Self {
            clock: Clock::new(),
            product: "Memory broker",
            queues: BTreeMap::new(),
            logs: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            faults: Faults::default(),
            moves: Vec::new(),
            actors: Vec::new(),
            version: 0,
            links: BTreeMap::new(),
            last: 0,
        }
    }

    /// A number that was never given before: for places, tokens, sessions and looks.
    pub fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    pub fn queue(&mut self, name: &str) -> Result<&mut Queue> {
        self.queues
            .get_mut(name)
            .ok_or_else(|| not_found("find the queue", "queue", name))
    }

    pub fn log(&mut self, name: &str) -> Result<&mut Log> {
        self.logs
            .get_mut(name)
            .ok_or_else(|| not_found("find the topic", "topic", name))
    }

    /// Does what is due: actors act, holds run out, messages expire, moves move.
    pub fn catch_up(&mut self) {
        let now = self.now();
        self.act(now);
        self.end_holds(now);
        self.expire(now);
        self.go_on_moving(now);
        for log in self.logs.values_mut() {
            log.forget(now);
        }
    }

    /// The next moment at which something happens by itself.
    pub fn next_event(&self) -> Option<Millis> {
        let queues = self.queues.values().filter_map(Queue::next_event);
        let actors = self.actors.iter().map(|actor| actor.due());
        let moves = self.moves.iter().filter_map(|task| task.due(self.now()));
        queues.chain(actors).chain(moves).min()
    }

    fn act(&mut self, now: Millis) {
        let mut actors = std::mem::take(&mut self.actors);
        for actor in &mut actors {
            actor.act(self, now);
        }
        self.actors = actors;
    }

    fn end_holds(&mut self, now: Millis) {
        for name in self.names() {
            let out = self.queues.get_mut(&name).map(|queue| queue.run_out(now));
            for stored in out.into_iter().flatten() {
                self.come_back(&name, stored);
            }
        }
    }

    fn expire(&mut self, now: Millis) {
        for name in self.names() {
            let Some(queue) = self.queues.get_mut(&name) else {
                continue;
            };
            let is_sqs = queue.kind().is_sqs();
            for stored in queue.expired(now) {
                self.version += 1;
                // SQS deletes what is older than its retention; RabbitMQ dead-letters it.
                if !is_sqs {
                    self.bury(&name, stored, Reason::Expired);
                }
            }
        }
    }

    fn names(&self) -> Vec<String> {
        self.queues.keys().cloned().collect()
    }

    /// Stores a message in a queue and dead-letters what is too much for it then.
    pub fn store(&mut self, queue: &str, stored: Stored) {
        self.version += 1;
        let Some(target) = self.queues.get_mut(queue) else {
            return;
        };
        target.put(stored);
        while let Some(first) = self.queues.get_mut(queue).and_then(Queue::overflow) {
            self.bury(queue, first, Reason::MaxLen);
        }
    }

    /// Takes the next message for an owner and holds it until that time; gives its token.
    ///
    /// As in SQS, a message that was received too often already goes to the dead-letter queue instead.
    pub fn take(
        &mut self,
        queue: &str,
        owner: Owner,
        after: Option<u64>,
        until: Millis,
    ) -> Result<Option<u64>> {
        let now = self.now();
        loop {
            let Some(mut stored) = self.queue(queue)?.first_for(owner, after) else {
                return Ok(None);
            };
            if let Some(target) = self.redrive_target(queue, &stored) {
                self.move_to_dead_letters(queue, &target, stored);
                continue;
            }
            let token = self.number();
            if self.queue(queue)?.kind().is_sqs() {
                stored.count += 1;
                stored.first_received.get_or_insert(now);
            }
            let held = Held {
                stored,
                until,
                owner,
            };
            self.queue(queue)?.hold(token, held);
            self.version += 1;
            return Ok(Some(token));
        }
    }

    fn redrive_target(&self, queue: &str, stored: &Stored) -> Option<String> {
        match &self.queues.get(queue)?.settings.dead_letter {
            Some(DeadLetterTo::Queue {
                queue,
                max_receive_count,
            }) if stored.count >= u64::from(*max_receive_count) => Some(queue.clone()),
            _ => None,
        }
    }

    fn move_to_dead_letters(&mut self, from: &str, to: &str, mut stored: Stored) {
        let now = self.now();
        let place = self.number();
        let Some(target) = self.queues.get_mut(to) else {
            return;
        };
        stored.place = place;
        stored.source = Some(from.to_owned());
        if target.kind() == QueueKind::Fifo {
            // A FIFO dead-letter queue counts the age anew and takes the message id for deduplication.
            stored.sent = now;
            let id = dlo_core::Value::text(stored.id.clone());
            stored
                .message
                .properties
                .insert("MessageDeduplicationId".to_owned(), id);
        }
        stored.expires = target.expiry_of(&stored.message, stored.sent);
        self.store(to, stored);
    }

    /// Removes a held message for good.
    pub fn remove(&mut self, queue: &str, token: u64, owner: Owner) -> Option<Stored> {
        self.version += 1;
        self.queues.get_mut(queue)?.take_held(token, owner)
    }

    /// Gives a held message back to its place; false when it is not held any more.
    pub fn give_back(&mut self, queue: &str, token: u64, owner: Owner) -> GaveBack {
        match self.remove(queue, token, owner) {
            Some(stored) => {
                self.come_back(queue, stored);
                GaveBack::Yes
            }
            None => GaveBack::NotHeld,
        }
    }

    fn come_back(&mut self, queue: &str, mut stored: Stored) {
        self.version += 1;
        let Some(target) = self.queues.get_mut(queue) else {
            return;
        };
        stored.redelivered = true;
        let limit = target.settings.delivery_limit.map(u64::from);
        if target.kind() == QueueKind::Quorum {
            stored.count += 1;
            if limit.is_some_and(|limit| stored.count > limit) {
                self.bury(queue, stored, Reason::DeliveryLimit);
                return;
            }
        }
        target.put(stored);
    }

    /// Sends a message to the queue's dead-letter exchange, or drops it when there is none, as RabbitMQ does.
    pub fn bury(&mut self, queue: &str, mut stored: Stored, reason: Reason) {
        self.version += 1;
        let settings = self.queues.get(queue).map(|queue| &queue.settings);
        let Some(DeadLetterTo::Exchange {
            exchange,
            routing_key,
        }) = settings.and_then(|settings| settings.dead_letter.clone())
        else {
            return;
        };
        let now = self.now();
        let carbon = death::carbon_copies(&stored.message);
        let death = Death {
            queue,
            reason,
            exchange: &stored.exchange,
            routing_keys: std::iter::once(stored.routing_key.clone())
                .chain(carbon.iter().cloned())
                .collect(),
            at: now,
        };
        death::mark(&mut stored.message, &death);
        let keys = match routing_key {
            Some(key) => {
                stored.message.headers.retain(|header| header.name != "CC");
                vec![key]
            }
            None => std::iter::once(stored.routing_key.clone())
                .chain(carbon)
                .collect(),
        };
        for target in self.route_all(&exchange, &keys) {
            if !death::is_cycle(&stored.message, &target, reason) {
                self.arrive(&target, stored.message.clone(), &exchange, &keys[0], now);
            }
        }
    }

    /// The queues that an exchange sends a message with any of these keys to, each once.
    pub fn route_all(&self, exchange: &str, keys: &[String]) -> Vec<String> {
        let mut queues: Vec<String> = Vec::new();
        for key in keys {
            for queue in self.route(exchange, key) {
                if !queues.contains(&queue) {
                    queues.push(queue);
                }
            }
        }
        queues
    }

    fn route(&self, exchange: &str, key: &str) -> Vec<String> {
        let direct = || {
            self.queues
                .contains_key(key)
                .then(|| key.to_owned())
                .into_iter()
                .collect()
        };
        match self.exchanges.get(exchange) {
            _ if exchange.is_empty() => direct(),
            Some(exchange) => exchange.route(key),
            None => Vec::new(),
        }
    }

    /// A message arrives in a queue.
    pub fn arrive(
        &mut self,
        queue: &str,
        message: Message,
        exchange: &str,
        routing_key: &str,
        sent: Millis,
    ) -> Option<String> {
        let place = self.number();
        let expires = self.queues.get(queue)?.expiry_of(&message, sent);
        let id = message_id(place);
        let stored = Stored {
            place,
            id: id.clone(),
            message,
            exchange: exchange.to_owned(),
            routing_key: routing_key.to_owned(),
            sent,
            count: 0,
            redelivered: false,
            first_received: None,
            expires,
            source: None,
            facts: BTreeMap::new(),
        };
        self.store(queue, stored);
        Some(id)
    }

    pub fn connect(&mut self) -> u64 {
        let session = self.number();
        self.links.insert(session, Link::Open);
        session
    }

    pub fn link(&self, session: u64) -> Link {
        self.links.get(&session).copied().unwrap_or(Link::Closed)
    }

    /// Ends a session; what it holds goes back.
    pub fn disconnect(&mut self, session: u64, how: Link) {
        if self.link(session) != Link::Open {
            return;
        }
        self.links.insert(session, how);
        self.version += 1;
        for name in self.names() {
            let held = self.queues.get(&name).map(|q| q.held_by_session(session));
            for (token, owner) in held.into_iter().flatten() {
                self.give_back(&name, token, owner);
            }
        }
    }

    /// Breaks all connections, as a broker does that is restarted.
    pub fn break_all(&mut self) {
        let open: Vec<_> = self.links.keys().copied().collect();
        for session in open {
            self.disconnect(session, Link::Lost);
        }
    }
}

/// Whether a message could be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GaveBack {
    Yes,
    NotHeld,
}

/// A message id that looks like SQS's and is the same in every run.
fn message_id(number: u64) -> String {
    let mixed = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    uuid::Builder::from_random_bytes(mixed.to_be_bytes())
        .into_uuid()
        .to_string()
}

pub(crate) fn not_found(operation: &str, what: &'static str, name: &str) -> Error {
    let words = format!("there is no such {what}");
    Error::new(ErrorKind::NotFound, operation, words)
        .with(what, name)
        .advise("Check the name; the list shows what is there.")
}
