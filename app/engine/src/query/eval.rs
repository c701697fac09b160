//! Whether a message matches.

use std::{borrow::Cow, cell::OnceCell, cmp::Ordering};

use dlo_core::{Millis, Position, Value};
use serde_json::Value as Json;

use super::{
    Node, Subject,
    field::{Compare, Is, NumberField, Test, TextAsk, TextField, TimeField},
    json::{self, Bare, Literal},
    number::Number,
    time::Moment,
};
use crate::{capture::value_text, dead_letter::Death};

/// Bodies up to this size are parsed when a test asks for a field and nobody has decoded them.
const LARGEST_BODY: usize = 64 << 20;

/// One message under a query; what is costly is made at most once.
pub(super) struct Evaluation<'a> {
    subject: &'a Subject<'a>,
    parsed: OnceCell<Option<Json>>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(subject: &'a Subject<'a>) -> Self {
        Self {
            subject,
            parsed: OnceCell::new(),
        }
    }

    /// The parser limits how deep trees are, so this recursion ends.
    pub(super) fn node(&self, node: &Node) -> bool {
        match node {
            Node::All(nodes) => nodes.iter().all(|node| self.node(node)),
            Node::Any(nodes) => nodes.iter().any(|node| self.node(node)),
            Node::Not(node) => !self.node(node),
            Node::Test(test) => self.test(test),
        }
    }

    fn test(&self, test: &Test) -> bool {
        match test {
            Test::Text(field, ask) => self.text(field, ask),
            Test::Number(field, compare, wanted) => self
                .number(*field)
                .is_some_and(|number| compare.accepts(number.cmp(wanted))),
            Test::NumberRange(field, from, until) => self
                .number(*field)
                .is_some_and(|number| number >= *from && number <= *until),
            Test::Time(field, compare, moment) => self
                .time(*field)
                .is_some_and(|time| self.compare_time(time, *compare, *moment)),
            Test::TimeRange(field, from, until) => self.time(*field).is_some_and(|time| {
                let (from, until) = (
                    from.span(self.subject.now).0,
                    until.span(self.subject.now).1,
                );
                (from..until).contains(&time.0)
            }),
            Test::Json { steps, ask } => {
                self.json().is_some_and(|json| json::any(json, steps, ask))
            }
            Test::Is(is) => self.is(*is),
        }
    }

    fn is(&self, is: Is) -> bool {
        let body = &self.subject.delivery.message.body;
        match is {
            Is::Pointer => self.deaths().any(|death| death.pointer.is_some()),
            Is::Null => body.is_none(),
            Is::Empty => body.as_ref().is_some_and(|body| body.is_empty()),
            Is::Dead => self.subject.death.is_some(),
        }
    }

    fn deaths(&self) -> impl Iterator<Item = &'a Death> {
        self.subject.death.into_iter().flat_map(Death::all)
    }

    fn json(&self) -> Option<&Json> {
        if let Some(json) = self.subject.json {
            return Some(json);
        }
        let parsed = self.parsed.get_or_init(|| {
            let body = self.subject.delivery.message.body.as_deref()?;
            let body = (body.len() <= LARGEST_BODY).then_some(body)?;
            serde_json::from_slice(body).ok()
        });
        parsed.as_ref()
    }

    fn number(&self, field: NumberField) -> Option<Number> {
        let delivery = self.subject.delivery;
        let number: i128 = match field {
            NumberField::Attempts => self.subject.death?.attempt_count()?.into(),
            NumberField::Deliveries => delivery.delivery_count?.into(),
            NumberField::Size => delivery.message.body.as_ref()?.len().try_into().ok()?,
            NumberField::Partition => match delivery.position {
                Position::Offset { partition, .. } => partition.into(),
                _ => return None,
            },
            NumberField::Offset => match delivery.position {
                Position::Offset { offset, .. } => offset.into(),
                Position::Index { index } => index.into(),
                Position::Id { .. } => return None,
            },
        };
        Some(number.into())
    }

    fn time(&self, field: TimeField) -> Option<Millis> {
        let death = self.subject.death;
        let own = self.subject.delivery.time;
        match field {
            TimeField::Time => death.and_then(Death::failed_at).or(own),
            TimeField::Sent => self.deaths().find_map(|death| death.sent).or(own),
            TimeField::First => self.deaths().filter_map(|death| death.first).min(),
            TimeField::Last => death.and_then(Death::failed_at),
        }
    }

    /// An age compares the other way round than a time: older is earlier.
    fn compare_time(&self, time: Millis, compare: Compare, moment: Moment) -> bool {
        let (from, until) = moment.span(self.subject.now);
        let order = if time.0 < from {
            Ordering::Less
        } else if time.0 >= until {
            Ordering::Greater
        } else {
            Ordering::Equal
        };
        compare.accepts(if moment.is_age() {
            order.reverse()
        } else {
            order
        })
    }

    fn text(&self, field: &TextField, ask: &TextAsk) -> bool {
        match ask {
            TextAsk::Null => self.is_null(field),
            TextAsk::Exists => self.any_text(field, &mut |_| true),
            TextAsk::Matches(pattern) => {
                self.any_text(field, &mut |text| pattern.is_match(text))
                    || (*field == TextField::Anywhere && self.any_leaf(pattern))
            }
            TextAsk::Is(wanted) => self.any_text(field, &mut |text| text == wanted.as_bytes()),
            TextAsk::Order(compare, literal) => self.any_text(field, &mut |text| {
                text_order(text, literal).is_some_and(|order| compare.accepts(order))
            }),
        }
    }

    /// A decoded body may hold what its bytes do not show (Avro, compression).
    fn any_leaf(&self, pattern: &regex::bytes::Regex) -> bool {
        let mut budget = json::BUDGET;
        self.subject
            .json
            .is_some_and(|json| json::any_leaf(json, pattern, &mut budget))
    }

    fn is_null(&self, field: &TextField) -> bool {
        let message = &self.subject.delivery.message;
        match field {
            TextField::Key => message.key.is_none(),
            TextField::Body => message.body.is_none(),
            TextField::Header(name) => matches!(message.header(name), Some(Value::Null)),
            _ => !self.any_text(field, &mut |_| true),
        }
    }

    /// True when some text of the field passes the check.
    fn any_text(&self, field: &TextField, check: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let delivery = self.subject.delivery;
        let message = &delivery.message;
        match field {
            TextField::Anywhere => {
                [TextField::Body, TextField::Key, TextField::Reason]
                    .iter()
                    .any(|field| self.any_text(field, check))
                    || message
                        .headers
                        .iter()
                        .any(|header| check(&value_bytes(header.value())))
            }
            TextField::Key => message.key.as_deref().is_some_and(check),
            TextField::Body => message.body.as_deref().is_some_and(check),
            TextField::Position => check(delivery.position.to_string().as_bytes()),
            TextField::Header(name) => {
                let mut named = message.headers.iter().filter(|header| header.name == *name);
                named.any(|header| check(&value_bytes(header.value())))
            }
            TextField::Property(name) => message
                .properties
                .get(name)
                .is_some_and(|value| check(&value_bytes(value))),
            TextField::Fact(name) => delivery
                .facts
                .get(name)
                .is_some_and(|value| check(&value_bytes(value))),
            TextField::Group => self
                .subject
                .group
                .is_some_and(|label| check(label.as_bytes())),
            TextField::Class => {
                self.subject
                    .class
                    .is_some_and(|class| check(class.word().as_bytes()))
                    || self.deaths().any(|death| any_of_death(death, field, check))
            }
            _ => self.deaths().any(|death| any_of_death(death, field, check)),
        }
    }
}

fn any_of_death(death: &Death, field: &TextField, check: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    let (reason, origin) = (&death.reason, &death.origin);
    let texts: [Option<&str>; 4] = match field {
        TextField::Reason => [
            reason.class.as_deref(),
            reason.cause.as_deref(),
            reason.message.as_deref(),
            reason.stack.as_deref(),
        ],
        TextField::Class => [reason.class.as_deref(), reason.cause.as_deref(), None, None],
        TextField::Message => [reason.message.as_deref(), None, None, None],
        TextField::Stack => [reason.stack.as_deref(), None, None, None],
        TextField::Origin => [
            origin.queue.as_deref(),
            origin.topic.as_deref(),
            origin.exchange.as_deref(),
            None,
        ],
        TextField::Consumer => [
            origin.group.as_deref(),
            origin.handler.as_deref(),
            None,
            None,
        ],
        TextField::Dialect => [Some(death.dialect.as_ref()), None, None, None],
        _ => [None; 4],
    };
    texts
        .into_iter()
        .flatten()
        .any(|text| check(text.as_bytes()))
        || (*field == TextField::Origin
            && origin.routing_keys.iter().any(|key| check(key.as_bytes())))
}

fn value_bytes(value: &Value) -> Cow<'_, [u8]> {
    match value {
        Value::Bytes(bytes) => Cow::Borrowed(bytes),
        Value::Null => Cow::Borrowed(b""),
        other => Cow::Owned(value_text(other).into_bytes()),
    }
}

/// Numbers when both are, else text.
fn text_order(text: &[u8], literal: &Literal) -> Option<Ordering> {
    let text = std::str::from_utf8(text).ok()?;
    match (&literal.bare, Number::parse(text)) {
        (Some(Bare::Number(wanted)), Some(number)) => Some(number.cmp(wanted)),
        (Some(Bare::Number(_)), None) => None,
        _ => Some(text.cmp(&literal.text)),
    }
}
