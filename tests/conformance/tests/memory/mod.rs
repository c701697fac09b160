//! The fixture for the memory broker: its own handle is the ordinary client.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use dlo_conformance::{Fixture, Gaps, Linked, Staged};
use dlo_core::{Address, Header, Message, Session, Target, Typed, Value};
use dlo_memory::{Broker, ExchangeKind, LogSettings, QueueSettings, TransactionEnd};

/// What a test may put around the session before the suite gets it.
pub type Wrap = Box<dyn Fn(Arc<dyn Session>, Broker) -> Arc<dyn Session> + Send + Sync>;

pub struct MemoryFixture {
    pub broker: Broker,
    pub flavours: Vec<&'static str>,
    pub wrap: Wrap,
}

impl MemoryFixture {
    pub fn new(wrap: Wrap) -> Self {
        Self {
            broker: Broker::new(),
            flavours: vec![
                "classic",
                "quorum",
                "standard",
                "fifo",
                "topic",
                "compacted",
                "stream",
            ],
            wrap,
        }
    }
}

#[async_trait]
impl Fixture for MemoryFixture {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn flavours(&self) -> Vec<&'static str> {
        self.flavours.clone()
    }

    async fn connect(&self) -> Staged<Arc<dyn Session>> {
        Ok((self.wrap)(self.broker.connect(), self.broker.clone()))
    }

    async fn create(&self, flavour: &str, name: &str) -> Staged<Address> {
        Ok(match flavour {
            "topic" => self.broker.declare_log(name, LogSettings::topic(3)),
            "compacted" => self
                .broker
                .declare_log(name, LogSettings::topic(1).compacted()),
            "stream" => self.broker.declare_log(name, LogSettings::stream()),
            _ => self.broker.declare_queue(name, settings(flavour)),
        })
    }

    async fn fill(&self, at: &Address, messages: &[Message]) -> Staged<()> {
        for message in messages {
            self.broker
                .publish(&Target::new(at.clone()), message.clone())?;
        }
        Ok(())
    }

    async fn count(&self, at: &Address) -> Staged<u64> {
        let records = self.broker.records(&at.name).len() as u64;
        Ok(if records > 0 {
            records
        } else {
            self.broker.depth(&at.name)
        })
    }

    async fn drain(&self, at: &Address) -> Staged<Vec<Message>> {
        let records = self.broker.records(&at.name);
        if records.is_empty() {
            return Ok(self.broker.drain(&at.name));
        }
        Ok(records.into_iter().map(|record| record.message).collect())
    }

    async fn delete(&self, at: &Address) -> Staged<()> {
        self.broker.delete(at);
        Ok(())
    }

    fn message(&self, flavour: &str, number: usize) -> Message {
        let mut message = Message {
            body: Some(Bytes::from(format!("message {number:04}"))),
            ..Message::default()
        };
        match flavour {
            // Few enough messages in each group that none is cut.
            "fifo" => {
                let group = Value::text(format!("group {}", number % 8));
                message
                    .properties
                    .insert("MessageGroupId".to_owned(), group);
            }
            "compacted" => message.key = Some(Bytes::from(format!("key {number}"))),
            _ => {}
        }
        message
    }

    fn takes_any_bytes(&self, flavour: &str) -> bool {
        !matches!(flavour, "standard" | "fifo")
    }

    fn rich(&self, flavour: &str) -> Vec<Message> {
        let headers = match flavour {
            "classic" | "quorum" => amqp_headers(),
            "standard" | "fifo" => sqs_attributes(),
            _ => kafka_headers(),
        };
        let mut full = self.message(flavour, 1);
        full.headers = headers;
        if matches!(flavour, "classic" | "quorum") {
            let properties = [
                ("content_type", Value::text("application/json")),
                ("delivery_mode", Value::Int(2)),
                ("message_id", Value::text("m-1")),
                ("timestamp", Value::Time(1_700_000_000_000)),
            ];
            let properties = properties.map(|(name, value)| (name.to_owned(), value));
            full.properties.extend(properties);
        }
        vec![full, self.message(flavour, 2)]
    }

    async fn create_linked(&self, flavour: &str, name: &str) -> Staged<Option<Linked>> {
        let dead = format!("{name}.dlq");
        let linked = match flavour {
            "classic" | "quorum" => settings(flavour).with_dead_letter_exchange("", Some(&dead)),
            "standard" | "fifo" => settings(flavour).with_redrive(&dead, 5),
            _ => return Ok(None),
        };
        Ok(Some(Linked {
            dead_letters: self.broker.declare_queue(&dead, settings(flavour)),
            origin: self.broker.declare_queue(name, linked),
        }))
    }

    async fn create_harmful(&self, flavour: &str, name: &str) -> Staged<Option<Address>> {
        let edge = match flavour {
            "classic" => settings(flavour).with_consumers(2),
            "quorum" => settings(flavour).with_delivery_limit(2),
            "standard" | "fifo" => {
                let dead = format!("{name}.dlq");
                self.broker.declare_queue(&dead, settings(flavour));
                settings(flavour).with_redrive(&dead, 2)
            }
            _ => return Ok(None),
        };
        let at = self.broker.declare_queue(name, edge);
        self.fill(&at, &[self.message(flavour, 0)]).await?;
        for _ in 0..2 {
            if let Some(taken) = self.broker.take(name) {
                self.broker.requeue(&taken);
            }
        }
        Ok(Some(at))
    }

    async fn create_unroutable(&self, name: &str) -> Staged<Option<Target>> {
        let at = self.broker.declare_exchange(name, ExchangeKind::Topic);
        let mut target = Target::new(at);
        target.routing_key = Some("nobody.listens".to_owned());
        Ok(Some(target))
    }

    async fn create_with_gaps(&self, flavour: &str, name: &str) -> Staged<Option<Gaps>> {
        let at = self.create(flavour, name).await?;
        match flavour {
            "compacted" => {
                for round in 0..3 {
                    self.fill(
                        &at,
                        &[self.message(flavour, round), self.message(flavour, 9)],
                    )
                    .await?;
                }
                self.broker.compact(name);
                // Of six offsets those of keys 0, 1, 2 and the last 9 stay.
                Ok(Some(gaps(at, 4, 2)))
            }
            "topic" => {
                let at = self
                    .broker
                    .declare_log(&format!("{name}-one"), LogSettings::topic(1));
                let some = |from| (from..from + 2).map(|n| self.message(flavour, n)).collect();
                self.broker
                    .transact(&at.name, some(0), TransactionEnd::Commit)?;
                self.broker
                    .transact(&at.name, some(2), TransactionEnd::Abort)?;
                self.broker
                    .transact(&at.name, some(4), TransactionEnd::Commit)?;
                // Three ends of transactions and two aborted records.
                Ok(Some(gaps(at, 4, 5)))
            }
            _ => Ok(None),
        }
    }
}

fn gaps(at: Address, records: u64, gaps: u64) -> Gaps {
    Gaps {
        at,
        records,
        gaps: Some(gaps),
    }
}

fn settings(flavour: &str) -> QueueSettings {
    match flavour {
        "quorum" => QueueSettings::quorum(),
        "standard" => QueueSettings::standard(),
        "fifo" => QueueSettings::fifo(),
        _ => QueueSettings::classic(),
    }
}

fn amqp_headers() -> Vec<Header> {
    let nested = vec![
        Header::new("deep", "longstr", Value::text("down")),
        Header::new("none", "void", Value::Null),
    ];
    let list = vec![
        Typed::new("longstr", Value::text("a")),
        Typed::new("int64", Value::Int(i128::from(i64::MIN))),
        Typed::new("table", Value::Table(nested.clone())),
    ];
    let decimal = Value::Decimal {
        unscaled: -1_230,
        scale: 2,
    };
    let bytes = Value::Bytes(Bytes::from((0..=255).collect::<Vec<u8>>()));
    vec![
        Header::new("text", "longstr", Value::text("grüße")),
        Header::new("empty", "longstr", Value::text("")),
        Header::new("yes", "boolean", Value::Bool(true)),
        Header::new("byte", "int8", Value::Int(-8)),
        Header::new("long", "int64", Value::Int(9_007_199_254_740_993)),
        Header::new("when", "timestamp", Value::Time(1_700_000_000_000)),
        Header::new("price", "decimal", decimal),
        Header::new("half", "float", Value::Float(0.5)),
        Header::new("nan", "double", Value::Float(f64::NAN)),
        Header::new("nothing", "void", Value::Null),
        Header::new("blob", "bytes", bytes),
        Header::new("table", "table", Value::Table(nested)),
        Header::new("list", "array", Value::List(list)),
    ]
}

fn sqs_attributes() -> Vec<Header> {
    vec![
        Header::new(
            "blob",
            "Binary.png",
            Value::Bytes(Bytes::from_static(&[0, 255])),
        ),
        Header::new("count", "Number.int", Value::text("0012")),
        Header::new("trace", "String", Value::text("t-1")),
    ]
}

fn kafka_headers() -> Vec<Header> {
    let binary = Value::Bytes(Bytes::from_static(&[0, 0, 0, 7]));
    vec![
        Header::new("trace", "bytes", Value::text("t-1")),
        Header::new("empty", "bytes", Value::text("")),
        Header::new("null", "bytes", Value::Null),
        Header::new("partition", "bytes", binary),
    ]
}

impl std::fmt::Debug for MemoryFixture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryFixture").finish_non_exhaustive()
    }
}
