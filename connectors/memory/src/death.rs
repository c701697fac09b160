//! What a broker writes on a message when it sets it aside: RabbitMQ's `x-death` and its company
//! (<https://www.rabbitmq.com/docs/dlx#effects>), in the field types that real brokers use.

use std::fmt;

use dlo_core::{Header, Message, Millis, Typed, Value};

/// Why RabbitMQ dead-letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Rejected,
    Expired,
    MaxLen,
    DeliveryLimit,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLen => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        })
    }
}

/// One death: where the message died and how it had come there.
#[derive(Clone, Debug)]
pub(crate) struct Death<'a> {
    pub queue: &'a str,
    pub reason: Reason,
    pub exchange: &'a str,
    pub routing_keys: Vec<String>,
    pub at: Millis,
}

/// Writes the death into the headers: counted up when the same queue and reason are there already, else put in front.
pub(crate) fn mark(message: &mut Message, death: &Death<'_>) {
    let expiration = message.properties.remove("expiration");
    let mut deaths = take_deaths(message);
    let same = deaths.iter().position(|entry| is_same(entry, death));
    let entry = match same {
        Some(place) => counted_up(deaths.remove(place)),
        None => new_entry(death, expiration),
    };
    deaths.insert(0, entry);
    let list = Value::List(deaths);
    message
        .headers
        .insert(0, Header::new("x-death", "array", list));
    set_ends(message, death);
}

/// True when a dead-lettering would go round in a circle: the target was passed before, and nobody ever rejected the
/// message on the way (<https://www.rabbitmq.com/docs/dlx#cycles>).
pub(crate) fn is_cycle(message: &Message, target: &str, reason: Reason) -> bool {
    let entries = match message.header("x-death") {
        Some(Value::List(entries)) => entries.as_slice(),
        _ => &[],
    };
    let text = |entry: &Typed, name: &str| {
        entry
            .value
            .get(name)
            .and_then(Value::as_text)
            .map(str::to_owned)
    };
    reason != Reason::Rejected
        && entries
            .iter()
            .any(|entry| text(entry, "queue").as_deref() == Some(target))
        && entries
            .iter()
            .all(|entry| text(entry, "reason").as_deref() != Some("rejected"))
}

/// The further routing keys that a publisher gave in the `CC` header.
pub(crate) fn carbon_copies(message: &Message) -> Vec<String> {
    match message.header("CC") {
        Some(Value::List(keys)) => keys
            .iter()
            .filter_map(|key| key.value.as_text().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

fn take_deaths(message: &mut Message) -> Vec<Typed> {
    let place = message.headers.iter().position(|h| h.name == "x-death");
    match place.map(|place| message.headers.remove(place).typed.value) {
        Some(Value::List(entries)) => entries,
        _ => Vec::new(),
    }
}

fn is_same(entry: &Typed, death: &Death<'_>) -> bool {
    let text = |name| entry.value.get(name).and_then(Value::as_text);
    text("queue") == Some(death.queue) && text("reason") == Some(&death.reason.to_string())
}

fn counted_up(entry: Typed) -> Typed {
    let Value::Table(mut fields) = entry.value else {
        return entry;
    };
    for field in &mut fields {
        if let (true, Value::Int(count)) = (field.name == "count", &mut field.typed.value) {
            *count += 1;
        }
    }
    Typed::new("table", Value::Table(fields))
}

fn new_entry(death: &Death<'_>, expiration: Option<Value>) -> Typed {
    let keys = death
        .routing_keys
        .iter()
        .map(|key| Typed::new("longstr", Value::text(key.clone())));
    // The field counts whole seconds, as AMQP's timestamp does.
    let seconds = i128::from(death.at.0.div_euclid(1_000));
    let mut fields = vec![
        Header::new("count", "int64", Value::Int(1)),
        Header::new("reason", "longstr", Value::text(death.reason.to_string())),
        Header::new("queue", "longstr", Value::text(death.queue)),
        Header::new("time", "timestamp", Value::Time(seconds * 1_000)),
        Header::new("exchange", "longstr", Value::text(death.exchange)),
        Header::new("routing-keys", "array", Value::List(keys.collect())),
    ];
    if let Some(expiration) = expiration {
        fields.push(Header::new("original-expiration", "longstr", expiration));
    }
    Typed::new("table", Value::Table(fields))
}

/// The first death stays, the last one changes.
fn set_ends(message: &mut Message, death: &Death<'_>) {
    let reason = death.reason.to_string();
    let facts = [
        ("exchange", death.exchange),
        ("queue", death.queue),
        ("reason", reason.as_str()),
    ];
    for (fact, value) in facts {
        let first = format!("x-first-death-{fact}");
        if message.header(&first).is_none() {
            message
                .headers
                .push(Header::new(first, "longstr", Value::text(value)));
        }
        let last = format!("x-last-death-{fact}");
        message.headers.retain(|header| header.name != last);
        message
            .headers
            .push(Header::new(last, "longstr", Value::text(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn die(message: &mut Message, queue: &str, reason: Reason) {
        let death = Death {
            queue,
            reason,
            exchange: "orders",
            routing_keys: vec!["orders.created".to_owned()],
            at: Millis(1_700_000_000_123),
        };
        mark(message, &death);
    }

    fn entries(message: &Message) -> Vec<(String, i128)> {
        let Some(Value::List(entries)) = message.header("x-death") else {
            return Vec::new();
        };
        entries
            .iter()
            .map(|entry| {
                let queue = entry.value.get("queue").and_then(Value::as_text);
                let count = entry.value.get("count").and_then(Value::as_int);
                (queue.unwrap_or_default().to_owned(), count.unwrap_or(0))
            })
            .collect()
    }

    #[test]
    fn newest_death_stands_first_and_the_same_death_is_counted() {
        let mut message = Message::default();
        die(&mut message, "orders", Reason::Rejected);
        die(&mut message, "retry", Reason::Expired);
        die(&mut message, "orders", Reason::Rejected);
        let expected = [("orders".to_owned(), 2), ("retry".to_owned(), 1)];
        assert_eq!(entries(&message), expected);
        let text = |name| message.header(name).and_then(Value::as_text);
        assert_eq!(text("x-first-death-queue"), Some("orders"));
        assert_eq!(text("x-last-death-reason"), Some("rejected"));
    }

    #[test]
    fn the_expiration_moves_into_the_entry() {
        let mut message = Message::default();
        let set = message
            .properties
            .insert("expiration".to_owned(), Value::text("1000"));
        assert_eq!(set, None);
        die(&mut message, "orders", Reason::Expired);
        let Some(Value::List(deaths)) = message.header("x-death") else {
            panic!("no x-death");
        };
        let original = deaths[0].value.get("original-expiration");
        assert_eq!(original.and_then(Value::as_text), Some("1000"));
        assert!(message.properties.is_empty());
    }

    #[test]
    fn only_a_circle_without_a_rejection_is_a_cycle() {
        let mut message = Message::default();
        die(&mut message, "a", Reason::Expired);
        assert!(is_cycle(&message, "a", Reason::Expired));
        assert!(!is_cycle(&message, "b", Reason::Expired));
        die(&mut message, "b", Reason::Rejected);
        assert!(!is_cycle(&message, "a", Reason::Expired));
    }
}
