//! What a message must fulfil before it is sent: checked here, because a message that SQS refuses must not have been removed
//! from anywhere first, and because one bad message may spoil the batch it travels in.
//!
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html> and
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html>

use std::collections::HashSet;

use dlo_core::{Error, ErrorKind, Message, Value};

use crate::{
    attributes::{Attribute, Logical},
    delivery::{DEDUPLICATION, GROUP, TRACE},
    queue::{Order, Queue},
};

pub(crate) const MAX_ATTRIBUTES: usize = 10;
const DELAY: &str = "DelaySeconds";

/// A message that SQS will take, as far as its documentation tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub body: String,
    pub attributes: Vec<Attribute>,
    pub group: Option<String>,
    /// Given by a person; else a fresh one is made for FIFO queues.
    pub deduplication: Option<String>,
    pub trace: Option<String>,
    pub delay: Option<i32>,
    /// Bytes as SQS counts them.
    pub size: u64,
    /// Properties of another broker, which have no place in SQS.
    pub left_out: Vec<String>,
}

/// The message for that queue, or the error that says why SQS would refuse it.
pub(crate) fn check(message: &Message, queue: &Queue) -> Result<Ready, Error> {
    inspect(message, queue).map_err(|(kind, what)| {
        Error::new(kind, "send the message", what).with("queue", queue.name.clone())
    })
}

type Finding = (ErrorKind, String);

fn rejected<T>(what: impl Into<String>) -> Result<T, Finding> {
    Err((ErrorKind::Rejected, what.into()))
}

fn inspect(message: &Message, queue: &Queue) -> Result<Ready, Finding> {
    if message.key.is_some() {
        return rejected("SQS messages have no key; remove it in an edit");
    }
    let body = body(message)?;
    let attributes = attributes(message)?;
    let size = body.len() as u64 + attributes.iter().map(Attribute::size).sum::<u64>();
    if size > queue.max_bytes {
        let what = format!(
            "body and attributes are {size} bytes and the queue takes {}",
            queue.max_bytes
        );
        return Err((ErrorKind::TooLarge, what));
    }
    let known = [GROUP, DEDUPLICATION, TRACE, DELAY];
    Ok(Ready {
        group: group(message, queue)?,
        deduplication: id(message, DEDUPLICATION)?.filter(|_| queue.is_fifo()),
        trace: text(message, TRACE)?,
        delay: delay(message, queue)?,
        left_out: message
            .properties
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
            .cloned()
            .collect(),
        body,
        attributes,
        size,
    })
}

fn body(message: &Message) -> Result<String, Finding> {
    let Some(body) = &message.body else {
        return rejected("the body is null, and an SQS body has at least one character");
    };
    let Ok(text) = std::str::from_utf8(body) else {
        return rejected(
            "the body is not UTF-8 text; SQS carries bytes only in binary attributes or encoded, for example as base64",
        );
    };
    if text.is_empty() {
        return rejected("the body is empty, and an SQS body has at least one character");
    }
    if let Some((at, c)) = forbidden(text) {
        return rejected(format!(
            "the body holds U+{:04X} at byte {at}, which SQS does not take",
            c as u32
        ));
    }
    Ok(text.to_owned())
}

/// The first character outside `#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF`.
fn forbidden(text: &str) -> Option<(usize, char)> {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.char_indices().find(|(_, c)| !allowed(*c))
}

fn attributes(message: &Message) -> Result<Vec<Attribute>, Finding> {
    if message.headers.len() > MAX_ATTRIBUTES {
        return rejected(format!(
            "it has {} attributes and SQS takes {MAX_ATTRIBUTES}",
            message.headers.len()
        ));
    }
    let mut names = HashSet::new();
    let mut attributes = Vec::with_capacity(message.headers.len());
    for header in &message.headers {
        let attribute = Attribute::of(header).map_err(|what| (ErrorKind::Rejected, what))?;
        name(&attribute.name)?;
        data_type(&attribute)?;
        value(&attribute)?;
        if !names.insert(attribute.name.clone()) {
            return rejected(format!(
                "there are two attributes {}, and SQS takes one of a name",
                attribute.name
            ));
        }
        attributes.push(attribute);
    }
    Ok(attributes)
}

fn name(name: &str) -> Result<(), Finding> {
    let lower = name.to_ascii_lowercase();
    let good = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.len() > 256 || !name.chars().all(good) {
        return rejected(format!(
            "the attribute name {name:?} is not 1 to 256 of A-Z, a-z, 0-9, _, - and ."
        ));
    }
    if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        return rejected(format!(
            "the attribute name {name:?} begins or ends with a dot or holds two in a row"
        ));
    }
    if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        return rejected(format!(
            "the attribute name {name:?} begins with a prefix that AWS keeps for itself"
        ));
    }
    Ok(())
}

fn data_type(attribute: &Attribute) -> Result<(), Finding> {
    let data_type = &attribute.data_type;
    if data_type.len() > 256 || data_type.ends_with('.') || forbidden(data_type).is_some() {
        return rejected(format!(
            "the data type {data_type:?} of attribute {} is not one that SQS takes",
            attribute.name
        ));
    }
    Ok(())
}

fn value(attribute: &Attribute) -> Result<(), Finding> {
    let name = &attribute.name;
    if attribute.value.is_empty() {
        return rejected(format!(
            "the attribute {name} is empty, which SQS does not take"
        ));
    }
    if attribute.logical == Logical::Binary {
        return Ok(());
    }
    let Some(text) = attribute.text() else {
        return rejected(format!(
            "the attribute {name} is not UTF-8 text; give it the type Binary"
        ));
    };
    if let Some((at, c)) = forbidden(text) {
        return rejected(format!(
            "the attribute {name} holds U+{:04X} at byte {at}, which SQS does not take",
            c as u32
        ));
    }
    if attribute.logical == Logical::Number && !is_number(text) {
        return rejected(format!(
            "the attribute {name} is of type Number and {text:?} is not a number of up to 38 digits"
        ));
    }
    Ok(())
}

/// Up to 38 digits of precision between -10^128 and 10^126.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()),
        None => (text, Some(0)),
    };
    let digits = mantissa.chars().filter(char::is_ascii_digit).count();
    let dots = mantissa.chars().filter(|c| *c == '.').count();
    let significant = mantissa.replace('.', "").trim_start_matches('0').len();
    let plain = mantissa.chars().all(|c| c.is_ascii_digit() || c == '.');
    plain
        && digits > 0
        && dots <= 1
        && significant <= 38
        && exponent.is_some_and(|exponent| (-128..=126).contains(&exponent))
}

/// FIFO queues need a group. On a standard queue the group is a tenant of a fair queue, and is kept too.
fn group(message: &Message, queue: &Queue) -> Result<Option<String>, Finding> {
    let group = id(message, GROUP)?;
    if group.is_none() && queue.order == Order::Fifo {
        return rejected(format!("a FIFO queue needs a {GROUP}; set it in an edit"));
    }
    Ok(group)
}

/// Ids are up to 128 letters, digits and punctuation of ASCII.
fn id(message: &Message, name: &str) -> Result<Option<String>, Finding> {
    let Some(id) = text(message, name)? else {
        return Ok(None);
    };
    if id.is_empty() || id.len() > 128 || !id.chars().all(|c| c.is_ascii_graphic()) {
        return rejected(format!(
            "{name} {id:?} is not 1 to 128 letters, digits and punctuation"
        ));
    }
    Ok(Some(id))
}

fn text(message: &Message, name: &str) -> Result<Option<String>, Finding> {
    match message.properties.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_text() {
            Some(text) => Ok(Some(text.to_owned())),
            None => rejected(format!("{name} is not text")),
        },
    }
}

fn delay(message: &Message, queue: &Queue) -> Result<Option<i32>, Finding> {
    let Some(value) = message.properties.get(DELAY) else {
        return Ok(None);
    };
    let seconds = value.as_int().or_else(|| value.as_text()?.parse().ok());
    match seconds
        .and_then(|seconds| i32::try_from(seconds).ok())
        .filter(|seconds| (0..=900).contains(seconds))
    {
        None => rejected(format!("{DELAY} is not a number from 0 to 900")),
        Some(_) if queue.is_fifo() => {
            rejected(format!("a FIFO queue takes no {DELAY} of a single message"))
        }
        delay => Ok(delay),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dlo_core::Header;

    use super::*;
    use crate::queue::tests::queue;

    fn message(body: &[u8]) -> Message {
        Message {
            body: Some(Bytes::copy_from_slice(body)),
            ..Message::default()
        }
    }

    fn with(name: &'static str, kind: &'static str, value: &str) -> Message {
        Message {
            headers: vec![Header::new(name, kind, Value::text(value))],
            ..message(b"x")
        }
    }

    fn refused(message: &Message, kind: ErrorKind, words: &str) {
        let error = check(message, &queue("orders", &[])).expect_err(words);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }

    #[test]
    fn bodies_that_sqs_refuses_are_refused_first() {
        refused(&Message::default(), ErrorKind::Rejected, "null");
        refused(&message(b""), ErrorKind::Rejected, "empty");
        refused(&message(&[0xff]), ErrorKind::Rejected, "not UTF-8");
        for c in ["\0", "\u{1}", "\u{1f}", "\u{fffe}", "\u{ffff}"] {
            refused(
                &message(format!("a{c}b").as_bytes()),
                ErrorKind::Rejected,
                "at byte 1",
            );
        }
        refused(
            &message(&vec![b'x'; 1_048_577]),
            ErrorKind::TooLarge,
            "1048577 bytes",
        );
    }

    #[test]
    fn bodies_that_sqs_takes_pass() {
        for body in [
            "tab\tnl\ncr\r",
            "\u{7f}\u{85}\u{2028}",
            "\u{d7ff}\u{e000}\u{fffd}\u{10ffff}",
            "😀",
        ] {
            assert_eq!(
                check(&message(body.as_bytes()), &queue("q", &[]))
                    .map(|ready| ready.body)
                    .ok()
                    .as_deref(),
                Some(body)
            );
        }
        assert!(check(&message(&vec![b'x'; 1_048_576]), &queue("q", &[])).is_ok());
    }

    #[test]
    fn attributes_that_sqs_refuses_are_refused_first() {
        for name in ["", "a b", ".a", "a.", "a..b", "AWS.x", "amazon.x"] {
            refused(
                &with(name, "String", "v"),
                ErrorKind::Rejected,
                "attribute name",
            );
        }
        refused(&with("n", "String", ""), ErrorKind::Rejected, "is empty");
        refused(
            &with("n", "Number", "abc"),
            ErrorKind::Rejected,
            "not a number",
        );
        refused(&with("n", "String", "a\0"), ErrorKind::Rejected, "U+0000");
        let mut many = message(b"x");
        many.headers = (0..11)
            .map(|i| Header::new(format!("n{i}"), "String", Value::text("v")))
            .collect();
        refused(&many, ErrorKind::Rejected, "11 attributes");
        many.headers = vec![many.headers[0].clone(), many.headers[0].clone()];
        refused(&many, ErrorKind::Rejected, "two attributes n0");
    }

    #[test]
    fn attributes_count_towards_the_size() {
        let mut full = with("n", "String", "v");
        full.body = Some(Bytes::from(vec![b'x'; 1_048_576 - 8]));
        assert_eq!(
            check(&full, &queue("q", &[])).map(|ready| ready.size),
            Ok(1_048_576)
        );
        full.body = Some(Bytes::from(vec![b'x'; 1_048_576 - 7]));
        refused(&full, ErrorKind::TooLarge, "1048577 bytes");
    }

    #[test]
    fn numbers_are_numbers() {
        for good in [
            "0",
            "-1",
            "007.50",
            "1e126",
            "99999999999999999999999999999999999999",
            "+3.5E-7",
        ] {
            assert!(is_number(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "1.2.3",
            "0x10",
            "1e",
            "1e127",
            "999999999999999999999999999999999999999",
            "NaN",
            "1 ",
        ] {
            assert!(!is_number(bad), "{bad}");
        }
    }

    #[test]
    fn a_fifo_queue_needs_a_group_and_takes_no_delay() {
        let fifo = queue("orders.fifo", &[]);
        assert!(check(&message(b"x"), &fifo).is_err());
        let mut grouped = message(b"x");
        grouped
            .properties
            .insert(GROUP.to_owned(), Value::text("g"));
        assert_eq!(
            check(&grouped, &fifo).map(|ready| ready.group),
            Ok(Some("g".to_owned()))
        );
        grouped.properties.insert(DELAY.to_owned(), Value::Int(5));
        assert!(check(&grouped, &fifo).is_err());
    }

    #[test]
    fn properties_of_other_brokers_are_named_as_left_out() {
        let mut amqp = message(b"x");
        amqp.properties
            .insert("content_type".to_owned(), Value::text("text/plain"));
        assert_eq!(
            check(&amqp, &queue("q", &[])).map(|ready| ready.left_out),
            Ok(vec!["content_type".to_owned()])
        );
    }
}
