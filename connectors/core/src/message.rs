//! A message, and a message as a broker delivered it.

use std::{collections::BTreeMap, fmt, str::FromStr};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Header, Lock, Millis, Value};

/// What can be edited and published again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The record key where the broker has one (Kafka); `None` is a null key, which is not an empty one.
    pub key: Option<Bytes>,
    /// Headers or message attributes, in the broker's order, duplicates kept.
    pub headers: Vec<Header>,
    /// What the protocol names itself, beside the headers: AMQP basic properties (`content_type`, `message_id`, …),
    /// SQS `MessageGroupId`, … The broker's own names; the type follows from the name.
    pub properties: BTreeMap<String, Value>,
    /// The body as bytes; `None` is a null value (a Kafka tombstone), which is not an empty one.
    pub body: Option<Bytes>,
}

impl Message {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&Value> {
        self.headers
            .iter()
            .find(|header| header.name == name)
            .map(Header::value)
    }

    /// SHA-256 of the body's bytes in lower-case hexadecimal; of nothing when the body is null.
    pub fn sha256(&self) -> String {
        let digest = Sha256::digest(self.body.as_deref().unwrap_or_default());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Bytes of key, headers, properties and body, for budgets.
    pub fn size(&self) -> usize {
        let key = self.key.as_ref().map_or(0, Bytes::len);
        let body = self.body.as_ref().map_or(0, Bytes::len);
        let headers: usize = self.headers.iter().map(Header::heap_bytes).sum();
        let properties: usize = self
            .properties
            .iter()
            .map(|(name, value)| name.len() + size_of::<Value>() + value.heap_bytes())
            .sum();
        key + body + headers + properties
    }
}

/// A message as it was delivered: with its place, the facts the broker told about it, and the lock while it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub message: Message,
    pub position: Position,
    /// The lock under which it is held; `None` where looking just reads.
    pub lock: Option<Lock>,
    /// The message's own time as the broker knows it (Kafka's timestamp, SQS `SentTimestamp`, AMQP `timestamp`).
    pub time: Option<Millis>,
    /// How often the broker says it was delivered before, where it counts that.
    pub delivery_count: Option<u64>,
    /// Read-only facts beside the message, in the broker's own names: AMQP `exchange`, `routing_key`, `redelivered`;
    /// SQS system attributes; Kafka `timestamp_type`. Never published again.
    pub facts: BTreeMap<String, Value>,
}

impl Delivery {
    /// The fact of that name, as text.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).and_then(Value::as_text)
    }
}

/// Where a message is, as its broker counts. Serialises to the `position` object of the capture format.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Position {
    /// A place that can be read again (Kafka, RabbitMQ streams with partition 0).
    Offset { partition: i32, offset: i64 },
    /// The place in delivery order of one look, counted from the head of the queue, first is 0 (RabbitMQ).
    /// It is true only while nobody else takes messages from the queue.
    Index { index: u64 },
    /// The broker's own identity of the message (SQS `MessageId`).
    Id { id: String },
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset { partition, offset } => write!(f, "{partition}:{offset}"),
            Self::Index { index } => write!(f, "{index}"),
            Self::Id { id } => f.write_str(id),
        }
    }
}

/// Reads what [`Position`] prints (`2:1234`, `12`, a message id) and its JSON form.
impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with('{') {
            return serde_json::from_str(text).map_err(|_| {
                format!("{text} is no position; write partition:offset, an index, a message id, or the position object that look prints")
            });
        }
        if let Ok(index) = text.parse() {
            return Ok(Self::Index { index });
        }
        if let Some((partition, offset)) = text.split_once(':')
            && let (Ok(partition), Ok(offset)) = (partition.parse(), offset.parse())
        {
            return Ok(Self::Offset { partition, offset });
        }
        if text.is_empty() {
            return Err("a position cannot be empty".to_owned());
        }
        Ok(Self::Id {
            id: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_print_and_parse() {
        for text in ["2:1234", "12", "8f14e45f-ceea-467f-a8bd-1b3a9b0f0a3d"] {
            assert_eq!(
                text.parse::<Position>()
                    .map(|position| position.to_string()),
                Ok(text.to_owned())
            );
        }
        assert_eq!(
            r#"{"partition":2,"offset":7}"#.parse(),
            Ok(Position::Offset {
                partition: 2,
                offset: 7
            })
        );
        assert!("".parse::<Position>().is_err() && "{bad".parse::<Position>().is_err());
    }

    #[test]
    fn the_hash_is_of_the_bodys_bytes() {
        let message = Message {
            body: Some(Bytes::from_static(b"abc")),
            ..Message::default()
        };
        assert_eq!(
            message.sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
