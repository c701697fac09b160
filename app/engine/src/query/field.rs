//! What can be asked about: the fields by their names, and one test of a query.

use std::cmp::Ordering;

use regex::bytes::Regex;

use super::{
    json::{Ask, Literal, Step},
    number::Number,
    time::Moment,
};

/// All fields with what they are, for completion in the filter field.
pub const FIELDS: [(&str, &str); 24] = [
    ("key", "the message's key"),
    ("body", "the body's text"),
    ("reason", "exception, cause, message and stack"),
    (
        "class",
        "transient, throttled, contract, business, bug, or the exception",
    ),
    ("message", "the exception's message"),
    ("stack", "the stack trace"),
    (
        "origin",
        "queue, topic, exchange or routing key it came from",
    ),
    ("group", "the label of the failure group"),
    (
        "consumer",
        "the consumer group, connector, handler or function that failed",
    ),
    ("dialect", "who wrote the marks, for example Spring Kafka"),
    ("position", "partition:offset, index or message id"),
    ("header", "header.NAME: a header"),
    ("property", "property.NAME: a property such as content_type"),
    ("fact", "fact.NAME: what the broker says beside the message"),
    ("is", "is:pointer, is:null, is:empty or is:dead"),
    ("attempts", "how often it was tried"),
    ("deliveries", "how often the broker delivered it"),
    ("size", "bytes of the body"),
    ("partition", "partition of the dead letter"),
    ("offset", "offset of the dead letter"),
    ("time", "when it died, else its own time"),
    ("sent", "when the message was sent"),
    ("first", "its first failure"),
    ("last", "its last failure"),
];

/// A field that holds text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextField {
    /// Body, key, headers, reason: where a plain word is looked for.
    Anywhere,
    Key,
    Body,
    Reason,
    Class,
    Message,
    Stack,
    Origin,
    Group,
    Consumer,
    Dialect,
    Position,
    Header(String),
    Property(String),
    Fact(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberField {
    Attempts,
    Deliveries,
    Size,
    Partition,
    Offset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeField {
    Time,
    Sent,
    First,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    Pointer,
    Null,
    Empty,
    Dead,
}

/// A field of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Text(TextField),
    Number(NumberField),
    Time(TimeField),
    Is,
}

impl Field {
    /// The field with that name; `header`, `property` and `fact` need one more name and are read elsewhere.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "key" => Self::Text(TextField::Key),
            "body" => Self::Text(TextField::Body),
            "reason" => Self::Text(TextField::Reason),
            "class" | "exception" => Self::Text(TextField::Class),
            "message" => Self::Text(TextField::Message),
            "stack" => Self::Text(TextField::Stack),
            "origin" => Self::Text(TextField::Origin),
            "group" => Self::Text(TextField::Group),
            "consumer" | "handler" => Self::Text(TextField::Consumer),
            "dialect" => Self::Text(TextField::Dialect),
            "position" => Self::Text(TextField::Position),
            "attempts" => Self::Number(NumberField::Attempts),
            "deliveries" => Self::Number(NumberField::Deliveries),
            "size" => Self::Number(NumberField::Size),
            "partition" => Self::Number(NumberField::Partition),
            "offset" => Self::Number(NumberField::Offset),
            "time" | "age" => Self::Time(TimeField::Time),
            "sent" => Self::Time(TimeField::Sent),
            "first" => Self::Time(TimeField::First),
            "last" => Self::Time(TimeField::Last),
            "is" => Self::Is,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    Unequal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

impl Compare {
    pub(super) fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
        }
    }
}

/// What is asked of a text.
#[derive(Clone, Debug)]
pub(super) enum TextAsk {
    /// It is there at all.
    Exists,
    Null,
    /// Contains or matches.
    Matches(Regex),
    /// Is exactly.
    Is(String),
    /// Greater or less: headers that hold numbers.
    Order(Compare, Literal),
}

/// One test of a query. A negated operator is a [`super::Node::Not`] around one.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Text(TextField, TextAsk),
    Number(NumberField, Compare, Number),
    NumberRange(NumberField, Number, Number),
    Time(TimeField, Compare, Moment),
    TimeRange(TimeField, Moment, Moment),
    Json { steps: Vec<Step>, ask: Ask },
    Is(Is),
}
