//! RabbitMQ's own marks: `x-death` and what stands beside it (<https://www.rabbitmq.com/docs/dlx>).

use std::borrow::Cow;

use dlo_core::{Millis, Value};

use super::{
    Confidence, Death,
    field::{Field, fill, text},
    marks::Marks,
};

pub(super) const DIALECT: &str = "RabbitMQ";

/// One death for each entry of `x-death`: a queue and a reason, newest first as the broker keeps them.
pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    for name in ["x-death", "x-opt-deaths"] {
        if let Some(Value::List(entries)) = marks.first(name) {
            let entries = entries.iter().enumerate();
            let deaths: Vec<Death> = entries
                .filter(|(_, entry)| matches!(entry.value, Value::Table(_)))
                .map(|(index, entry)| read_entry(&format!("{name}[{index}]"), &entry.value))
                .collect();
            if !deaths.is_empty() {
                return with_first_death(marks, deaths);
            }
        }
    }
    read_short(marks, "x-last-death")
        .or_else(|| read_short(marks, "x-first-death"))
        .into_iter()
        .collect()
}

fn read_entry(at: &str, entry: &Value) -> Death {
    let mut death = Death::new(DIALECT, Confidence::Sure);
    let mut take = |field: Field, name: &str| {
        if let Some(value) = entry.get(name) {
            fill(&mut death, field, value, &format!("{at}.{name}"));
        }
    };
    take(Field::Class, "reason");
    take(Field::Queue, "queue");
    take(Field::Exchange, "exchange");
    take(Field::Attempts, "count");
    take(Field::First, "time");
    take(Field::First, "first-time");
    take(Field::Last, "last-time");
    take_keys(&mut death, at, entry);
    death.scope = death
        .attempts
        .map(|_| Cow::Borrowed("deaths from this queue for this reason"));
    // AMQP 0-9-1 tells only the first time of a pair; a single death is also the last one.
    if death.attempts == Some(1) && death.last.is_none() && death.first.is_some() {
        death.last = death.first;
        death.note_source(Field::Last.path(), format!("{at}.time"));
    }
    note_expiration(&mut death, entry);
    death
}

fn take_keys(death: &mut Death, at: &str, entry: &Value) {
    let Some(Value::List(keys)) = entry.get("routing-keys") else {
        return;
    };
    death.origin.routing_keys = keys.iter().filter_map(|key| text(&key.value)).collect();
    death.note_source(Field::RoutingKey.path(), format!("{at}.routing-keys"));
}

fn note_expiration(death: &mut Death, entry: &Value) {
    let ttl = entry
        .get("original-expiration")
        .or_else(|| entry.get("ttl"));
    if let Some(ttl) = ttl.and_then(text) {
        death.notes.push(format!(
            "The message had a time to live of {ttl} ms, which the broker took away when it set the message aside."
        ));
    }
}

/// The very first death is known by name even when its entry of `x-death` was compressed away.
fn with_first_death(marks: &Marks<'_>, mut deaths: Vec<Death>) -> Vec<Death> {
    if let Some(first) = read_short(marks, "x-first-death") {
        let known = deaths.iter().any(|death| {
            death.origin.queue == first.origin.queue && death.reason.class == first.reason.class
        });
        if !known {
            deaths.push(first);
        }
    }
    deaths
}

fn read_short(marks: &Marks<'_>, prefix: &str) -> Option<Death> {
    let mut death = Death::new(DIALECT, Confidence::Likely);
    for (field, suffix) in [
        (Field::Queue, "queue"),
        (Field::Class, "reason"),
        (Field::Exchange, "exchange"),
    ] {
        let name = format!("{prefix}-{suffix}");
        if let Some(value) = marks.first(&name) {
            fill(&mut death, field, value, &name);
        }
    }
    death.origin.queue.is_some().then_some(death)
}

/// Names the task that failed beside the broker's mark. Celery writes no marks of its own about failures
/// (<https://docs.celeryq.dev/en/stable/internals/protocol.html>), so its headers alone are no death.
pub(super) fn add_celery(marks: &Marks<'_>, deaths: &mut [Death]) {
    let Some(death) = deaths.first_mut().filter(|death| death.dialect == DIALECT) else {
        return;
    };
    let Some(task) = marks.text("task").filter(|_| marks.has("id")) else {
        return;
    };
    death.origin.handler = Some(task.to_owned());
    death.note_source(Field::Handler.path(), "task");
    if let Some(Value::Int(retries)) = marks.first("retries") {
        death
            .notes
            .push(format!("Celery had tried the task again {retries} times."));
    }
    if let Some(eta) = marks.text("eta").and_then(super::field::text_time) {
        note_eta(death, eta);
    }
}

fn note_eta(death: &mut Death, eta: Millis) {
    death
        .notes
        .push(format!("Celery was to run the task at {eta}."));
}
