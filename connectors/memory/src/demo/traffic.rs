//! The live part: a shop that publishes orders, a handler that fails on some of them, and readers of the rest. So depth,
//! growth and returns move, and what is replayed meets the same handler as in the story.

use dlo_core::{Millis, Partitioning};

use crate::{broker::Taken, queue::Owner, state::State};

use super::{
    Actor, ORDER_KEY, ORDERS, SEED, minutes,
    orders::{self, Kind, Packing},
    queues::{INVOICES, invoice},
    random::Random,
    topics::{EVENTS, append, dead_event, order_placed},
};

/// After a longer pause actors do not make up for what they have missed: nobody was there to see it.
const LONGEST_PAUSE: i64 = minutes(10);

/// The people of the demo, from that time on.
pub(super) fn actors(now: Millis) -> Vec<Box<dyn Actor>> {
    let timed = |every: i64, what: What, seed: u64| -> Box<dyn Actor> {
        Box::new(Timed {
            due: now.plus(every),
            every,
            what,
            turns: 0,
            random: Random::new(SEED + seed),
        })
    };
    vec![
        timed(500, What::Orders, 1),
        timed(250, What::Handle, 2),
        timed(5_000, What::Audit, 3),
        timed(1_000, What::Events, 4),
        timed(15_000, What::Invoices, 5),
    ]
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// The shop publishes an order; about 40 an hour have no price.
    Orders,
    /// The handler works on `orders`.
    Handle,
    /// The audit reads `audit.copy`, but not at once.
    Audit,
    /// Events are written and read; now and then one dies.
    Events,
    /// Invoices are sent; every twentieth is never acknowledged.
    Invoices,
}

/// Does one thing at regular times.
#[derive(Debug)]
struct Timed {
    due: Millis,
    every: i64,
    what: What,
    turns: u64,
    random: Random,
}

impl Actor for Timed {
    fn due(&self) -> Millis {
        self.due
    }

    fn act(&mut self, state: &mut State, now: Millis) {
        self.due = self.due.max(now.plus(-LONGEST_PAUSE));
        while self.due <= now {
            let at = self.due;
            self.turn(state, at);
            self.turns += 1;
            self.due = self.due.plus(self.every);
        }
    }
}

impl Timed {
    fn turn(&mut self, state: &mut State, at: Millis) {
        match self.what {
            What::Orders => self.publish_order(state, at),
            What::Handle => self.handle_orders(state, at),
            What::Audit => read_older(state, "audit.copy", at.plus(-30_000)),
            What::Events => self.write_event(state, at),
            What::Invoices => self.send_invoice(state),
        }
    }

    fn publish_order(&mut self, state: &mut State, at: Millis) {
        // Two a second, and one in 180 without a price: forty an hour.
        let kind = if self.turns % 180 == 90 {
            Kind::NullPrice
        } else {
            Kind::Good
        };
        let number = 500_000 + self.turns;
        let message = orders::order(number, kind, Packing::Plain, at, &mut self.random);
        for queue in state.route_all(ORDERS, &[ORDER_KEY.to_owned()]) {
            state.arrive(&queue, message.clone(), ORDERS, ORDER_KEY, at);
        }
    }

    /// Works on what has waited for some seconds, at most 25 at a time: 100 a second.
    fn handle_orders(&mut self, state: &mut State, at: Millis) {
        let wait = self.random.between(1_000, 9_000);
        for _ in 0..25 {
            let Some(taken) = take_older(state, ORDERS, at.plus(-wait)) else {
                break;
            };
            match orders::handle(&taken.message) {
                Ok(()) => state.ack_as_client(&taken),
                Err(failure) => reject(state, &taken, failure),
            }
        }
    }

    fn write_event(&mut self, state: &mut State, at: Millis) {
        let event = order_placed(self.random.below(400), at, &mut self.random);
        append(state, EVENTS, event, at, Partitioning::ByKey);
        if self.turns % 120 == 60 {
            let number = 120 + i64::try_from(self.turns / 120).unwrap_or_default();
            dead_event(state, number, at, &mut self.random);
        }
        if self.turns.is_multiple_of(5) {
            commit(state);
        }
    }

    fn send_invoice(&mut self, state: &mut State) {
        let number = i64::try_from(self.turns).unwrap_or_default();
        let at = state.now();
        let message = invoice(1_000 + number, &mut self.random);
        state.arrive(INVOICES, message, "", INVOICES, at);
        // One in twenty is taken and never acknowledged, so it comes back until SQS gives up on it.
        while let Some(taken) = state.take_as_client(INVOICES) {
            if !is_poison(&taken) {
                state.ack_as_client(&taken);
            }
        }
    }
}

/// Two readers of the events: one keeps up, the other stays forty behind.
fn commit(state: &mut State) {
    let Ok(log) = state.log(EVENTS) else { return };
    let ends: Vec<_> = log.numbered().map(|(id, log)| (id, log.next)).collect();
    for (group, behind) in [("billing", 40), ("shipping", 0)] {
        let group = log.groups.entry(group.to_owned()).or_default();
        for (partition, end) in &ends {
            group.committed.insert(*partition, (end - behind).max(0));
        }
    }
}

fn is_poison(taken: &Taken) -> bool {
    let body = taken.message.body.as_deref().unwrap_or_default();
    let Ok(json) = serde_json::from_slice::<serde_json::Value>(body) else {
        return true;
    };
    let number = json
        .get("invoice")
        .and_then(|invoice| invoice.as_str())
        .and_then(|invoice| invoice.trim_start_matches("i-").parse::<u64>().ok());
    number.is_none_or(|number| number % 20 == 7)
}

fn reject(state: &mut State, taken: &Taken, failure: orders::Failure) {
    state.change_held(ORDERS, taken, |message| failure.mark(message));
    state.reject_as_client(ORDERS, taken.token());
}

fn read_older(state: &mut State, queue: &str, before: Millis) {
    while let Some(taken) = take_older(state, queue, before) {
        state.ack_as_client(&taken);
    }
}

/// The head of the queue, if it has waited long enough.
fn take_older(state: &mut State, queue: &str, before: Millis) -> Option<Taken> {
    let head = state.queues.get(queue)?.ready().next()?;
    (head.sent <= before)
        .then(|| state.take_as_client(queue))
        .flatten()
}

impl State {
    fn ack_as_client(&mut self, taken: &Taken) {
        self.remove(&taken.queue, taken.token(), Owner::CLIENT);
    }
}
