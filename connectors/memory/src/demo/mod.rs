//! The demo's broker: the story of an alarm at 03:10, with live traffic.
//!
//! Messages are shaped like those of RabbitMQ, Spring, Kafka Connect, SQS and Lambda. Contents come from one seed, times
//! count back from now.

mod encode;
mod orders;
mod queues;
mod random;
mod story;
mod topics;
mod traffic;

use std::{fmt::Debug, time::Duration};

use dlo_core::Millis;

use crate::{Broker, ExchangeKind, QueueSettings, state::State};

use random::Random;

/// The exchange and the queue of orders.
const ORDERS: &str = "orders";
const ORDER_KEY: &str = "order.created";
const SEED: u64 = 0x0310;

/// Somebody who uses the broker as time passes: a producer, a consumer. Acts whenever the broker is accessed, for all the
/// time that has passed since.
pub(crate) trait Actor: Debug + Send {
    /// When it wants to act next.
    fn due(&self) -> Millis;

    /// Does everything that is due by now.
    fn act(&mut self, state: &mut State, now: Millis);
}

/// Whether the demo's producer and consumer run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    #[default]
    On,
    Off,
}

/// A fresh broker with the demo's story.
pub fn broker(traffic: Traffic) -> Broker {
    let broker = Broker::new();
    declare(&broker);
    queues::declare(&broker);
    topics::declare(&broker);
    broker.with(|state| {
        // The engine has the demo's schemas under this name.
        state.product = "Demo broker";
        let mut random = Random::new(SEED);
        story::tell(state, &mut random);
        queues::fill(state, &mut random);
        topics::fill(state, &mut random);
        if traffic == Traffic::On {
            state.actors = traffic::actors(state.now());
        }
    });
    broker
}

/// The queues of the shop, shaped like RabbitMQ's.
fn declare(broker: &Broker) {
    broker.declare_exchange(ORDERS, ExchangeKind::Topic);
    broker.declare_exchange("orders.dlx", ExchangeKind::Direct);
    let dead = Some("orders.dlq");
    let orders = QueueSettings::quorum()
        .with_dead_letter_exchange("orders.dlx", dead)
        .with_consumers(3);
    broker.declare_queue(ORDERS, orders);
    // The oldest dead letters of the story, three days old, expire in eleven hours (and some minutes, for showing them).
    let kept = Duration::from_secs(83 * 3_600 + 15 * 60);
    broker.declare_queue(
        "orders.dlq",
        QueueSettings::quorum().with_time_to_live(kept),
    );
    let copies = QueueSettings::classic()
        .with_consumers(1)
        .with_max_length(5_000);
    broker.declare_queue("audit.copy", copies);
    let payments = QueueSettings::classic()
        .with_dead_letter_exchange("", Some("pay.dlq"))
        .with_consumers(2);
    broker.declare_queue("payments", payments);
    broker.declare_queue("pay.dlq", QueueSettings::classic());
    let bindings = [
        (ORDERS, ORDERS, "order.#"),
        (ORDERS, "audit.copy", "#"),
        ("orders.dlx", "orders.dlq", "orders.dlq"),
    ];
    for (exchange, queue, key) in bindings {
        // Both were declared just above, so this cannot fail.
        let bound = broker.bind(exchange, queue, key);
        debug_assert!(bound.is_ok());
    }
}

/// A span in milliseconds.
const fn minutes(count: i64) -> i64 {
    count * 60_000
}

const fn hours(count: i64) -> i64 {
    count * 3_600_000
}
