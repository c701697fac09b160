//! The conformance suite, with a plain Kafka client as its fixture.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use dlo_brokers::kafka::{Plain, keyed, send, session, unique};
use dlo_conformance::{Fixture, Gaps, Staged, run_matching};
use dlo_core::{Address, Header, Message, Session, Value};
use rdkafka::producer::Producer;
use std::time::Duration;

struct Kafka(Plain);

#[async_trait]
impl Fixture for Kafka {
    fn name(&self) -> String {
        "Apache Kafka".to_owned()
    }

    fn flavours(&self) -> Vec<&'static str> {
        vec!["one partition", "three partitions", "log append time"]
    }

    async fn connect(&self) -> Staged<Arc<dyn Session>> {
        Ok(session(&self.0.url()).await?)
    }

    async fn create(&self, flavour: &str, name: &str) -> Staged<Address> {
        let partitions = if flavour == "three partitions" { 3 } else { 1 };
        let settings: &[(&str, &str)] = match flavour {
            "log append time" => &[("message.timestamp.type", "LogAppendTime")],
            _ => &[],
        };
        self.0.create(name, partitions, settings).await?;
        Ok(Address::topic(name))
    }

    async fn fill(&self, at: &Address, messages: &[Message]) -> Staged<()> {
        Ok(self.0.fill(&at.name, None, messages)?)
    }

    async fn count(&self, at: &Address) -> Staged<u64> {
        Ok(self.0.read(&at.name, "read_committed")?.len() as u64)
    }

    async fn drain(&self, at: &Address) -> Staged<Vec<Message>> {
        let stored = self.0.read(&at.name, "read_committed")?;
        Ok(stored.into_iter().map(|(_, _, message)| message).collect())
    }

    async fn delete(&self, at: &Address) -> Staged<()> {
        Ok(self.0.delete(&at.name).await?)
    }

    fn rich(&self, _: &str) -> Vec<Message> {
        let header = |name: &str, value| Header::new(name, "bytes", value);
        let binary = Message {
            key: Some(Bytes::from_static(&[0, 1, 0xff])),
            headers: vec![
                header("trace", Value::text("a-1")),
                header(
                    "offset",
                    Value::Bytes(Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 7])),
                ),
                header("trace", Value::text("a-2")),
                header("null", Value::Null),
                header("empty", Value::text("")),
                header("ünïcödé ✓", Value::text("✓")),
            ],
            body: Some(Bytes::from_static(&[0xff, 0xfe, 0])),
            ..Message::default()
        };
        let tombstone = Message {
            key: Some(Bytes::from_static(b"gone")),
            ..Message::default()
        };
        let empty = Message {
            key: Some(Bytes::new()),
            body: Some(Bytes::new()),
            ..Message::default()
        };
        vec![
            binary,
            tombstone,
            empty,
            keyed("key", "{\"id\":9007199254740993}"),
        ]
    }

    fn awkward_name(&self, _: &str, name: &str) -> Option<String> {
        Some(format!("{name}.A_b-C.{}", "x".repeat(150)))
    }

    async fn create_with_gaps(&self, flavour: &str, name: &str) -> Staged<Option<Gaps>> {
        let at = self.create(flavour, name).await?;
        let id = unique("gaps");
        let producer = self.0.producer(&[("transactional.id", id.as_str())])?;
        let patience = Duration::from_secs(20);
        producer.init_transactions(patience)?;
        for round in 0..6 {
            producer.begin_transaction()?;
            for number in 0..5 {
                send(
                    &producer,
                    name,
                    Some(0),
                    &keyed("k", format!("{round}-{number}")),
                )?;
            }
            producer.flush(patience)?;
            if round % 2 == 0 {
                producer.commit_transaction(patience)?;
            } else {
                producer.abort_transaction(patience)?;
            }
        }
        // Three aborted rounds of five records, and a marker after each of the six rounds.
        Ok(Some(Gaps {
            at,
            records: 15,
            gaps: Some(21),
        }))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_conformance_suite_holds() -> anyhow::Result<()> {
    let fixture = Kafka(Plain::of("DLO_TEST_KAFKA")?);
    let part = std::env::var("DLO_TEST_ONLY").unwrap_or_default();
    let report = run_matching(&fixture, &part).await;
    println!("{report}");
    anyhow::ensure!(report.is_clean(), "{report}");
    Ok(())
}
