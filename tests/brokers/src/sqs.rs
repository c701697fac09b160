//! An ordinary SQS client for the tests, the conformance suite's fixture, and servers of a test's own that it may kill.
//!
//! Separate from the connector on purpose: what the connector says is checked against the bare SDK alone, with a
//! translation of messages of its own.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use aws_sdk_sqs::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
    primitives::Blob,
    types::{
        DeleteMessageBatchRequestEntry, Message as SdkMessage, MessageAttributeValue,
        MessageSystemAttributeName, MessageSystemAttributeNameForSends,
        MessageSystemAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry,
    },
};
use bytes::Bytes;
use dlo_conformance::{Fixture, Linked, Staged};
use dlo_core::{Address, Connector, Endpoint, Header, Message, Session, Value};
use dlo_sqs::Sqs;

pub const LOCALSTACK: &str = "DLO_TEST_SQS_LOCALSTACK";
pub const ELASTICMQ: &str = "DLO_TEST_SQS_ELASTICMQ";

/// A server and an ordinary client of it.
#[derive(Clone, Debug)]
pub struct Stage {
    /// As a person would write it: `sqs://eu-west-1?endpoint=http://…`.
    pub url: String,
    pub label: String,
    pub client: Client,
}

impl Stage {
    /// The stage on the shared server whose address is in that variable.
    pub fn on(variable: &str) -> Result<Self> {
        Self::at(&crate::required(variable)?)
    }

    pub fn at(url: &str) -> Result<Self> {
        let (_, endpoint) = url
            .split_once("endpoint=")
            .context("the test's URL names no endpoint")?;
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("eu-west-1"))
            .endpoint_url(endpoint)
            .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
            .build();
        Ok(Self {
            url: url.to_owned(),
            label: format!("SQS at {endpoint}"),
            client: Client::from_conf(config),
        })
    }

    /// A session of the connector under test, with the credentials in the URL.
    pub async fn session(&self) -> Result<Arc<dyn Session>> {
        let url = self.url.replace("sqs://", "sqs://test:test@");
        let (endpoint, secrets) = Endpoint::parse(&url)?;
        Ok(Sqs.connect(&endpoint, &secrets).await?)
    }

    /// Makes a queue with these attributes; a name that ends in `.fifo` makes a FIFO queue.
    pub async fn create(
        &self,
        name: &str,
        attributes: &[(QueueAttributeName, String)],
    ) -> Result<String> {
        let mut request = self.client.create_queue().queue_name(name);
        if name.ends_with(".fifo") {
            request = request.attributes(QueueAttributeName::FifoQueue, "true");
        }
        for (attribute, value) in attributes {
            request = request.attributes(attribute.clone(), value);
        }
        let answer = request.send().await.map_err(words)?;
        answer.queue_url.context("no URL was given")
    }

    /// A dead-letter queue with its source: `(source, dead-letter queue)`.
    pub async fn create_pair(&self, name: &str, max_receives: u32) -> Result<(String, String)> {
        let ending = if name.ends_with(".fifo") { ".fifo" } else { "" };
        let base = name.trim_end_matches(".fifo");
        let dead = format!("{base}-dlq{ending}");
        let url = self.create(&dead, &[]).await?;
        let arn = self.attribute(&url, QueueAttributeName::QueueArn).await?;
        let policy =
            format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{max_receives}}}"#);
        let source = format!("{base}{ending}");
        self.create(&source, &[(QueueAttributeName::RedrivePolicy, policy)])
            .await?;
        Ok((source, dead))
    }

    pub async fn queue_url(&self, name: &str) -> Result<String> {
        let answer = self
            .client
            .get_queue_url()
            .queue_name(name)
            .send()
            .await
            .map_err(words)?;
        answer.queue_url.context("no URL was given")
    }

    pub async fn attribute(&self, url: &str, name: QueueAttributeName) -> Result<String> {
        let request = self
            .client
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(name.clone());
        let answer = request.send().await.map_err(words)?;
        let attributes = answer.attributes.unwrap_or_default();
        attributes
            .get(&name)
            .cloned()
            .with_context(|| format!("the queue has no {name}"))
    }

    pub async fn visible(&self, name: &str) -> Result<u64> {
        let url = self.queue_url(name).await?;
        let count = QueueAttributeName::ApproximateNumberOfMessages;
        Ok(self.attribute(&url, count).await?.parse()?)
    }

    /// Waits until that many messages are visible.
    pub async fn wait_visible(&self, name: &str, expected: u64) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let visible = self.visible(name).await?;
            if visible == expected {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "{visible} messages are visible in {name}, not {expected}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Sends messages in order, by tens and by the megabyte.
    pub async fn send(&self, name: &str, messages: &[Message]) -> Result<()> {
        let url = self.queue_url(name).await?;
        let fifo = name.ends_with(".fifo");
        let mut batch = Vec::new();
        let mut bytes = 0;
        for (number, message) in messages.iter().enumerate() {
            let size = message.size();
            if batch.len() == 10 || (bytes + size > 900_000 && !batch.is_empty()) {
                self.send_batch(&url, std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += size;
            batch.push(entry(number, message, fifo)?);
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.send_batch(&url, batch).await
    }

    async fn send_batch(&self, url: &str, batch: Vec<SendMessageBatchRequestEntry>) -> Result<()> {
        let request = self.client.send_message_batch().queue_url(url);
        let answer = request
            .set_entries(Some(batch))
            .send()
            .await
            .map_err(words)?;
        ensure!(answer.failed.is_empty(), "not sent: {:?}", answer.failed);
        Ok(())
    }

    /// Fills a standard queue fast, with several senders at a time.
    pub async fn fill_with(
        &self,
        name: &str,
        count: usize,
        body: impl Fn(usize) -> String,
    ) -> Result<()> {
        let messages: Vec<_> = (0..count).map(|number| plain(&body(number))).collect();
        let parts = messages.chunks(count.div_ceil(8).max(1));
        futures::future::try_join_all(parts.map(|part| self.send(name, part))).await?;
        Ok(())
    }

    /// Takes everything as an ordinary consumer would. A FIFO queue gives more of a group once its first are gone.
    pub async fn drain(&self, name: &str) -> Result<Vec<SdkMessage>> {
        let url = self.queue_url(name).await?;
        let mut drained = Vec::new();
        let mut empty = 0;
        while empty < 2 {
            let messages = self.receive(&url, 1).await?;
            if messages.is_empty() {
                empty += 1;
                continue;
            }
            empty = 0;
            self.delete(&url, &messages).await?;
            drained.extend(messages);
        }
        Ok(drained)
    }

    /// Up to ten messages, held for half a minute.
    pub async fn receive(&self, url: &str, wait_seconds: i32) -> Result<Vec<SdkMessage>> {
        let request = self
            .client
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(10)
            .visibility_timeout(30)
            .wait_time_seconds(wait_seconds)
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::All);
        Ok(request
            .send()
            .await
            .map_err(words)?
            .messages
            .unwrap_or_default())
    }

    pub async fn delete(&self, url: &str, messages: &[SdkMessage]) -> Result<()> {
        let entries = messages
            .iter()
            .enumerate()
            .map(|(number, message)| {
                let entry = DeleteMessageBatchRequestEntry::builder().id(number.to_string());
                entry
                    .receipt_handle(message.receipt_handle().unwrap_or_default())
                    .build()
            })
            .collect::<Result<Vec<_>, _>>()?;
        let request = self.client.delete_message_batch().queue_url(url);
        let answer = request
            .set_entries(Some(entries))
            .send()
            .await
            .map_err(words)?;
        ensure!(answer.failed.is_empty(), "not deleted: {:?}", answer.failed);
        Ok(())
    }

    /// Receives and gives back until every message of the source was received `times` times.
    pub async fn wear(&self, name: &str, times: u32) -> Result<()> {
        let url = self.queue_url(name).await?;
        for _ in 0..times {
            let mut held = Vec::new();
            loop {
                let messages = self.receive(&url, 1).await?;
                if messages.is_empty() {
                    break;
                }
                held.extend(messages);
            }
            for message in &held {
                let request = self.client.change_message_visibility().queue_url(&url);
                request
                    .receipt_handle(message.receipt_handle().unwrap_or_default())
                    .visibility_timeout(0)
                    .send()
                    .await
                    .map_err(words)?;
            }
        }
        Ok(())
    }
}

/// The SDK's errors say little by themselves.
fn words<E: std::error::Error + Send + Sync + 'static>(error: E) -> anyhow::Error {
    let text = aws_sdk_sqs::error::DisplayErrorContext(&error).to_string();
    anyhow::Error::new(error).context(text)
}

/// A name nobody else uses.
pub fn unique(stem: &str) -> String {
    format!(
        "{stem}-{}",
        &uuid::Uuid::new_v4().simple().to_string()[..12]
    )
}

/// A message with nothing but a body.
pub fn plain(body: &str) -> Message {
    Message {
        body: Some(Bytes::from(body.to_owned())),
        ..Message::default()
    }
}

/// A message of a group.
pub fn grouped(group: &str, body: &str) -> Message {
    let mut message = plain(body);
    let group = Value::text(group);
    message
        .properties
        .insert("MessageGroupId".to_owned(), group);
    message
}

fn entry(number: usize, message: &Message, fifo: bool) -> Result<SendMessageBatchRequestEntry> {
    let body = std::str::from_utf8(message.body.as_deref().unwrap_or_default())?;
    let property = |name: &str| message.properties.get(name).and_then(Value::as_text);
    let mut entry = SendMessageBatchRequestEntry::builder()
        .id(number.to_string())
        .message_body(body)
        .set_message_group_id(property("MessageGroupId").map(str::to_owned));
    if fifo {
        entry = entry.message_deduplication_id(uuid::Uuid::new_v4().to_string());
    }
    if let Some(trace) = property("AWSTraceHeader") {
        let value = MessageSystemAttributeValue::builder()
            .data_type("String")
            .string_value(trace)
            .build()?;
        entry = entry
            .message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, value);
    }
    for header in &message.headers {
        let bytes = header.value().as_bytes().cloned().unwrap_or_default();
        let value = MessageAttributeValue::builder().data_type(header.typed.kind.clone());
        let value = if header.typed.kind.starts_with("Binary") {
            value.binary_value(Blob::new(bytes.to_vec()))
        } else {
            value.string_value(std::str::from_utf8(&bytes)?)
        };
        entry = entry.message_attributes(&header.name, value.build()?);
    }
    Ok(entry.build()?)
}

/// What the ordinary client received, in the words of the tests.
pub fn received(message: &SdkMessage) -> Message {
    let mut headers: Vec<_> = message
        .message_attributes()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let bytes = match value.binary_value() {
                Some(blob) => Bytes::copy_from_slice(blob.as_ref()),
                None => Bytes::from(value.string_value().unwrap_or_default().to_owned()),
            };
            Header::new(name, value.data_type().to_owned(), Value::Bytes(bytes))
        })
        .collect();
    headers.sort_by(|a, b| a.name.cmp(&b.name));
    let none = HashMap::new();
    let system = message.attributes().unwrap_or(&none);
    let properties = [
        MessageSystemAttributeName::MessageGroupId,
        MessageSystemAttributeName::AwsTraceHeader,
    ];
    Message {
        key: None,
        headers,
        properties: properties
            .into_iter()
            .filter_map(|name| Some((name.to_string(), Value::text(system.get(&name)?.clone()))))
            .collect(),
        body: message.body().map(|body| Bytes::from(body.to_owned())),
    }
}

/// Messages with every kind of attribute and every kind of character that SQS takes.
pub fn rich() -> Vec<Message> {
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut full = plain(
        "tab\tnew line\ncarriage\rreturn <xml>&amp;</xml> ünï 😀 \u{7f}\u{85}\u{2028}\u{fffd}\u{10ffff}",
    );
    full.headers = vec![
        Header::new("binary", "Binary", Value::Bytes(Bytes::from(every_byte))),
        Header::new(
            "image",
            "Binary.png",
            Value::Bytes(Bytes::from_static(b"\x89PNG")),
        ),
        Header::new("label", "String.json", Value::text("{\"a\": [1, 2]}")),
        Header::new("number", "Number", Value::text("007.50")),
        Header::new("number.int", "Number.int", Value::text("9007199254740993")),
        Header::new("text", "String", Value::text("grün <&>")),
    ];
    let trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1";
    full.properties
        .insert("AWSTraceHeader".to_owned(), Value::text(trace));
    let mut ten = plain(" leading and trailing ");
    ten.headers = (0..10)
        .map(|number| Header::new(format!("n{number}"), "String", Value::text("v")))
        .collect();
    vec![full, ten, plain("x")]
}

#[async_trait]
impl Fixture for Stage {
    fn name(&self) -> String {
        self.label.clone()
    }

    fn flavours(&self) -> Vec<&'static str> {
        vec!["standard", "fifo"]
    }

    async fn connect(&self) -> Staged<Arc<dyn Session>> {
        Ok(self.session().await?)
    }

    async fn create(&self, flavour: &str, name: &str) -> Staged<Address> {
        let name = named(flavour, name);
        Stage::create(self, &name, &[]).await?;
        Ok(Address::queue(name))
    }

    async fn fill(&self, at: &Address, messages: &[Message]) -> Staged<()> {
        self.send(&at.name, messages).await?;
        Ok(self.settled(&at.name).await?)
    }

    async fn count(&self, at: &Address) -> Staged<u64> {
        Ok(self.visible(&at.name).await?)
    }

    async fn drain(&self, at: &Address) -> Staged<Vec<Message>> {
        let messages = Stage::drain(self, &at.name).await?;
        Ok(messages.iter().map(received).collect())
    }

    async fn delete(&self, at: &Address) -> Staged<()> {
        let url = self.queue_url(&at.name).await?;
        self.client.delete_queue().queue_url(url).send().await?;
        Ok(())
    }

    fn rich(&self, flavour: &str) -> Vec<Message> {
        let mut messages = rich();
        if flavour == "fifo" {
            for (number, message) in messages.iter_mut().enumerate() {
                let group = Value::text(format!("g{number}"));
                message
                    .properties
                    .insert("MessageGroupId".to_owned(), group);
            }
        }
        messages
    }

    /// In a FIFO queue each has a group of its own, as a look sees only the first of each.
    fn message(&self, flavour: &str, number: usize) -> Message {
        let body = format!("message {number:04}");
        match flavour {
            "fifo" => grouped(&format!("g{number}"), &body),
            _ => plain(&body),
        }
    }

    fn takes_any_bytes(&self, _: &str) -> bool {
        false
    }

    fn awkward_name(&self, _: &str, name: &str) -> Option<String> {
        Some(format!("_{name}--A_Z"))
    }

    async fn create_linked(&self, flavour: &str, name: &str) -> Staged<Option<Linked>> {
        let (origin, dead) = self.create_pair(&named(flavour, name), 30).await?;
        Ok(Some(Linked {
            origin: Address::queue(origin),
            dead_letters: Address::queue(dead),
        }))
    }

    /// A queue whose messages have one try: a look would use it up.
    async fn create_harmful(&self, flavour: &str, name: &str) -> Staged<Option<Address>> {
        let (origin, _) = self.create_pair(&named(flavour, name), 1).await?;
        let messages: Vec<_> = (0..3)
            .map(|number| Fixture::message(self, flavour, number))
            .collect();
        self.send(&origin, &messages).await?;
        self.settled(&origin).await?;
        Ok(Some(Address::queue(origin)))
    }
}

impl Stage {
    /// Waits until the counts stand still, as they are only about right.
    async fn settled(&self, name: &str) -> Result<()> {
        let mut last = self.visible(name).await?;
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = self.visible(name).await?;
            if now == last {
                return Ok(());
            }
            last = now;
        }
    }
}

fn named(flavour: &str, name: &str) -> String {
    match flavour {
        "fifo" => format!("{name}.fifo"),
        _ => name.to_owned(),
    }
}

/// How an ElasticMQ of a test's own keeps its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    File,
    Memory,
}

/// An ElasticMQ of a test's own. Ends when dropped.
#[derive(Debug)]
pub struct Server {
    folder: tempfile::TempDir,
    pub stage: Stage,
}

impl Server {
    pub fn start(store: Store) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let store = match store {
            Store::File => "file",
            Store::Memory => "memory",
        };
        let stage = start(folder.path(), store)?;
        Ok(Self { folder, stage })
    }

    /// Kills it without a word.
    pub fn kill(&self) -> Result<()> {
        let pid = std::fs::read_to_string(self.folder.path().join("pid"))?;
        let killed = Command::new("kill").arg("-9").arg(pid.trim()).status()?;
        ensure!(killed.success(), "the server could not be killed");
        let gone = Path::new("/proc").join(pid.trim());
        let end = Instant::now() + Duration::from_secs(10);
        while gone.join("cwd").exists() {
            ensure!(Instant::now() < end, "the server lives on");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Starts it again on what it had stored, at the same address.
    pub fn restart(&self) -> Result<()> {
        let again = start(self.folder.path(), "file")?;
        ensure!(again.url == self.stage.url, "it came back at {}", again.url);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that is gone already needs no stopping.
        let _ = Command::new(script("stop"))
            .arg(self.folder.path())
            .output();
    }
}

fn start(folder: &Path, store: &str) -> Result<Stage> {
    let output = Command::new(script("start"))
        .arg(folder)
        .args(["-", store])
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let url = printed
        .lines()
        .find_map(|line| line.strip_prefix("DLO_TEST_SQS_ELASTICMQ="));
    let url = url.with_context(|| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("ElasticMQ did not start; run tests/run, which installs it: {said}")
    })?;
    Stage::at(url)
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("sqs-elasticmq")
        .join(name)
}
