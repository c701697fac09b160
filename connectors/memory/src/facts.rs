//! Destinations with their facts, as the brokers they are shaped like would tell them.

use std::time::Duration;

use dlo_core::{
    Address, AddressKind, DeadLetters, Destination, Evidence, Figure, Millis, Result, Value,
    name_looks_dead,
};

use crate::{
    DeadLetterTo, ExchangeKind, capability, cost,
    exchange::Exchange,
    log::Log,
    queue::{Queue, Stored},
    state::{State, not_found},
};

/// The limit that the window looks with by default.
const DEFAULT_LIMIT: u64 = 10_000;

impl State {
    pub fn destinations(&self) -> Vec<Destination> {
        let queues = self.queues.values().map(|queue| self.describe_queue(queue));
        let logs = self.logs.values().map(describe_log);
        let exchanges = self
            .exchanges
            .iter()
            .map(|(name, exchange)| describe_exchange(name, exchange));
        queues.chain(logs).chain(exchanges).collect()
    }

    pub fn describe(&self, at: &Address) -> Result<Destination> {
        let found = match at.kind {
            AddressKind::Exchange => self
                .exchanges
                .get(&at.name)
                .map(|exchange| describe_exchange(&at.name, exchange)),
            _ => self
                .logs
                .get(&at.name)
                .filter(|log| log.settings.kind == at.kind)
                .map(describe_log)
                .or_else(|| self.describe_queue_at(at)),
        };
        found.ok_or_else(|| not_found("describe the destination", kind_word(at.kind), &at.name))
    }

    fn describe_queue_at(&self, at: &Address) -> Option<Destination> {
        let queue = self
            .queues
            .get(&at.name)
            .filter(|_| at.kind == AddressKind::Queue);
        queue.map(|queue| self.describe_queue(queue))
    }

    fn describe_queue(&self, queue: &Queue) -> Destination {
        let sources = self.sources_of(&queue.name);
        let mut capability = capability::of_queue(&queue.settings);
        capability.redrive = self.has_sqs_sources(&queue.name);
        let count = |value| {
            if queue.kind().is_sqs() {
                Figure::about(value)
            } else {
                Figure::exact(value)
            }
        };
        Destination {
            dead_letters: dead_letters(&queue.name, &sources, queue.kind().is_sqs()),
            dead_letters_to: target_name(queue.settings.dead_letter.as_ref()),
            depth: count(queue.ready_count()),
            in_flight: count(queue.held_count()),
            delayed: Figure::exact(0),
            consumers: Figure::exact(u64::from(queue.settings.consumers)),
            oldest: earliest(queue.ready().map(died_or_sent)),
            expires: earliest(queue.ready().filter_map(|stored| stored.expires)),
            retention: queue.settings.time_to_live,
            look: cost::of_queue(queue, DEFAULT_LIMIT, !sources.is_empty()),
            facts: queue_facts(queue),
            sources,
            capability,
            ..Destination::new(Address::queue(&queue.name), queue.kind().label())
        }
    }
}

fn describe_log(log: &Log) -> Destination {
    let is_topic = log.settings.kind == AddressKind::Topic;
    let address = Address {
        kind: log.settings.kind,
        name: log.name.clone(),
    };
    let oldest = log.oldest();
    let expires = oldest.zip(log.settings.retention);
    Destination {
        dead_letters: dead_letters(&log.name, &log.settings.dead_letters_of, false),
        sources: log.settings.dead_letters_of.clone(),
        depth: Figure::at_most(log.span()),
        oldest: figure(oldest),
        expires: figure(expires.map(|(oldest, time)| oldest.plus(crate::clock::millis(time)))),
        retention: log.settings.retention,
        capability: capability::of_log(&log.settings),
        partitions: log.partition_facts(),
        groups: log.group_facts(),
        facts: log_facts(log),
        look: cost::of_log(),
        ..Destination::new(address, if is_topic { "topic" } else { "stream" })
    }
}

fn describe_exchange(name: &str, exchange: &Exchange) -> Destination {
    let label = match exchange.kind {
        ExchangeKind::Direct => "direct exchange",
        ExchangeKind::Topic => "topic exchange",
        ExchangeKind::Fanout => "fanout exchange",
    };
    let bindings = exchange
        .bindings()
        .map(|(queue, key)| ("binding".to_owned(), format!("{key} → {queue}")));
    Destination {
        capability: capability::of_exchange(),
        facts: bindings.collect(),
        ..Destination::new(Address::exchange(name), label)
    }
}

fn dead_letters(name: &str, sources: &[String], is_sqs: bool) -> DeadLetters {
    let setting = if is_sqs {
        "redrive policy of"
    } else {
        "dead-letter configuration of"
    };
    match sources {
        [] if name_looks_dead(name) => DeadLetters::Yes(Evidence::Name),
        [] => DeadLetters::No,
        sources => DeadLetters::Yes(Evidence::Configuration(format!(
            "{setting} {}",
            sources.join(", ")
        ))),
    }
}

fn target_name(target: Option<&DeadLetterTo>) -> Option<String> {
    target.map(|target| match target {
        DeadLetterTo::Queue { queue, .. } => queue.clone(),
        DeadLetterTo::Exchange {
            exchange,
            routing_key: Some(key),
        } if exchange.is_empty() => key.clone(),
        DeadLetterTo::Exchange { exchange, .. } => exchange.clone(),
    })
}

/// The time of the newest death, else that of the arrival.
fn died_or_sent(stored: &Stored) -> Millis {
    let deaths = match stored.message.header("x-death") {
        Some(Value::List(deaths)) => deaths.as_slice(),
        _ => &[],
    };
    let time = deaths.first().and_then(|death| death.value.get("time"));
    match time {
        Some(Value::Time(time)) => i64::try_from(*time).map_or(stored.sent, Millis),
        _ => stored.sent,
    }
}

fn earliest(times: impl Iterator<Item = Millis>) -> Figure<Millis> {
    figure(times.min())
}

fn figure(time: Option<Millis>) -> Figure<Millis> {
    time.map_or_else(Figure::unknown, Figure::exact)
}

fn queue_facts(queue: &Queue) -> Vec<(String, String)> {
    let settings = &queue.settings;
    let mut facts = vec![("type".to_owned(), settings.kind.label().to_owned())];
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    match &settings.dead_letter {
        Some(DeadLetterTo::Exchange {
            exchange,
            routing_key,
        }) => {
            fact("x-dead-letter-exchange", format!("{exchange:?}"));
            if let Some(key) = routing_key {
                fact("x-dead-letter-routing-key", key.clone());
            }
        }
        Some(DeadLetterTo::Queue {
            queue,
            max_receive_count,
        }) => fact(
            "redrive policy",
            format!("to {queue} after {max_receive_count} receives"),
        ),
        None => {}
    }
    if let Some(limit) = settings.delivery_limit {
        fact("delivery limit", limit.to_string());
    }
    if let Some(time) = settings.time_to_live {
        let name = if settings.kind.is_sqs() {
            "retention"
        } else {
            "x-message-ttl"
        };
        fact(name, span(time));
    }
    if let Some(most) = settings.max_length {
        fact("x-max-length", most.to_string());
    }
    if settings.kind.is_sqs() {
        fact("visibility time-out", span(settings.visibility));
    }
    facts
}

fn log_facts(log: &Log) -> Vec<(String, String)> {
    let settings = &log.settings;
    let cleanup = format!("{:?}", settings.cleanup).to_lowercase();
    let mut facts = vec![
        ("partitions".to_owned(), log.partitions.len().to_string()),
        ("cleanup.policy".to_owned(), cleanup),
        (
            "max.message.bytes".to_owned(),
            settings.max_bytes.to_string(),
        ),
    ];
    facts.extend(
        settings
            .retention
            .map(|time| ("retention".to_owned(), span(time))),
    );
    facts
}

/// A time span in its two largest units: `3 d 12 h`, `30 s`.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let mut rest = seconds;
    let mut words = Vec::new();
    for (unit, size) in units {
        if rest >= size && words.len() < 2 {
            words.push(format!("{} {unit}", rest / size));
            rest %= size;
        }
    }
    if words.is_empty() {
        return "0 s".to_owned();
    }
    words.join(" ")
}

pub(crate) fn kind_word(kind: AddressKind) -> &'static str {
    match kind {
        AddressKind::Queue => "queue",
        AddressKind::Topic => "topic",
        AddressKind::Exchange => "exchange",
        AddressKind::Subscription => "subscription",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        let text = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(
            [text(0), text(90), text(302_400), text(345_600)],
            ["0 s", "1 min 30 s", "3 d 12 h", "4 d"]
        );
    }
}
