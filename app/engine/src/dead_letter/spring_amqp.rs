//! Spring AMQP's `RepublishMessageRecoverer`, also behind Spring Cloud Stream's `republishToDlq` on RabbitMQ
//! (<https://docs.spring.io/spring-amqp/reference/amqp/resilience-recovering-from-errors-and-broker-failures.html>).

use super::{
    Confidence, Death,
    field::Field,
    marks::{Marks, Newest, Plain},
};
use crate::group::stack;

const RECOVERER: Plain = Plain {
    dialect: "Spring AMQP",
    marks: &["x-original-exchange", "x-original-routingKey"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Message, "x-exception-message"),
        (Field::Stack, "x-exception-stacktrace"),
        (Field::Exchange, "x-original-exchange"),
        (Field::RoutingKey, "x-original-routingKey"),
        (Field::Attempts, "retry_count"),
        (Field::Attempts, "retry-count"),
    ],
    scope: "retries that the application counted",
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = RECOVERER.read(marks);
    for death in &mut deaths {
        name_exceptions(death, "x-exception-stacktrace");
        if !marks.has("x-exception-message") {
            death.confidence = Confidence::Weak;
        }
    }
    deaths
}

/// Reads class and cause from the stack where no header of their own names them. The message is that of the root cause.
pub(super) fn name_exceptions(death: &mut Death, source: &str) {
    let Some(text) = death.reason.stack.as_deref() else {
        return;
    };
    let (class, cause) = (stack::head_class(text), stack::root_class(text));
    let (class, cause) = (class.map(str::to_owned), cause.map(str::to_owned));
    if death.reason.class.is_none() && class.is_some() {
        death.reason.class = class;
        death.note_source(Field::Class.path(), source);
    }
    if death.reason.cause.is_none() && cause.is_some() && cause != death.reason.class {
        death.reason.cause = cause;
        death.note_source(Field::Cause.path(), source);
    }
}
