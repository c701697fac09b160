//! Watermill's poison queue (Go), on any of its transports
//! (<https://watermill.io/docs/middlewares/#poison>).

use super::{
    Confidence, Death,
    field::Field,
    marks::{Marks, Newest, Plain},
};

const POISON: Plain = Plain {
    dialect: "Watermill",
    marks: &["reason_poisoned", "topic_poisoned"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Message, "reason_poisoned"),
        (Field::Topic, "topic_poisoned"),
        (Field::Handler, "handler_poisoned"),
    ],
    scope: "",
};

/// Watermill calls the source a topic; over AMQP it is a queue.
pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = POISON.read(marks);
    let over_amqp = marks
        .text("subscriber_poisoned")
        .is_some_and(|name| name.starts_with("amqp."));
    for death in deaths.iter_mut().filter(|_| over_amqp) {
        death.origin.queue = death.origin.topic.take();
        if let Some(source) = death.from.remove(Field::Topic.path()) {
            death.note_source(Field::Queue.path(), source);
        }
    }
    deaths
}
