//! An ordinary Kafka client for the tests.
//!
//! Separate from the connector on purpose: what the connector says is checked against a plain producer, a plain consumer
//! and the brokers' own lists.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use dlo_core::{Connector, Endpoint, Header, Message, Session, Value};
use dlo_kafka::KafkaConnector;
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer, DefaultConsumerContext},
    error::KafkaError,
    message::{BorrowedMessage, Header as NativeHeader, Headers, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A session of the connector under test.
pub async fn session(url: &str) -> Result<Arc<dyn Session>> {
    let (endpoint, secrets) = Endpoint::parse(url)?;
    Ok(KafkaConnector.connect(&endpoint, &secrets).await?)
}

/// A plain client of the plain listener, where everything is allowed.
#[derive(Clone, Debug)]
pub struct Plain {
    servers: String,
}

/// What a plain consumer read: partition, offset and message.
pub type Stored = (i32, i64, Message);

impl Plain {
    /// A client of the broker that a variable names, as `kafka://host:port`.
    pub fn of(variable: &str) -> Result<Self> {
        let url = crate::required(variable)?;
        Ok(Self::at(&url))
    }

    /// A client of the broker at this URL.
    pub fn at(url: &str) -> Self {
        Self {
            servers: url.replace("kafka://", ""),
        }
    }

    pub fn url(&self) -> String {
        format!("kafka://{}", self.servers)
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.servers)
            .set("message.max.bytes", "100000000")
            .set("allow.auto.create.topics", "false");
        config
    }

    fn admin(&self) -> Result<AdminClient<DefaultClientContext>> {
        Ok(self.config().create()?)
    }

    /// Makes a topic and waits until every broker tells of it.
    pub async fn create(
        &self,
        name: &str,
        partitions: i32,
        settings: &[(&str, &str)],
    ) -> Result<()> {
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(-1));
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        let answers = self
            .admin()?
            .create_topics([&topic], &AdminOptions::new())
            .await?;
        for answer in answers {
            answer.map_err(|(name, code)| anyhow::anyhow!("{name} was not made: {code}"))?;
        }
        let until = Instant::now() + PATIENCE;
        while self.partitions(name)?.len() != usize::try_from(partitions)? {
            ensure!(Instant::now() < until, "{name} did not appear");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    pub async fn delete(&self, name: &str) -> Result<()> {
        self.admin()?
            .delete_topics(&[name], &AdminOptions::new())
            .await?;
        Ok(())
    }

    fn asking(&self) -> Result<BaseConsumer> {
        Ok(self.config().create()?)
    }

    /// The partitions that have a leader.
    pub fn partitions(&self, name: &str) -> Result<Vec<i32>> {
        let metadata = self.asking()?.fetch_metadata(Some(name), PATIENCE)?;
        let topic = metadata.topics().first().context("no topic")?;
        let led = topic.partitions().iter().filter(|p| p.leader() >= 0);
        Ok(led.map(|p| p.id()).collect())
    }

    /// The end of each partition.
    pub fn ends(&self, name: &str) -> Result<Vec<i64>> {
        let client = self.asking()?;
        let ends = self.partitions(name)?.into_iter().map(|partition| {
            let (_, end) = client.fetch_watermarks(name, partition, PATIENCE)?;
            Ok(end)
        });
        ends.collect()
    }

    /// All topics and groups that the broker has, to see that nothing was left behind.
    pub fn traces(&self) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
        let client = self.asking()?;
        let metadata = client.fetch_metadata(None, PATIENCE)?;
        let topics = metadata.topics().iter().map(|t| t.name().to_owned());
        let groups = client.fetch_group_list(None, PATIENCE)?;
        let groups = groups.groups().iter().map(|g| g.name().to_owned());
        Ok((topics.collect(), groups.collect()))
    }

    /// A plain producer; `settings` for a transactional one.
    pub fn producer(&self, settings: &[(&str, &str)]) -> Result<BaseProducer> {
        let mut config = self.config();
        config
            .set("acks", "all")
            .set("partitioner", "murmur2_random");
        for (key, value) in settings {
            config.set(*key, *value);
        }
        Ok(config.create()?)
    }

    /// Writes messages in order; `partition` where it matters.
    pub fn fill(&self, topic: &str, partition: Option<i32>, messages: &[Message]) -> Result<()> {
        let producer = self.producer(&[("enable.idempotence", "true")])?;
        for message in messages {
            send(&producer, topic, partition, message)?;
        }
        producer.flush(PATIENCE)?;
        Ok(())
    }

    /// Reads everything that is there, as a plain consumer would.
    pub fn read(&self, topic: &str, isolation: &str) -> Result<Vec<Stored>> {
        let mut stored = Vec::new();
        self.read_each(topic, isolation, |record| {
            stored.push((record.partition(), record.offset(), message(record)));
        })?;
        Ok(stored)
    }

    /// Reads everything and only counts it, which is as fast as a consumer of this library can be.
    pub fn count_quickly(&self, topic: &str) -> Result<usize> {
        let mut count = 0;
        self.read_each(topic, "read_committed", |_| count += 1)?;
        Ok(count)
    }

    fn read_each(
        &self,
        topic: &str,
        isolation: &str,
        mut each: impl FnMut(&BorrowedMessage<'_>),
    ) -> Result<()> {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", format!("plain-{}", uuid::Uuid::new_v4()))
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "earliest")
            .set("fetch.wait.max.ms", "20")
            .set("isolation.level", isolation)
            .create()?;
        let mut list = TopicPartitionList::new();
        let mut open: BTreeSet<i32> = self.partitions(topic)?.into_iter().collect();
        for partition in &open {
            list.add_partition_offset(topic, *partition, Offset::Beginning)?;
        }
        consumer.assign(&list)?;
        let until = Instant::now() + PATIENCE * 3;
        while !open.is_empty() {
            match consumer.poll(Duration::from_millis(200)) {
                Some(Ok(record)) => each(&record),
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    open.remove(&partition);
                }
                // Told whenever a broker of the cluster is gone; another one leads its partitions in a moment.
                Some(Err(error))
                    if error.rdkafka_error_code()
                        == Some(rdkafka::types::RDKafkaErrorCode::BrokerTransportFailure)
                        && Instant::now() < until => {}
                Some(Err(error)) => bail!(error),
                None => ensure!(
                    Instant::now() < until,
                    "{topic} could not be read to its end"
                ),
            }
        }
        Ok(())
    }

    /// Commits a group's offset, as a consumer that has read so far would.
    pub fn commit(&self, group: &str, topic: &str, partition: i32, offset: i64) -> Result<()> {
        let consumer: BaseConsumer<DefaultConsumerContext> =
            self.config().set("group.id", group).create()?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset))?;
        consumer.commit(&list, rdkafka::consumer::CommitMode::Sync)?;
        Ok(())
    }
}

/// Hands a message to a producer, waiting while its queue is full.
pub fn send(
    producer: &BaseProducer,
    topic: &str,
    partition: Option<i32>,
    message: &Message,
) -> Result<()> {
    loop {
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
        record.partition = partition;
        record.key = message.key.as_deref();
        record.payload = message.body.as_deref();
        if !message.headers.is_empty() {
            record = record.headers(native(&message.headers));
        }
        match producer.send(record) {
            Ok(()) => return Ok(()),
            Err((error, _))
                if error.rdkafka_error_code()
                    == Some(rdkafka::types::RDKafkaErrorCode::QueueFull) =>
            {
                producer.poll(Duration::from_millis(10));
            }
            Err((error, _)) => bail!(error),
        }
    }
}

fn native(headers: &[Header]) -> OwnedHeaders {
    headers.iter().fold(OwnedHeaders::new(), |native, header| {
        native.insert(NativeHeader {
            key: &header.name,
            value: header.value().as_bytes().map(|bytes| bytes.as_ref()),
        })
    })
}

fn message(record: &BorrowedMessage<'_>) -> Message {
    let headers = record.headers().map(|headers| {
        let headers = headers.iter().map(|header| {
            let value = header.value.map_or(Value::Null, |bytes| {
                Value::Bytes(Bytes::copy_from_slice(bytes))
            });
            Header::new(header.key, "bytes", value)
        });
        headers.collect()
    });
    Message {
        key: record.key().map(Bytes::copy_from_slice),
        headers: headers.unwrap_or_default(),
        body: record.payload().map(Bytes::copy_from_slice),
        ..Message::default()
    }
}

/// A message with a key and a body.
pub fn keyed(key: &str, body: impl Into<Bytes>) -> Message {
    Message {
        key: Some(Bytes::copy_from_slice(key.as_bytes())),
        body: Some(body.into()),
        ..Message::default()
    }
}

/// A name that no other test has.
pub fn unique(prefix: &str) -> String {
    format!("{prefix}-{}", uuid::Uuid::new_v4().simple())
}

/// Runs one of the scripts beside the tests, and waits for its end.
pub fn script(name: &str, arguments: &[&str]) -> Result<()> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "kafka", name].iter().collect();
    let status = Command::new(&path)
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("{} did not start", path.display()))?;
    ensure!(status.success(), "{} {arguments:?} failed", path.display());
    Ok(())
}

/// A broker of this test's own, which it may kill.
#[derive(Debug)]
pub struct Own(tempfile::TempDir);

impl Own {
    pub fn start(script_name: &str) -> Result<Self> {
        let own = Self(tempfile::tempdir()?);
        script(script_name, &[own.path()?])?;
        Ok(own)
    }

    /// Its folder, for the scripts.
    pub fn path(&self) -> Result<&str> {
        self.0.path().to_str().context("a path")
    }

    /// A client of the broker that its env file gives this name.
    pub fn plain(&self, name: &str) -> Result<Plain> {
        let env = std::fs::read_to_string(Path::new(self.path()?).join("env"))?;
        let line = env
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        Ok(Plain::at(line.context("no address")?))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Ok(path) = self.path() {
            let _ = script("stop", &[path, "--kill"]);
        }
    }
}
