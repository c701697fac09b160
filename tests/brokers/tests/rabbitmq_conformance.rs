//! The conformance suite on RabbitMQ, once for each type of queue and each version.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::ensure;
use async_trait::async_trait;
use bytes::Bytes;
use dlo_brokers::{
    on_every_version,
    rabbit::{Stage, dying_into, text},
};
use dlo_conformance::{Fixture, Linked, Staged};
use dlo_core::{Address, Header, Message, Session, Target, Typed, Value};
use futures::StreamExt;
use lapin::{
    BasicProperties, Channel, Consumer,
    options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, ExchangeDeclareOptions},
    types::{AMQPValue, DecimalValue, FieldTable},
};

on_every_version!(the_promises_are_kept);

async fn the_promises_are_kept(stage: &Stage) -> anyhow::Result<()> {
    let fixture = RabbitFixture {
        stage: Stage::on(&stage.version).await?,
        consuming: Mutex::default(),
    };
    let part = std::env::var("DLO_TEST_CHECK").unwrap_or_default();
    let report = dlo_conformance::run_matching(&fixture, &part).await;
    println!("{report}");
    ensure!(report.is_clean(), "{report}");
    Ok(())
}

/// Plain lapin beside the connector.
struct RabbitFixture {
    stage: Stage,
    /// Live consumers of harmful destinations.
    consuming: Mutex<Vec<(Channel, Consumer)>>,
}

#[async_trait]
impl Fixture for RabbitFixture {
    fn name(&self) -> String {
        format!("RabbitMQ {}", self.stage.version)
    }

    fn flavours(&self) -> Vec<&'static str> {
        vec!["classic", "quorum", "stream"]
    }

    async fn connect(&self) -> Staged<Arc<dyn Session>> {
        Ok(self.stage.session().await?)
    }

    async fn create(&self, flavour: &str, name: &str) -> Staged<Address> {
        self.stage.queue(name, flavour, &[]).await?;
        Ok(Address::queue(name))
    }

    async fn fill(&self, at: &Address, messages: &[Message]) -> Staged<()> {
        let messages: Vec<_> = messages.iter().map(to_amqp).collect();
        self.stage.fill(&at.name, messages).await?;
        Ok(())
    }

    async fn count(&self, at: &Address) -> Staged<u64> {
        Ok(self.stage.count(&at.name).await?)
    }

    async fn drain(&self, at: &Address) -> Staged<Vec<Message>> {
        if let Some(messages) = self.read_stream(&at.name).await? {
            return Ok(messages);
        }
        let taken = self.stage.drain(&at.name).await?;
        Ok(taken
            .into_iter()
            .map(|message| from_amqp(&message.properties, &message.data))
            .collect())
    }

    async fn delete(&self, at: &Address) -> Staged<()> {
        self.consuming
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.stage.delete(&at.name).await?;
        Ok(())
    }

    fn rich(&self, flavour: &str) -> Vec<Message> {
        let mut rich = rich();
        if flavour == "stream" {
            // A stream stores AMQP 1.0, which has no counterpart of some types; there they change or end the connection.
            rich.headers
                .retain(|header| !LOST_IN_STREAMS.contains(&header.typed.kind.as_ref()));
        }
        vec![
            rich,
            Message {
                body: Some(Bytes::from((0..=255).collect::<Vec<u8>>())),
                ..Message::default()
            },
        ]
    }

    async fn create_linked(&self, flavour: &str, name: &str) -> Staged<Option<Linked>> {
        if flavour == "stream" {
            return Ok(None);
        }
        let dead = format!("{name}.failed");
        self.stage.queue(&dead, flavour, &[]).await?;
        self.stage.queue(name, flavour, &dying_into(&dead)).await?;
        Ok(Some(Linked {
            origin: Address::queue(name),
            dead_letters: Address::queue(dead),
        }))
    }

    /// A queue of work with a live consumer that has what it can take.
    async fn create_harmful(&self, flavour: &str, name: &str) -> Staged<Option<Address>> {
        if flavour == "stream" {
            return Ok(None);
        }
        self.stage.queue(name, flavour, &[]).await?;
        self.stage.number(name, 5).await?;
        let channel = self.stage.channel().await?;
        channel.basic_qos(1, BasicQosOptions::default()).await?;
        let mut consumer = channel
            .basic_consume(
                name.into(),
                "worker".into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            )
            .await?;
        consumer.next().await.ok_or("the consumer got nothing")??;
        self.consuming
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((channel, consumer));
        // A classic queue says that a consumer is there only while it could take more; the management API always does.
        let path = format!("queues/%2F/{}", encode(name));
        let mut told = false;
        while !told {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let info = self
                .stage
                .api(reqwest::Method::GET, &path, serde_json::Value::Null)
                .await?;
            let consumers = info
                .get("consumer_details")
                .and_then(serde_json::Value::as_array);
            told = consumers.is_some_and(|consumers| consumers.len() == 1);
        }
        Ok(Some(Address::queue(name)))
    }

    async fn create_unroutable(&self, name: &str) -> Staged<Option<Target>> {
        let channel = self.stage.channel().await?;
        let options = ExchangeDeclareOptions {
            auto_delete: false,
            durable: false,
            ..ExchangeDeclareOptions::default()
        };
        channel
            .exchange_declare(
                name.into(),
                lapin::ExchangeKind::Direct,
                options,
                FieldTable::default(),
            )
            .await?;
        Ok(Some(Target {
            routing_key: Some("nobody".to_owned()),
            ..Target::new(Address::exchange(name))
        }))
    }
}

impl RabbitFixture {
    /// Everything in a stream; `None` when the queue is none.
    async fn read_stream(&self, name: &str) -> anyhow::Result<Option<Vec<Message>>> {
        let info = self
            .stage
            .api(
                reqwest::Method::GET,
                &format!("queues/%2F/{}", encode(name)),
                serde_json::Value::Null,
            )
            .await?;
        if info.get("type").and_then(serde_json::Value::as_str) != Some("stream") {
            return Ok(None);
        }
        let channel = self.stage.channel().await?;
        channel.basic_qos(100, BasicQosOptions::default()).await?;
        let mut arguments = FieldTable::default();
        arguments.insert("x-stream-offset".into(), text("first"));
        let mut consumer = channel
            .basic_consume(
                name.into(),
                "".into(),
                BasicConsumeOptions::default(),
                arguments,
            )
            .await?;
        let mut messages = Vec::new();
        // The queue's count lags behind a stream, so it is read until it is silent.
        let silence = std::time::Duration::from_millis(1500);
        while let Ok(Some(delivery)) = tokio::time::timeout(silence, consumer.next()).await {
            let delivery = delivery?;
            delivery.ack(BasicAckOptions::default()).await?;
            messages.push(from_amqp(&delivery.properties, &delivery.data));
        }
        Ok(Some(messages))
    }
}

const LOST_IN_STREAMS: [&str; 6] = ["decimal", "bytes", "void", "table", "array", "float"];

/// The names of the types as the connector gives them, with the value on the wire.
fn types() -> Vec<(&'static str, &'static str, Value, AMQPValue)> {
    let inner = || {
        FieldTable::from(std::collections::BTreeMap::from([(
            "deep".into(),
            AMQPValue::LongInt(-1),
        )]))
    };
    let inner_value = || Value::Table(vec![Header::new("deep", "int32", Value::Int(-1))]);
    let list = vec![
        AMQPValue::Void,
        AMQPValue::FieldTable(inner()),
        AMQPValue::Boolean(false),
    ];
    let list_value = Value::List(vec![
        Typed::new("void", Value::Null),
        Typed::new("table", inner_value()),
        Typed::new("boolean", Value::Bool(false)),
    ]);
    vec![
        (
            "h01",
            "boolean",
            Value::Bool(true),
            AMQPValue::Boolean(true),
        ),
        (
            "h02",
            "int8",
            Value::Int(-128),
            AMQPValue::ShortShortInt(-128),
        ),
        (
            "h03",
            "uint8",
            Value::Int(255),
            AMQPValue::ShortShortUInt(255),
        ),
        (
            "h04",
            "int16",
            Value::Int(-32768),
            AMQPValue::ShortInt(-32768),
        ),
        (
            "h05",
            "uint16",
            Value::Int(65535),
            AMQPValue::ShortUInt(65535),
        ),
        (
            "h06",
            "int32",
            Value::Int(i32::MIN.into()),
            AMQPValue::LongInt(i32::MIN),
        ),
        (
            "h07",
            "uint32",
            Value::Int(u32::MAX.into()),
            AMQPValue::LongUInt(u32::MAX),
        ),
        (
            "h08",
            "int64",
            Value::Int(i64::MIN.into()),
            AMQPValue::LongLongInt(i64::MIN),
        ),
        ("h09", "float", Value::Float(1.5), AMQPValue::Float(1.5)),
        ("h10", "double", Value::Float(-0.1), AMQPValue::Double(-0.1)),
        (
            "h11",
            "decimal",
            Value::Decimal {
                unscaled: 1230,
                scale: 2,
            },
            AMQPValue::DecimalValue(DecimalValue {
                scale: 2,
                value: 1230,
            }),
        ),
        ("h12", "longstr", Value::text("ünïcödé"), text("ünïcödé")),
        (
            "h13",
            "longstr",
            Value::Bytes(Bytes::from_static(&[0, 255])),
            AMQPValue::LongString(vec![0, 255].into()),
        ),
        ("h14", "longstr", Value::text(""), text("")),
        (
            "h15",
            "timestamp",
            Value::Time(1_700_000_000_000),
            AMQPValue::Timestamp(1_700_000_000),
        ),
        (
            "h16",
            "bytes",
            Value::Bytes(Bytes::from_static(&[1, 0, 254])),
            AMQPValue::ByteArray(vec![1, 0, 254].into()),
        ),
        ("h17", "void", Value::Null, AMQPValue::Void),
        (
            "h18",
            "table",
            inner_value(),
            AMQPValue::FieldTable(inner()),
        ),
        (
            "h19",
            "array",
            list_value,
            AMQPValue::FieldArray(list.into()),
        ),
    ]
}

/// All but `priority`, by which a queue may reorder; the connector's own tests carry it.
fn rich() -> Message {
    let headers = types()
        .into_iter()
        .map(|(name, kind, value, _)| Header::new(name, kind, value));
    let properties = [
        ("content_type", Value::text("application/json")),
        ("content_encoding", Value::text("utf-8")),
        ("delivery_mode", Value::Int(2)),
        ("correlation_id", Value::text("c")),
        ("reply_to", Value::text("r")),
        ("expiration", Value::text("3600000")),
        ("message_id", Value::text("m")),
        ("timestamp", Value::Time(1_700_000_000_000)),
        ("type", Value::text("t")),
        ("user_id", Value::text("guest")),
        ("app_id", Value::text("a")),
    ];
    Message {
        key: None,
        headers: headers.collect(),
        properties: properties
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect(),
        body: Some(Bytes::from_static(b"{}")),
    }
}

/// The suite's messages are plain ones and [`rich`]; written for lapin by hand, so that the connector is not checked
/// against itself.
fn to_amqp(message: &Message) -> (Vec<u8>, BasicProperties) {
    let body = message.body.clone().unwrap_or_default().to_vec();
    let mut properties = BasicProperties::default();
    if !message.properties.is_empty() {
        properties = rich_properties();
    }
    if !message.headers.is_empty() {
        let mut headers = FieldTable::default();
        for (name, _, _, value) in types() {
            if message.header(name).is_some() {
                headers.insert(name.into(), value);
            }
        }
        properties = properties.with_headers(headers);
    }
    (body, properties)
}

fn rich_properties() -> BasicProperties {
    BasicProperties::default()
        .with_content_type("application/json".into())
        .with_content_encoding("utf-8".into())
        .with_delivery_mode(2)
        .with_correlation_id("c".into())
        .with_reply_to("r".into())
        .with_expiration("3600000".into())
        .with_message_id("m".into())
        .with_timestamp(1_700_000_000)
        .with_type("t".into())
        .with_user_id("guest".into())
        .with_app_id("a".into())
}

/// What came out, in the suite's words: equal to [`rich`] when it is the same on the wire, else told apart.
fn from_amqp(properties: &BasicProperties, body: &[u8]) -> Message {
    let found = properties.headers().clone().unwrap_or_default();
    let headers = found
        .inner()
        .iter()
        .filter(|(name, _)| {
            !["x-delivery-count", "x-acquired-count", "x-stream-offset"].contains(&name.as_str())
        })
        .map(|(name, value)| {
            let known = types()
                .into_iter()
                .find(|(known, _, _, wire)| *known == name.as_str() && wire == value);
            match known {
                Some((name, kind, typed, _)) => Header::new(name, kind, typed),
                None => Header::new(
                    name.as_str(),
                    "another value",
                    Value::text(format!("{value:?}")),
                ),
            }
        })
        .collect();
    let same = rich_properties().with_headers(found.clone());
    let properties = if *properties == same {
        rich().properties
    } else {
        Default::default()
    };
    Message {
        key: None,
        headers,
        properties,
        body: Some(Bytes::copy_from_slice(body)),
    }
}

fn encode(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
