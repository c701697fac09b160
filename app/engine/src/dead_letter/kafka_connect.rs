//! Kafka Connect's sink dead letters, when `errors.deadletterqueue.context.headers.enable` is on
//! (<https://kafka.apache.org/documentation/#connect>, KIP-298).

use super::{
    Confidence, Death,
    field::Field,
    marks::{Marks, Newest, Plain},
};

const CONNECT: Plain = Plain {
    dialect: "Kafka Connect",
    marks: &["__connect.errors.topic", "__connect.errors.connector.name"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Topic, "__connect.errors.topic"),
        (Field::Partition, "__connect.errors.partition"),
        (Field::Offset, "__connect.errors.offset"),
        (Field::Handler, "__connect.errors.connector.name"),
        (Field::Class, "__connect.errors.exception.class.name"),
        (Field::Message, "__connect.errors.exception.message"),
        (Field::Stack, "__connect.errors.exception.stacktrace"),
    ],
    scope: "",
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = CONNECT.read(marks);
    for death in &mut deaths {
        super::spring_amqp::name_exceptions(death, "__connect.errors.exception.stacktrace");
    }
    if let (Some(death), Some(stage)) = (deaths.first_mut(), marks.text("__connect.errors.stage")) {
        let task = marks.text("__connect.errors.task.id").unwrap_or("?");
        let class = marks
            .text("__connect.errors.class.name")
            .unwrap_or("an unnamed class");
        death
            .notes
            .push(format!("Task {task} failed at stage {stage}, in {class}."));
    }
    deaths
}
