//! Kafka Streams' dead letters, when `errors.dead.letter.queue.topic.name` is set (KIP-1034, Kafka 4.2).

use super::{
    Confidence, Death,
    field::Field,
    marks::{Marks, Newest, Plain},
};

const STREAMS: Plain = Plain {
    dialect: "Kafka Streams",
    marks: &["__streams.errors.topic", "__streams.errors.exception"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Class, "__streams.errors.exception"),
        (Field::Message, "__streams.errors.message"),
        (Field::Stack, "__streams.errors.stacktrace"),
        (Field::Topic, "__streams.errors.topic"),
        (Field::Partition, "__streams.errors.partition"),
        (Field::Offset, "__streams.errors.offset"),
    ],
    scope: "",
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = STREAMS.read(marks);
    for death in &mut deaths {
        super::spring_amqp::name_exceptions(death, "__streams.errors.stacktrace");
    }
    deaths
}
